// SPDX-License-Identifier: Apache-2.0
#ifndef TD_ENGINE_BLOCKING_H
#define TD_ENGINE_BLOCKING_H

// A thread for a model that can only be called and waited for: it turns run()
// into the submit and done of td_engine_ops. One batch runs at a time, in the
// order of submission.

#include "base/err.h"
#include "tendon/engine.h"

typedef struct td_engine_blocking td_engine_blocking;

typedef enum td_engine_part {
    TD_ENGINE_WHOLE,  // submit()
    TD_ENGINE_PREFIX, // prefix()
    TD_ENGINE_DECODE, // decode()
} td_engine_part;

// One batch that was submitted.
typedef struct td_engine_job {
    td_engine_part part;
    td_engine_batch *batch; // borrowed until `done`
    int64_t submitted_ns;
} td_engine_job;

// Runs one batch and sets each item's outputs. On the wrapper's thread; blocks.
typedef void (*td_engine_run)(void *model, const td_engine_job *job);

#define TD_ENGINE_BLOCKING_INFLIGHT 8

typedef struct td_engine_blocking_config {
    const char *thread_name;
    uint32_t max_batch;
    uint32_t most_inflight; // 1 to TD_ENGINE_BLOCKING_INFLIGHT; 0: 1
    td_engine_run run;
    void *model; // borrowed until td_engine_blocking_free()
} td_engine_blocking_config;

// Starts the thread. Owned by the caller.
TD_NODISCARD td_err
td_engine_blocking_new(const td_engine_blocking_config *config,
                       td_engine_blocking **ret_blocking, td_errinfo *info);

// Finishes what was taken, each `done` included, stops and frees. Blocks.
void td_engine_blocking_free(td_engine_blocking *blocking);
TD_AUTO_FREE(td_engine_blocking, td_engine_blocking_free)

// Takes a batch and returns at once; service_ns is set before `done`. Any
// thread, `done` included. BUSY while most_inflight were taken, INVALID (empty
// or too large), CLOSED (inside a `done` that td_engine_blocking_free() waits
// for).
TD_NODISCARD td_err td_engine_blocking_submit(td_engine_blocking *blocking,
                                              td_engine_part part,
                                              td_engine_batch *batch,
                                              td_engine_done done, void *user);

#endif
