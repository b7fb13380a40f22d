// SPDX-License-Identifier: Apache-2.0
#ifndef TENDON_CONNECT_H
#define TENDON_CONNECT_H

// Ask a model that runs on a server: the C API of a connection.
//
// For programs that are not a robot's control loop (that is tendon/robot.h): a
// planner, a logger, a test bench, the SDK of another language.
//
//   td_connection  one network session under one client's name
//   td_model       one model asked through it: finds a server, attaches, holds
//                  on to it, and looks for another when it is gone
//
// An observation has a number, its seq, and ends exactly once:
//
//   answered    here is what the model says
//   error       the server refused it or failed: a code and a text
//   superseded  a newer one took its place, here or on the server, before it
//               ran: newest wins
//   lost        its server is gone, or it got lost on the way
//   expired     nothing came within its limit
//
// With `every` nothing is superseded: all of them queue, here until there is a
// server, and there by the manifest's `scheduling.queue`. An error then says
// FULL (the queue was full) or TIMEOUT (it queued for too long).
//
// td_model_get_result() gives the outcomes one by one, in the order in which
// they came; those that were superseded are named in the next result. While
// there is no server the newest observation waits for one.
//
// Threads: call any function on any thread, several at a time too, unless it
// says otherwise. The log is td_log_to()'s (tendon/robot.h). docs/sdk.md has
// the same example in four languages.

#include "tendon/err.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct td_connection td_connection;
typedef struct td_model td_model;

// Begin with zeros and set `size`. A text that is NULL is taken from the
// environment; where that has none, the error says so. Ids are 1 to 64 of
// A-Z a-z 0-9 . _ -, not starting with '.'.
typedef struct td_connection_settings {
    size_t size;             // sizeof(td_connection_settings)
    const char *server;      // "tcp/host:7447" or "tcp://host:7447"; a server
                             // or a router; TENDON_SERVER
    const char *cluster;     // TENDON_CLUSTER
    const char *experiment;  // TENDON_EXPERIMENT
    const char *client_id;   // one program at a time has it; TENDON_CLIENT_ID
    const char *client_type; // sent as metadata `client_type`; "": not sent;
                             // TENDON_CLIENT_TYPE
    bool peer;               // a peer of the network, not a client of `server`
    bool no_shared_memory;   // not even with a server on this machine
    bool every;              // every observation is answered, or told why not:
                             // they queue, here and at the server
} td_connection_settings;

// Opens the session and goes on connecting behind it: there need not be a
// server yet. The settings are copied. Blocks for a moment (200 ms). Owned by
// the caller. INVALID (what is missing or wrong, and where it could be given),
// VERSION (settings that this library does not know), IO, NOMEM.
TD_NODISCARD td_err td_connection_open(const td_connection_settings *settings,
                                       td_connection **ret_connection,
                                       td_errinfo *info);

// Closes it; the session itself ends with the last of its models. Blocks for a
// moment.
void td_connection_close(td_connection *connection);

// Begin with zeros and set `size`.
typedef struct td_model_settings {
    size_t size;               // sizeof(td_model_settings)
    const char *model_id;      // TENDON_MODEL
    const char *version;       // TENDON_VERSION
    const char *application;   // TENDON_APPLICATION
    int64_t latency_budget_ms; // an answer is wanted within; 0: not said
    bool has_priority;
    uint32_t priority;     // of its observations: 0 is highest; else 1
    int64_t limit_ms;      // an observation expires after; 0: 5000
    uint32_t jpeg_quality; // raw pictures of three channels are sent as JPEG of
                           // this quality, 1 to 100; 0: they stay raw
    bool raw_if_shared;    // but stay raw where the server shares our memory
} td_model_settings;

// Begins to look for a server of the model, behind this call. The settings are
// copied. Owned by the caller. INVALID, VERSION as above; EXISTS (this
// connection has that model open), IO, NOMEM.
TD_NODISCARD td_err td_connection_model(td_connection *connection,
                                        const td_model_settings *settings,
                                        td_model **ret_model, td_errinfo *info);

// Waits until a server has it, at most `timeout_ms` (negative: no limit).
// Observing needs no wait. Blocks. When there is none: NOTFOUND (nobody answers
// for this model, or those who do are not ready), DENIED (the reason of the
// server), MISMATCH, VERSION, TIMEOUT (not asked yet); CLOSED after
// td_model_stop().
TD_NODISCARD td_err td_model_wait(td_model *model, int64_t timeout_ms,
                                  td_errinfo *info);

// "CONNECTING", "ATTACHED", "RECONNECTING", "STOPPED". Never blocks.
const char *td_model_state(const td_model *model);

typedef enum td_model_dtype {
    TD_MODEL_F32,
    TD_MODEL_F64,
    TD_MODEL_F16,
    TD_MODEL_BF16,
    TD_MODEL_U8,
    TD_MODEL_I8,
    TD_MODEL_I16,
    TD_MODEL_I32,
    TD_MODEL_I64,
    TD_MODEL_BOOL,
} td_model_dtype;

#define TD_MODEL_MAX_RANK 8

// Little-endian, in C order.
typedef struct td_model_tensor {
    const char *name; // NULL for the state and the actions
    td_model_dtype dtype;
    uint32_t rank; // 0: absent
    uint32_t shape[TD_MODEL_MAX_RANK];
    const void *data; // sent: as it lies; received: aligned for its dtype
    size_t bytes;     // sent: 0 is as many as the shape needs
    bool has_age;     // sent
    int64_t age_us;   // how old the value is
} td_model_tensor;

