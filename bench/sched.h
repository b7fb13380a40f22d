// SPDX-License-Identifier: Apache-2.0
#ifndef TD_BENCH_SCHED_H
#define TD_BENCH_SCHED_H

// The parts of the scheduler's benchmark.

#include "bench/bench.h"
#include "sched/sched.h"

// Robots whose buffers run dry, in virtual time, beside Inferential's
// schedulers (`beside`) or alone.
TD_NODISCARD td_err td_bench_sched_misses(const td_bench_options *options,
                                          bool beside, td_errinfo *info);

// One urgent client of five on a device that is never idle, likewise.
TD_NODISCARD td_err td_bench_sched_saturated(const td_bench_options *options,
                                             bool beside, td_errinfo *info);

#endif
