// SPDX-License-Identifier: Apache-2.0
#ifndef TENDON_WIRE_H
#define TENDON_WIRE_H

// Messages between robots, servers and the controller, to and from bytes.
//
// Each message is one MessagePack map with text keys; docs/wire.md holds every
// field. Decoding makes views into the caller's bytes: no image, tensor or text
// is copied, and nothing is allocated for a steady stream. Everything is
// checked before it is used: sizes, depth, counts, types, shape x itemsize =
// bytes, UTF-8, the characters of a key, finite numbers. Unknown fields are
// ignored; a message whose `schema` is greater than ours is refused by VERSION.
//
// No absolute time is on the wire: every time is a duration.

#include "tendon/err.h"
#include "tendon/slice.h"

#include <stdbool.h>
#include <stdint.h>

#define TD_WIRE_SCHEMA 1

// Limits, checked before anything is allocated or followed.
#define TD_WIRE_MAX_BYTES (64u << 20) // one message
#define TD_WIRE_MAX_DEPTH 8
#define TD_WIRE_MAX_ITEMS 4096 // maps' and arrays' members, all together
#define TD_WIRE_MAX_RANK 8
#define TD_WIRE_MAX_IMAGES 16
#define TD_WIRE_MAX_TENSORS 32
#define TD_WIRE_MAX_METADATA 32
#define TD_WIRE_MAX_CHANNELS 256
#define TD_WIRE_MAX_SUPERSEDED 64
#define TD_WIRE_MAX_COMPONENTS 16
#define TD_WIRE_MAX_METRICS 128
#define TD_WIRE_MAX_NAME 64   // bytes of a name or one chunk of a key
#define TD_WIRE_MAX_TEXT 8192 // bytes of any other text

// Text that somebody else owns; valid UTF-8, not NUL-terminated.
typedef struct td_wire_text {
    const char *data;
    uint32_t size;
} td_wire_text;

typedef enum td_wire_dtype {
    TD_WIRE_F32,  // "<f4"
    TD_WIRE_F64,  // "<f8"
    TD_WIRE_F16,  // "<f2"
    TD_WIRE_BF16, // "bf16"
    TD_WIRE_U8,   // "|u1"
    TD_WIRE_I8,   // "|i1"
    TD_WIRE_I16,  // "<i2"
    TD_WIRE_I32,  // "<i4"
    TD_WIRE_I64,  // "<i8"
    TD_WIRE_BOOL, // "|b1"
} td_wire_dtype;

// `data` may be unaligned: read it with memcpy. A zero rank means absent.
typedef struct td_wire_tensor {
    td_wire_dtype dtype;
    uint32_t rank;
    uint32_t shape[TD_WIRE_MAX_RANK];
    const void *data;
    size_t size; // bytes
    bool has_age;
    int64_t age_us; // how old the value was when the message was made
} td_wire_tensor;

typedef enum td_wire_codec {
    TD_WIRE_JPEG,
    TD_WIRE_PNG,
    TD_WIRE_RAW, // height x width x channels bytes
} td_wire_codec;

typedef struct td_wire_image {
    td_wire_text name;
    td_wire_codec codec;
    uint32_t shape[3]; // height, width, channels; zeros where the codec tells
    const void *data;  // NULL: in pieces
    size_t size;
    const td_slice *pieces; // of the message, from the one where it begins,
    size_t skip;            // this far into that
} td_wire_image;

typedef struct td_wire_named {
    td_wire_text name;
    td_wire_tensor tensor;
} td_wire_named;

typedef struct td_wire_pair {
    td_wire_text name;
    td_wire_text text;
} td_wire_pair;

// What a message belongs to. A chunk is merged only if boot, route and episode
// are the robot's present ones.
typedef struct td_wire_ident {
    uint64_t boot;    // grows with each start of that client
    uint64_t route;   // generation of the client's route
    uint64_t episode; // grows with each reset
    uint64_t seq;     // `seq_id`, `response_to_seq_id`
} td_wire_ident;

// Robot to server.
typedef struct td_wire_obs {
    td_wire_ident ident;
    td_wire_text client;
    td_wire_tensor state; // absent when `again` is set
    td_wire_text task;
    uint64_t cursor;   // policy steps executed when the state was read
    float urgency;     // 0 to 1
    uint32_t priority; // 0 is highest; 1 unless sent
    bool has_steps_remaining;
    uint32_t steps_remaining; // rows left in the robot's buffer
    bool must_go;             // the buffer is empty
    bool has_budget;
    int64_t budget_us; // until the buffer runs dry
    bool has_again;
    uint64_t again; // the seq whose answer was missed
    bool anew;      // with `again`: another chunk, of other noise
    bool has_rtc;   // real-time chunking: continue this
    uint64_t rtc_base_chunk;
    uint32_t rtc_delay_steps;
    td_wire_tensor rtc_prefix; // promised rows, robot units
    uint32_t image_count, tensor_count, metadata_count;
    td_wire_image images[TD_WIRE_MAX_IMAGES];
    td_wire_named tensors[TD_WIRE_MAX_TENSORS];
    td_wire_pair metadata[TD_WIRE_MAX_METADATA];
} td_wire_obs;