typedef enum td_model_codec {
    TD_MODEL_RAW, // height x width x channels bytes
    TD_MODEL_JPEG,
    TD_MODEL_PNG,
} td_model_codec;

typedef struct td_model_image {
    const char *name; // the camera, as the model calls it
    td_model_codec codec;
    uint32_t height, width, channels; // of RAW
    const void *data;
    size_t bytes; // RAW: 0 is as many as its sides need
} td_model_image;

typedef struct td_model_pair {
    const char *name, *text;
} td_model_pair;

// Begin with zeros and set `size`. All of it is borrowed until the call
// returns. At most 16 images, 32 tensors and 31 pairs of metadata.
typedef struct td_model_observation {
    size_t size;           // sizeof(td_model_observation)
    td_model_tensor state; // f32, one side, finite, where the model wants one
    const td_model_tensor *tensors;
    uint32_t tensor_count;
    const td_model_image *images;
    uint32_t image_count;
    const td_model_pair *metadata;
    uint32_t metadata_count;
    const char *task; // the instruction; NULL: ""
    float urgency;    // 0 to 1
    bool has_priority;
    uint32_t priority; // instead of the model's
    bool has_steps_remaining;
    uint32_t steps_remaining;  // actions left to play
    bool must_go;              // nothing is left to play
    uint64_t episode;          // a greater one resets the client there
    uint64_t cursor;           // actions played so far
    int64_t latency_budget_ms; // instead of the model's; 0: the model's
    int64_t limit_ms;          // likewise
} td_model_observation;

// Sends an observation, or keeps it until there is a server, in the place of an
// older one. Pictures are compressed, and everything is copied once (into
// shared memory where the server is on this machine), on the calling thread.
// Waits at most milliseconds for the network, or half a second for raw pictures
// on a slow link. On failure there is no observation: INVALID, FORMAT, LIMIT
// (what is wrong with it), IO, FULL (it could not be sent; with `every`, 256
// are open or not taken), VERSION, NOMEM;
// CLOSED after td_model_stop().
TD_NODISCARD td_err td_model_observe(td_model *model,
                                     const td_model_observation *observation,
                                     uint64_t *ret_seq, td_errinfo *info);

typedef enum td_model_outcome {
    TD_MODEL_ANSWERED,
    TD_MODEL_ERROR,
    TD_MODEL_SUPERSEDED,
    TD_MODEL_LOST,
    TD_MODEL_EXPIRED,
} td_model_outcome;

typedef enum td_model_kind {
    TD_MODEL_CHUNK,
    TD_MODEL_PLAN,    // `text`
    TD_MODEL_VERDICT, // `is_unsafe` and `text`
} td_model_kind;

// How an observation ended. Texts are never NULL. Later versions add members
// at the end.
typedef struct td_model_result {
    size_t size; // of this struct, as the library has it
    uint64_t seq;
    td_model_outcome outcome; // never SUPERSEDED
    td_err error;             // ERROR: the server's code (INTERNAL: one that
                              // this library does not know); LOST: IO; EXPIRED:
                              // TIMEOUT
    const char *error_text;   // why, for a person; "" when it was answered

    td_model_kind kind;
    td_model_tensor actions; // rows x channels; rank 0: none
    const td_model_tensor *results;
    uint32_t result_count;
    const char *text;
    bool is_unsafe;
    const char *server; // who answered
    uint64_t chunk_id;
    float inference_ms, queue_ms; // on the server
    int64_t round_trip_us;        // from observing to this outcome

    const uint64_t *superseded; // seqs that were, since the result before
    uint32_t superseded_count;
} td_model_result;

// The next outcome. Waits at most `timeout_ms` (0: not at all, negative: no
// limit). Owned by the caller, with the memory that its tensors lie in: they
// are not copied, and it may outlive its model. At most 64 wait to be taken;
// then the oldest is dropped and counted (`unread`); not so with `every`.
// TIMEOUT; CLOSED after td_model_stop(), when all are taken.
TD_NODISCARD td_err td_model_get_result(td_model *model, int64_t timeout_ms,
                                        td_model_result **ret_result);
void td_model_result_free(td_model_result *result);

// "answered", "error", "superseded", "lost", "expired".
const char *td_model_outcome_name(td_model_outcome outcome);

// A descriptor that polls as readable while a result waits (and once it is
// stopped): for select, epoll, asyncio. Only to be polled; borrowed while the
// model is open. Never blocks. IO.
TD_NODISCARD td_err td_model_fd(td_model *model, int *ret_fd);

// Every number of the model by its name: "observed"; the outcomes; "open"
// (those that have not ended); "unread" and "unnamed" (results, and superseded
// seqs, that nobody took in time); of answers, "late" (to what had ended),
// "strangers" (of another server or start), "malformed" and "unkept" (no
// room); "status_nobody", "status_refused", "status_newer" and the like, of
// servers that were asked in vain; "attached" (how often); and "round_trip_ms"
// of the answers taken, with "/count", "/mean", "/p50", "/p99", "/p999" and
// "/max". `each` runs on the calling thread. Never blocks for long.
typedef void (*td_model_number_fn)(void *user, const char *name, double value);
void td_model_report(td_model *model, td_model_number_fn each, void *user);

// One of them. NOTFOUND.
TD_NODISCARD td_err td_model_number(td_model *model, const char *name,
                                    double *ret_value);

// What is open ends as lost, and calls that wait return. Signal handlers may
// not call it. Never blocks for long.
void td_model_stop(td_model *model);

// Leaves the server, stops and frees. No call may be running: stop first where
// one may be. Blocks for a moment, a second at most.
void td_model_close(td_model *model);

#ifdef __cplusplus
}
#endif

#endif
