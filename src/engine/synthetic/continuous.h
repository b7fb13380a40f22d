// SPDX-License-Identifier: Apache-2.0
#ifndef TD_ENGINE_SYNTHETIC_CONTINUOUS_H
#define TD_ENGINE_SYNTHETIC_CONTINUOUS_H

// The thread of a synthetic engine that batches continuously: what is submitted
// joins what runs (synthetic/shared.h) and is done when its share of the device
// has done it, in whatever order that is.

#include "engine/blocking.h"
#include "engine/synthetic/shared.h"

typedef struct td_engine_synthetic_continuous td_engine_synthetic_continuous;

// Answers one batch, without waiting, and returns the work that it is: 1 on
// average. On the thread.
typedef double (*td_engine_synthetic_answer)(void *model,
                                             const td_engine_job *job);

typedef struct td_engine_synthetic_continuous_config {
    const char *thread_name;
    uint32_t max_batch; // members at a time, of all batches
    int64_t time_ns[TD_ENGINE_MAX_BATCH + 1]; // as td_engine_synthetic_shared
    int64_t prepare_ns;                       // before a batch joins
    td_engine_synthetic_answer answer;
    void *model; // borrowed until it is freed
} td_engine_synthetic_continuous_config;

// Starts the thread. Owned by the caller.
TD_NODISCARD td_err td_engine_synthetic_continuous_new(
    const td_engine_synthetic_continuous_config *config,
    td_engine_synthetic_continuous **ret_continuous, td_errinfo *info);

// Finishes what was submitted, stops and frees. Blocks.
void td_engine_synthetic_continuous_free(
    td_engine_synthetic_continuous *continuous);
TD_AUTO_FREE(td_engine_synthetic_continuous,
             td_engine_synthetic_continuous_free)

// As td_engine_blocking_submit(); BUSY when there is no room for all members.
TD_NODISCARD td_err td_engine_synthetic_continuous_submit(
    td_engine_synthetic_continuous *continuous, td_engine_part part,
    td_engine_batch *batch, td_engine_done done, void *user);

#endif