typedef enum td_wire_action_kind {
    TD_WIRE_CHUNK,
    TD_WIRE_PLAN,    // text
    TD_WIRE_VERDICT, // unsafe, text
} td_wire_action_kind;

// Server to robot. With an error there are no actions.
typedef struct td_wire_action {
    td_wire_ident ident; // the observation's
    td_wire_action_kind kind;
    float inference_time_ms;
    float queue_time_ms;
    td_wire_tensor actions; // rows x channels, absolute, finite
    td_wire_text text;
    bool unsafe;
    td_wire_text server;
    uint64_t chunk_id;
    bool has_continues;
    uint64_t continues;      // the chunk that this one continues
    td_wire_text error_code; // empty: none
    td_wire_text error_text;
    uint32_t superseded_count, result_count;
    uint64_t superseded[TD_WIRE_MAX_SUPERSEDED]; // seqs never to be answered
    td_wire_named results[TD_WIRE_MAX_TENSORS];
} td_wire_action;

typedef enum td_wire_channel_kind {
    TD_WIRE_LINEAR,
    TD_WIRE_ANGLE,      // radians, wraps
    TD_WIRE_QUATERNION, // four channels in a row: x, y, z, w
    TD_WIRE_HOLD,       // a gripper: never interpolated
} td_wire_channel_kind;

typedef struct td_wire_channel {
    td_wire_text name;
    td_wire_channel_kind kind;
} td_wire_channel;

typedef struct td_wire_camera {
    td_wire_text name;
    uint32_t height, width;
} td_wire_camera;

// One entry of `observation_features`.
typedef struct td_wire_feature {
    td_wire_text name;
    td_wire_dtype dtype;
    uint32_t rank;
    uint32_t shape[TD_WIRE_MAX_RANK];
} td_wire_feature;

typedef enum td_wire_server_state {
    TD_WIRE_WARMING,
    TD_WIRE_READY,
    TD_WIRE_DRAINING,
    TD_WIRE_DEGRADED,
} td_wire_server_state;

// What a server answers to a `status` query.
typedef struct td_wire_status {
    td_wire_text model_id, model_version;
    td_wire_text server;
    uint64_t server_boot;
    td_wire_server_state state;
    td_wire_camera cameras[TD_WIRE_MAX_IMAGES];
    uint32_t camera_count;
    uint32_t action_dim;
    uint32_t max_actions_per_chunk;
    td_wire_feature features[TD_WIRE_MAX_TENSORS];
    uint32_t feature_count;
    td_wire_channel actions[TD_WIRE_MAX_CHANNELS]; // in order
    uint32_t action_count;
    td_wire_channel states[TD_WIRE_MAX_CHANNELS]; // in order
    uint32_t state_count;
    int64_t step_period_us;
    bool rtc;          // can do real-time chunking
    uint32_t capacity; // clients it will take
    uint32_t clients;  // clients it has
    float load;        // 0 idle to 1 saturated
    bool has_attach;   // this answers an attach
    bool attached;
    td_wire_text attach_reason; // why not
} td_wire_status;

// The payload of a `status` query that asks one server to take a client, or
// tells it that the client has left.
typedef struct td_wire_attach {
    td_wire_text client;
    td_wire_text server;  // only this server answers
    uint64_t server_boot; // only this start of it; 0: any
    uint64_t boot;
    uint64_t route;
    bool leave; // this start of the client has another server
    bool every; // it wants every observation answered: they queue
} td_wire_attach;

// Robot to server: a new episode has begun.
typedef struct td_wire_reset {
    td_wire_text client;
    uint64_t boot;
    uint64_t route;
    uint64_t episode;
    td_wire_text reason;
} td_wire_reset;

typedef struct td_wire_component {
    td_wire_text name;   // "system1"
    td_wire_text server; // who answers
    td_wire_text standby;
    td_wire_text model_id, model_version, application; // empty: the robot's own
    uint64_t route;
    double rate_hz;
    int64_t phase_us;
    int64_t deadline_us;
} td_wire_component;

// Controller to robot: which server it may ask for each component, and when.
typedef struct td_wire_grant {
    td_wire_text client;
    uint64_t generation; // an older grant is ignored
    td_wire_component components[TD_WIRE_MAX_COMPONENTS];
    uint32_t component_count;
} td_wire_grant;

typedef struct td_wire_counter {
    td_wire_text name;
    uint64_t value;
} td_wire_counter;

