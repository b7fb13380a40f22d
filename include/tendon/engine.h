// SPDX-License-Identifier: Apache-2.0
#ifndef TENDON_ENGINE_H
#define TENDON_ENGINE_H

// A model behind one interface.
//
// An engine completes: submit() takes a batch and returns, and the answer comes
// later on the engine's own thread, with a status for each member. Equal inputs
// give equal answers: bit for bit alone, within `tolerance` across batch sizes.
// predict is a pure function: no call changes what another one answers.
//
// Engines whose work has two parts (vision and language first, denoising after)
// offer prefix, decode and drop: a prefix is an opaque handle of known size
// that can be decoded more than once. An engine without them leaves them NULL.
//
// To add an engine: fill in a td_engine_ops, add it to the table in
// src/engine/engine.c, and add a row to the conformance suite beside it.

#include "tendon/err.h"
#include "tendon/wire.h"

#define TD_ENGINE_MAX_BATCH 64

typedef struct td_engine td_engine;
typedef struct td_engine_prefix td_engine_prefix;

// What a model takes and gives. Everything is borrowed from the engine.
typedef struct td_engine_spec {
    const char *model_id;
    const char *model_version;
    td_wire_camera cameras[TD_WIRE_MAX_IMAGES];
    uint32_t camera_count;
    td_wire_channel states[TD_WIRE_MAX_CHANNELS];
    uint32_t state_count;
    uint32_t environment_count; // numbers that it wants as the tensor
                                // "environment_state"; 0: none
    td_wire_channel actions[TD_WIRE_MAX_CHANNELS];
    uint32_t action_count;
    uint32_t chunk_rows; // rows of a full chunk
    int64_t step_period_us;
    uint32_t max_batch;     // 1 to TD_ENGINE_MAX_BATCH
    float tolerance;        // largest difference across batch sizes; 0: none
    bool rtc;               // can do real-time chunking
    uint32_t most_inflight; // batches it takes at a time; 0: 1
    bool continuous; // a batch of one joins what runs; its time depends on how
                     // many run
    bool any_images; // it takes pictures of cameras that are not its own
    bool parallel;   // most_inflight batches run side by side, and none takes
                     // another's time
} td_engine_spec;

// Whether it can be asked.
typedef enum td_engine_health {
    TD_ENGINE_READY,
    TD_ENGINE_WARMING, // loading, or on its way back
    TD_ENGINE_BROKEN,  // it has failed too often to hope
} td_engine_health;

// What a model gives beside its actions: named tensors, and one text. Views
// into memory of its own, which grows with what is put there and is used again
// (src/engine/results.h). {0} is an empty one.
typedef struct td_engine_results {
    td_wire_text text; // empty: none
    uint32_t count;
    td_wire_named named[TD_WIRE_MAX_TENSORS];
    uint8_t *memory;
    size_t used, room; // bytes of it
} td_engine_results;

// One member of a batch: an observation, decoded and checked against the spec,
// and where its answer goes. Borrowed by the engine until the batch is done.
typedef struct td_engine_item {
    const td_wire_obs *obs;
    uint64_t seed;            // of all noise: from (client, episode, seq)
    td_engine_prefix *prefix; // out of prefix(), into decode()
    size_t prefix_bytes;      // out of prefix()
    float *actions;           // [chunk_rows x action_count], the caller's
    uint32_t rows;            // out: rows written
    td_err status;            // out
    td_errinfo *info; // out: why it failed, for the robot; the caller's or NULL
    td_engine_results *results; // out: what else it gave, of submit() and
                                // decode(); the caller's, empty, or NULL
} td_engine_item;

typedef struct td_engine_batch {
    td_engine_item *items[TD_ENGINE_MAX_BATCH];
    uint32_t count;
    int64_t service_ns; // out: what the model itself took
} td_engine_batch;

// Called exactly once for each accepted batch, on the engine's thread. It may
// submit the next batch; it must not close the engine.
typedef void (*td_engine_done)(void *user, td_engine_batch *batch);

// What every engine is opened with; `settings` is the engine's own table of the
// manifest, already parsed (see each engine's header).
typedef struct td_engine_config {
    const char *model_id;
    const char *model_version;
    const char *pretrained_path;
    const char *device;
    int64_t step_period_us;
    const void *settings;
} td_engine_config;

typedef struct td_engine_ops {
    const char *name; // as written in the manifest

    // Loads the model and warms it up, so that the first submit is as fast as
    // any. Blocks, for as long as loading takes.
    td_err (*open)(const td_engine_config *config, td_engine **ret_engine,
                   td_errinfo *info);

    // Stops, finishes what was submitted and frees. Blocks. Not inside `done`.
    void (*close)(td_engine *engine);

    const td_engine_spec *(*spec)(const td_engine *engine);

    // Takes a batch and returns at once. BUSY while most_inflight are running,
    // INVALID for an empty batch or one above max_batch, CLOSED while its
    // health is not READY; then `done` is not called.
    td_err (*submit)(td_engine *engine, td_engine_batch *batch,
                     td_engine_done done, void *user);

    // (optional) The first half only: each item gets a prefix. As submit.
    td_err (*prefix)(td_engine *engine, td_engine_batch *batch,
                     td_engine_done done, void *user);

    // (optional) The second half, from each item's prefix. As submit; NOTFOUND
    // for a member whose prefix is no longer there.
    td_err (*decode)(td_engine *engine, td_engine_batch *batch,
                     td_engine_done done, void *user);

    // (optional) Frees a prefix that is in no running batch. Any thread.
    void (*drop)(td_engine *engine, td_engine_prefix *prefix);

    // (optional) Time of a batch of n in nanoseconds, as the engine expects it.
    // Any thread. Without it measured times are used.
    td_err (*estimate)(const td_engine *engine, uint32_t n, int64_t *ret_ns);

    // (optional) Any thread; never blocks. Without it READY. What runs while it
    // stops being READY ends at once, each member with CLOSED.
    td_engine_health (*health)(const td_engine *engine);

    // (optional) A request is expected within milliseconds. A hint: it may wake
    // what sleeps, and runs nothing. Any thread; never blocks.
    void (*warm)(td_engine *engine);
} td_engine_ops;

// Every engine begins with its operations.
struct td_engine {
    const td_engine_ops *ops;
};

#endif
