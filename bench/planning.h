// SPDX-License-Identifier: Apache-2.0
#ifndef TD_BENCH_PLANNING_H
#define TD_BENCH_PLANNING_H

// The factories of `tendon bench plan`, and its two halves.

#include "bench/bench.h"
#include "plan/plan.h"

#define TD_BENCH_PLANNING_CASES 3

typedef struct td_bench_planning_case {
    const char *name;
    uint32_t classes, robots, gpus;
    double most_ms;    // of a plan
    double most_ratio; // of the packing, beside OR-Tools
} td_bench_planning_case;

extern const td_bench_planning_case
    td_bench_planning_cases[TD_BENCH_PLANNING_CASES];

// On the wall.
double td_bench_planning_now_ms(void);

// The packing alone, beside OR-Tools where it is installed. NOMEM, IO,
// MISMATCH when the two find other costs, CANCELLED.
TD_NODISCARD td_err td_bench_planning_packings(
    const td_bench_options *options,
    td_config_factory *const factories[TD_BENCH_PLANNING_CASES],
    const td_config_profiles *profiles, td_errinfo *info);

#endif
