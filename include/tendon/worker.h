// SPDX-License-Identifier: Apache-2.0
#ifndef TENDON_WORKER_H
#define TENDON_WORKER_H

// A model in a process of its own: what it shares with the server that started
// it, and the functions of a worker written in C (docs/worker.md).
//
// The two share one file of memory and two eventfds, whose numbers the worker
// finds in its environment: TENDON_WORKER=MEMORY,BELL,ANSWER. The file is
//
//   offset 0               td_worker_offer    the server writes
//   TD_WORKER_PAGE         td_worker_hello    the worker writes
//   offer.requests         TD_WORKER_SLOTS x offer.request_bytes    the server
//   offer.results          TD_WORKER_SLOTS x offer.result_bytes     the worker
//
// so that each side maps what the other writes read-only. All numbers are
// little-endian, and stand where the comments say, in every release with the
// same TD_WORKER_VERSION. Texts are NUL-padded and need no NUL at the end.
//
// Neither side believes the other: each copies a header first, then checks it,
// and the server follows no offset that the worker wrote.
//
// How they meet. The worker loads its model, says in its hello what that is and
// sets hello.phase to TD_WORKER_DESCRIBED. The server compares it with the
// manifest, makes the ring and sets offer.phase to TD_WORKER_RING. The worker
// warms up and sets hello.phase to TD_WORKER_READY. Whoever sets a phase rings:
// the worker with ANSWER, the server with BELL.
//
// How they work. The server writes a batch into a free slot, sets its
// generation last and rings BELL. The worker takes the batch with the smallest
// generation above its last one, answers, sets the result's generation to the
// batch's, last, and rings ANSWER. A result of any other generation is ignored.
//
// A worker whose spec says `prefix` works in two halves: it keeps what a
// TD_WORKER_PREFIX made of each member under the number that the server gave
// it, and answers a TD_WORKER_DECODE from there, any number of times, until the
// server drops that number. Drops go beside the batches: the server writes
// them into offer.drops and then counts them in offer.dropped; the worker lets
// them go when it looks for a batch, and says in hello.dropped how far it is.
// The order is promised: the worker looks for a batch first and at the drops
// then, so that what was counted before a batch's generation was set is gone
// when that batch runs. What is counted later may be gone as well; the server
// drops no number that a batch in a slot names.
//
// A raw picture need not be copied where its message lies in a file of shared
// memory. The server names such files in offer.segments and then counts the
// change in offer.segments_changed. A worker that can maps one when it looks
// for a batch, read-only, and says its number in hello.segments, or no number
// again when the offer's is another; one that says nothing gets copies. The
// sender may write there at any time, and a picture stands at any byte.

#include "tendon/wire.h"

#define TD_WORKER_VERSION 2
#define TD_WORKER_MAGIC UINT64_C(0x72656b726f776474) // "tdworker"
#define TD_WORKER_ENV "TENDON_WORKER"
#define TD_WORKER_PAGE 65536 // every part of the file begins at a multiple
#define TD_WORKER_SLOTS 2
#define TD_WORKER_MAX_BATCH 64
#define TD_WORKER_ALL UINT32_MAX // as hello.member: all of them at once
#define TD_WORKER_ERROR_BYTES 504
#define TD_WORKER_DROPS 2048
#define TD_WORKER_TEXT 256 // as value.dtype: the answer's text
#define TD_WORKER_SEGMENTS 32
#define TD_WORKER_SEGMENT_SHIFT 56 // of item.images

typedef struct td_worker_camera {
    char name[64];          //  0
    uint32_t height, width; // 64, 68
} td_worker_camera;         // 72

typedef struct td_worker_channel {
    char name[64];   //  0
    uint32_t kind;   // 64: td_wire_channel_kind
} td_worker_channel; // 68

// What a model takes and gives. Zeros where a side says nothing.
typedef struct td_worker_spec {
    uint32_t camera_count;          //     0
    uint32_t state_count;           //     4
    uint32_t action_count;          //     8
    uint32_t chunk_rows;            //    12
    uint32_t max_batch;             //    16
    uint32_t rtc;                   //    20: 1 when it can
    float tolerance;                //    24
    uint32_t values_bytes;          //    28: most that a member's values take
    uint32_t prefix;                //    32: 1 when it works in two halves
    uint32_t expects;               //    36: 1 when it wants offer.expected
    td_worker_camera cameras[16];   //    40
    td_worker_channel states[256];  //  1192
    td_worker_channel actions[256]; // 18600
} td_worker_spec;                   // 36008

typedef struct td_worker_segment {
    uint64_t number; //  0: never the same again; set last; 0: none
    uint64_t inode;  //  8: of the file
    char path[112];  // 16
} td_worker_segment; // 128