typedef struct td_wire_gauge {
    td_wire_text name;
    double value;
} td_wire_gauge;

typedef struct td_wire_quantiles {
    td_wire_text name;
    uint64_t count;
    double min, max, mean, p50, p95, p99, p999;
} td_wire_quantiles;

// Telemetry of a robot or a server, some times a second.
typedef struct td_wire_metrics {
    td_wire_text source; // client or server id
    uint64_t boot;
    int64_t uptime_us;
    td_wire_text state; // "STREAMING"
    td_wire_counter counters[TD_WIRE_MAX_METRICS];
    uint32_t counter_count;
    td_wire_gauge gauges[TD_WIRE_MAX_METRICS];
    uint32_t gauge_count;
    td_wire_quantiles quantiles[TD_WIRE_MAX_METRICS];
    uint32_t quantiles_count;
} td_wire_metrics;

// Scratch memory of a decoder, used again and again. One thread at a time.
typedef struct td_wire_decoder td_wire_decoder;

TD_NODISCARD td_err td_wire_decoder_new(td_wire_decoder **ret_decoder);
void td_wire_decoder_free(td_wire_decoder *decoder);

// Each decoder fills its struct with views into `data`, valid while those bytes
// are; what a list has room for beyond its count may be left as it was. FORMAT
// (malformed), LIMIT (beyond a limit), VERSION (newer major), with the field
// and what was wrong in `info`.
#define TD_WIRE_MESSAGES(X)                                                    \
    X(obs) X(action) X(status) X(attach) X(reset) X(grant) X(metrics)
#define TD_WIRE_DECODE(name)                                                   \
    TD_NODISCARD td_err td_wire_##name##_decode(                               \
        td_wire_decoder *decoder, const void *data, size_t size,               \
        td_wire_##name *ret_##name, td_errinfo *info);
TD_WIRE_MESSAGES(TD_WIRE_DECODE)
#undef TD_WIRE_DECODE

// The seq of an observation from its first bytes, without decoding the rest.
// Works on any part of a message that holds it. EMPTY when it is not there.
TD_NODISCARD td_err td_wire_obs_peek(const void *head, size_t size,
                                     uint64_t *ret_seq);

// An encoded message as a list of slices: small fields in the encoder's own
// buffer, images and large tensors still where they were. One thread at a time.
typedef struct td_wire_encoder td_wire_encoder;

TD_NODISCARD td_err td_wire_encoder_new(td_wire_encoder **ret_encoder);
void td_wire_encoder_free(td_wire_encoder *encoder);

// Each encoder replaces what `encoder` held. The message's images and tensors
// must live as long as the parts are used. Each image is a part of its own, and
// may be written after the encoding. NOMEM, or what its decoder would refuse.
#define TD_WIRE_ENCODE(name)                                                   \
    TD_NODISCARD td_err td_wire_##name##_encode(td_wire_encoder *encoder,      \
                                                const td_wire_##name *name,    \
                                                td_errinfo *info);
TD_WIRE_MESSAGES(TD_WIRE_ENCODE)
#undef TD_WIRE_ENCODE

// The encoded message, borrowed until the next encode.
const td_slice *td_wire_encoder_parts(const td_wire_encoder *encoder,
                                      size_t *ret_count);
size_t td_wire_encoder_size(const td_wire_encoder *encoder);

// Copies the message into one buffer of at least td_wire_encoder_size() bytes.
void td_wire_encoder_join(const td_wire_encoder *encoder, void *buffer);

// Small helpers.
td_wire_text td_wire_text_of(const char *text); // borrows
bool td_wire_text_is(td_wire_text text, const char *other);
size_t td_wire_dtype_bytes(td_wire_dtype dtype);
const char *td_wire_dtype_name(td_wire_dtype dtype);
const char *td_wire_channel_kind_name(td_wire_channel_kind kind);
const char *td_wire_server_state_name(td_wire_server_state state);

// Keys: cluster/experiment/model/version/application[/client]/topic.
typedef struct td_wire_route {
    const char *cluster, *experiment, *model, *version, *application;
} td_wire_route;

#define TD_WIRE_MAX_KEY (8 * (TD_WIRE_MAX_NAME + 1))

// Whether `chunk` can stand between two slashes: 1 to 64 of A-Z a-z 0-9 . _ -,
// not starting with '.'. INVALID with the reason, naming `field`.
TD_NODISCARD td_err td_wire_key_check(const char *field, const char *chunk,
                                      td_errinfo *info);

// Writes ".../client/topic", or ".../topic" when client is NULL. A client
// may be "*". INVALID if a chunk cannot stand in a key.
TD_NODISCARD td_err td_wire_key(const td_wire_route *route, const char *client,
                                const char *topic,
                                char ret_key[TD_WIRE_MAX_KEY],
                                td_errinfo *info);

#endif
