// SPDX-License-Identifier: Apache-2.0
#ifndef TD_ENGINE_WORKER_WORKER_H
#define TD_ENGINE_WORKER_WORKER_H

// An engine that is another process (docs/worker.md): a Python callable, or any
// program that speaks tendon/worker.h. When it ends, those whose observations
// it had are told, and it is started again.

#include "base/hist.h"
#include "engine/engine.h"
#include "tendon/worker.h"

// `settings` of the td_engine_config. Borrowed for the call only.
typedef struct td_engine_worker_settings {
    td_worker_spec spec;        // zeros where the worker is to say
    const char *const *command; // ends with NULL; NULL: `python`
    const char *python;         // "policy.py:infer" or "module:infer"
    bool batched;               // `python` takes a list of observations
    uint64_t memory_bytes;      // most private memory; 0: no limit
    int64_t start_ns;           // most until it is ready
    int64_t answer_ns;          // a batch that stands still longer hangs
} td_engine_worker_settings;

extern const td_engine_ops td_engine_worker;

// How long answers took beyond the model itself, from the batch in the ring to
// its result seen, of batches that found the worker idle. Any thread; borrowed.
const td_hist *td_engine_worker_overhead_ns(const td_engine *engine);

// The process that runs now; 0: none. Any thread.
int td_engine_worker_pid(const td_engine *engine);

#endif