typedef enum td_worker_offer_phase {
    TD_WORKER_LOAD, // and say hello
    TD_WORKER_RING, // the rest of the file is there
    TD_WORKER_STOP, // end
} td_worker_offer_phase;

typedef struct td_worker_offer {
    uint64_t magic;             //     0
    uint32_t version;           //     8
    uint32_t phase;             //    12: td_worker_offer_phase
    uint64_t requests;          //    16: where slot 0's td_worker_batch is
    uint64_t request_bytes;     //    24: from one slot's to the next's
    uint64_t results;           //    32: where slot 0's td_worker_result is
    uint64_t result_bytes;      //    40: from one slot's to the next's
    uint64_t actions;           //    48: in a slot's results, member 0's
    uint64_t actions_bytes;     //    56: from one member's to the next's
    uint64_t values;            //    64: in a slot's results, member 0's
    uint64_t values_bytes;      //    72: from one member's to the next's
    int64_t step_period_us;     //    80
    char model_id[72];          //    88
    char model_version[72];     //   160
    char device[72];            //   232
    char pretrained_path[4104]; //   304
    td_worker_spec spec;        //  4408: as agreed from TD_WORKER_RING on
    uint64_t expected;          // 40416: grows when a batch is about to come
    uint64_t dropped;           // 40424: prefixes, so far
    uint64_t drops[TD_WORKER_DROPS]; // 40432: their numbers, n at n modulo 2048
    uint64_t segments_changed;       // 56816: grows when one comes or goes
    td_worker_segment segments[TD_WORKER_SEGMENTS]; // 56824
} td_worker_offer;                                  // 60920

typedef enum td_worker_hello_phase {
    TD_WORKER_LOADING,
    TD_WORKER_DESCRIBED, // spec is what the model is
    TD_WORKER_READY,     // warm
    TD_WORKER_FAILED,    // error says why
} td_worker_hello_phase;

typedef struct td_worker_hello {
    uint64_t magic;             //   0
    uint32_t version;           //   8
    uint32_t phase;             //  12: td_worker_hello_phase
    int64_t warm_ns;            //  16: what an answer takes, warm; 0: not known
    uint64_t beat;              //  24: grows with all progress in a batch
    uint64_t running;           //  32: the generation that runs; 0: none
    uint32_t member;            //  40: of it, or TD_WORKER_ALL
    uint32_t environment_count; // 44: numbers of "environment_state"; 0: none
    uint64_t dropped;           //  48: drops that are done
    char error[504];            //  56
    td_worker_spec spec;        // 560
    uint64_t segments[TD_WORKER_SEGMENTS]; // 36568: numbers of those it maps
} td_worker_hello;                         // 36824

// Offsets count from the beginning of the slot's requests, and everything
// begins at a multiple of 64.
typedef struct td_worker_text {
    uint64_t offset; //  0
    uint32_t size;   //  8
    uint32_t unused; // 12
} td_worker_text;    // 16

typedef struct td_worker_tensor {
    uint32_t dtype;    //  0: td_wire_dtype
    uint32_t rank;     //  4: 0 when absent
    uint32_t shape[8]; //  8
    uint64_t offset;   // 40
    uint64_t size;     // 48
    int64_t age_us;    // 56: -1 when it was not said
} td_worker_tensor;    // 64

typedef struct td_worker_named {
    td_worker_text name;     //  0
    td_worker_tensor tensor; // 16
} td_worker_named;           // 80

typedef struct td_worker_pair {
    td_worker_text name, text; // 0, 16
} td_worker_pair;              // 32

// One observation. The pictures of a camera stand at even distances, member
// after member, and so do the states; but a picture whose offset has an n in
// the top byte stands that far into the file of offer.segments[n - 1]. To be
// decoded, it has no state, tensors or pictures: its prefix is made of them.
typedef struct td_worker_item {
    uint64_t seed;               //    0: of all noise
    uint64_t cursor;             //    8
    uint64_t boot;               //   16
    uint64_t episode;            //   24
    uint64_t seq;                //   32
    uint64_t prefix;             //   40: its number
    uint64_t rtc_base_chunk;     //   48
    uint32_t rtc_delay_steps;    //   56
    uint32_t has_rtc;            //   60
    uint32_t tensor_count;       //   64
    uint32_t metadata_count;     //   68
    td_worker_text client;       //   72
    td_worker_text task;         //   88
    td_worker_tensor state;      //  104: state_count x float32
    td_worker_tensor rtc_prefix; //  168
    uint64_t images[16];         //  232: of each camera, height x width x RGB
    td_worker_named tensors[32]; //  360
    td_worker_pair metadata[32]; // 2920
} td_worker_item;                // 3944

