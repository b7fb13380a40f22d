// SPDX-License-Identifier: Apache-2.0
#ifndef TD_ENGINE_MEASURE_H
#define TD_ENGINE_MEASURE_H

// How long an engine takes, by the clock: from submit() to done.

#include "engine/probe.h"
#include "engine/traffic.h"

#define TD_ENGINE_MEASURE_PARTS 5

// What is measured, and how to stop it.
typedef struct td_engine_measure {
    td_engine *engine;      // idle and READY
    td_engine_probe *probe; // of its spec
    bool (*stop)(void);     // asked between two batches
} td_engine_measure;

// `count` times of a batch of n, after a few that do not count. Blocks.
// CANCELLED when stopped, or as td_engine_probe_run().
TD_NODISCARD td_err td_engine_measure_batches(const td_engine_measure *measure,
                                              uint32_t n, size_t count,
                                              double *ret_ms, td_errinfo *info);

// Runs traffic that starts at 0 to its end, from now on. Blocks. As above.
TD_NODISCARD td_err td_engine_measure_traffic(const td_engine_measure *measure,
                                              td_engine_traffic *traffic,
                                              td_errinfo *info);

// How steady times were that were taken one after the other: by which part of
// it the median of one of TD_ENGINE_MEASURE_PARTS parts is away from that of
// all, at most. 0 for fewer times than parts. NOMEM.
TD_NODISCARD td_err td_engine_measure_noise(const double *ms, size_t count,
                                            double *ret_noise);

#endif