typedef enum td_worker_operation {
    TD_WORKER_WHOLE,  // observations to actions
    TD_WORKER_PREFIX, // the first half: to prefixes, kept under their numbers
    TD_WORKER_DECODE, // the second: prefixes to actions
} td_worker_operation;

typedef struct td_worker_batch {
    uint64_t generation;      //  0: set last
    uint32_t count;           //  8
    uint32_t operation;       // 12: td_worker_operation
    td_worker_item items[64]; // 16
} td_worker_batch;            // 252432

// What a model gives beside its actions. The values of a member follow each
// other in its place, in the order of these, each at the next multiple of 64.
typedef struct td_worker_value {
    char name[64];     //  0
    uint32_t dtype;    // 64: td_wire_dtype, or TD_WORKER_TEXT
    uint32_t rank;     // 68: 1 to 8
    uint32_t shape[8]; // 72: of a text, its bytes
} td_worker_value;     // 104

typedef struct td_worker_answer {
    uint32_t status;            //   0: td_err
    uint32_t rows;              //   4
    uint64_t prefix_bytes;      //   8: what its prefix takes
    uint32_t value_count;       //  16
    uint32_t unused;            //  20
    char error[504];            //  24: for the robot, when it is not OK
    td_worker_value values[32]; // 528
} td_worker_answer;             // 3856

typedef struct td_worker_result {
    uint64_t generation;          //  0: set last
    int64_t service_ns;           //  8: what the model itself took
    uint32_t count;               // 16: the batch's
    uint32_t unused;              // 20
    td_worker_answer answers[64]; // 24
} td_worker_result; // 246808; actions and values follow where the offer says

// A worker written in C. One thread.
typedef struct td_worker td_worker;

// Takes what the environment names. Owned by the caller. NOTFOUND (not started
// by a server), VERSION, IO.
TD_NODISCARD td_err td_worker_open(td_worker **ret_worker, td_errinfo *info);
void td_worker_close(td_worker *worker);

// What the server wants. Borrowed; spec is the agreed one after hello.
const td_worker_offer *td_worker_offered(const td_worker *worker);

// Before td_worker_describe(): the model wants a tensor "environment_state" of
// so many float32.
void td_worker_want_environment(td_worker *worker, uint32_t count);

// Says what the model is (NULL: whatever is wanted) and waits for the ring.
// Blocks. CLOSED when the server does not want it.
TD_NODISCARD td_err td_worker_describe(td_worker *worker,
                                       const td_worker_spec *spec,
                                       td_errinfo *info);

// Warm: from now on there are batches. `warm_ns` is what an answer takes, 0 if
// it is not known.
void td_worker_ready(td_worker *worker, int64_t warm_ns);

// There will be none, and why.
void td_worker_fail(td_worker *worker, const char *why);

// Waits for the next batch, which is borrowed until td_worker_done(). Blocks.
// CLOSED when it is time to end, FORMAT for a batch that cannot be.
TD_NODISCARD td_err td_worker_next(td_worker *worker,
                                   const td_worker_batch **ret_batch);

// What an offset of the present batch points to. NULL when `size` bytes from
// there are not inside.
const void *td_worker_at(const td_worker *worker, uint64_t offset,
                         uint64_t size);

// Something has gone forward: member `member` begins, or, again and again,
// another step is done. Without it a long batch looks like one that hangs.
void td_worker_beat(td_worker *worker, uint32_t member);

// Where the actions of a member go: chunk_rows x action_count.
float *td_worker_actions(td_worker *worker, uint32_t member);

// The outcome of a member; `why` (may be NULL) is for the robot. One whose
// prefix is not there is NOTFOUND.
void td_worker_answer_member(td_worker *worker, uint32_t member, td_err status,
                             uint32_t rows, const char *why);

// Room for one more of a member's values, to be filled before
// td_worker_done(). NULL when it is not taken: one too many, too large, or of
// an unknown dtype or rank.
void *td_worker_answer_value(td_worker *worker, uint32_t member,
                             const td_worker_value *value);

// The outcome of a member of a TD_WORKER_PREFIX: kept, and what it takes.
void td_worker_answer_prefix(td_worker *worker, uint32_t member,
                             uint64_t prefix_bytes);

// Who lets a prefix go, inside td_worker_next().
typedef void (*td_worker_drop)(void *user, uint64_t prefix);
void td_worker_on_drop(td_worker *worker, td_worker_drop drop, void *user);

// Who is told, inside td_worker_next(), that a batch is expected within
// milliseconds, if the spec says `expects`: the time to wake a device.
typedef void (*td_worker_expect)(void *user);
void td_worker_on_expect(td_worker *worker, td_worker_expect expect,
                         void *user);

// Hands the batch's answers over. Members without an outcome failed.
void td_worker_done(td_worker *worker, int64_t service_ns);

#endif
