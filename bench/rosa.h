// SPDX-License-Identifier: Apache-2.0
#ifndef TD_BENCH_ROSA_H
#define TD_BENCH_ROSA_H

// The Rosa paper's evaluation, planned and simulated again.
//
// One set of constants for everything: the profiles in profiles/, 6 ms beside
// the model, actions of exactly 200 ms, robots that begin anywhere, servers
// that take who comes first, misses that are only counted.

#include "bench/bench.h"
#include "bench/workload.h"

#define TD_BENCH_ROSA_FLEETS 4
extern const uint32_t td_bench_rosa_fleets[TD_BENCH_ROSA_FLEETS]; // 8 to 64

// Who plans, and what of it is changed.
#define TD_BENCH_ROSA_SYSTEMS(X)                                               \
    X(ROSA, "rosa")                                                            \
    X(EQUAL, "equal")                                                          \
    X(WEIGHTED, "weighted")                                                    \
    X(UNCAPPED, "uncapped") /* rosa's plan, but robots ask when they can */    \
    X(SPLIT_EQUAL, "rosa-on-equal") /* its rates and batches, equal GPUs */    \
    X(SPLIT_WEIGHTED, "rosa-on-weighted")                                      \
    X(DEDICATED, "gpu-a-model")                                                \
    X(DEDICATED_ROBOT, "gpu-a-robot")

typedef enum td_bench_rosa_system {
#define TD_BENCH_ROSA_ENUM(name, text) TD_BENCH_ROSA_##name,
    TD_BENCH_ROSA_SYSTEMS(TD_BENCH_ROSA_ENUM)
#undef TD_BENCH_ROSA_ENUM
        TD_BENCH_ROSA_SYSTEM_COUNT
} td_bench_rosa_system;

const char *td_bench_rosa_name(td_bench_rosa_system system);

// As the paper's replays: misses are only counted.
td_bench_workload_size td_bench_rosa_size(uint32_t robots);

typedef struct td_bench_rosa_point {
    bool feasible;                 // there is a plan
    uint32_t gpus[TD_BENCH_ROLES]; // of each component
    double planned_hz;             // 0: not capped
    double raw_hz, qualified_hz;
    double met;            // of System 1, percent
    double p50_ms, p99_ms; // of System 1
} td_bench_rosa_point;

typedef struct td_bench_rosa_sweep {
    td_bench_rosa_point points[TD_BENCH_WORKLOAD_COUNT][TD_BENCH_ROSA_FLEETS]
                              [TD_BENCH_ROSA_SYSTEM_COUNT];
} td_bench_rosa_sweep;

// Every system on every workload, from 8 to 64 robots. CANCELLED.
TD_NODISCARD td_err td_bench_rosa_run(const td_bench_options *options,
                                      const td_config_profiles *profiles,
                                      td_bench_rosa_sweep *ret_sweep,
                                      td_errinfo *info);

// How many times as many GPUs a split needs for the rate that rosa plans with
// 8, with batches of one; 0: more than was tried.
typedef enum td_bench_rosa_split {
    TD_BENCH_ROSA_MATCH_EQUAL,
    TD_BENCH_ROSA_MATCH_WEIGHTED,
    TD_BENCH_ROSA_MATCH_COUNT
} td_bench_rosa_split;

typedef double td_bench_rosa_times[TD_BENCH_WORKLOAD_COUNT]
                                  [TD_BENCH_ROSA_FLEETS];

typedef struct td_bench_rosa_needs {
    // By the planner, as it reckons everywhere else.
    td_bench_rosa_times planned[TD_BENCH_ROSA_MATCH_COUNT];
    // With as few robots on a server as meet their deadlines when requests come
    // at random.
    td_bench_rosa_times random[TD_BENCH_ROSA_MATCH_COUNT];
    double random_hz; // what one server takes then
} td_bench_rosa_needs;
TD_NODISCARD td_err td_bench_rosa_match(const td_config_profiles *profiles,
                                        const td_bench_rosa_sweep *sweep,
                                        td_bench_rosa_needs *ret_needs,
                                        td_errinfo *info);

// System 1 alone on one GPU, without a deadline, with full batches.
#define TD_BENCH_ROSA_PERIODS 5
#define TD_BENCH_ROSA_CROWDS 5
extern const double td_bench_rosa_periods_ms[TD_BENCH_ROSA_PERIODS];
extern const uint32_t td_bench_rosa_crowds[TD_BENCH_ROSA_CROWDS];

typedef struct td_bench_rosa_best {
    uint32_t batch[TD_BENCH_ROSA_PERIODS][TD_BENCH_ROSA_CROWDS];
    double speedup[TD_BENCH_ROSA_PERIODS][TD_BENCH_ROSA_CROWDS]; // over 1
    double all[TD_BENCH_ROSA_PERIODS][TD_BENCH_ROSA_CROWDS]; // robots in one
                                                             // batch, likewise
} td_bench_rosa_best;
TD_NODISCARD td_err td_bench_rosa_batches(const td_bench_options *options,
                                          const td_config_profiles *profiles,
                                          td_bench_rosa_best *ret_best,
                                          td_errinfo *info);

// Draws the paper's Figures 6 to 14 into the folder of --plot.
TD_NODISCARD td_err td_bench_rosa_plot(const td_bench_options *options,
                                       const td_config_profiles *profiles,
                                       const td_bench_rosa_sweep *sweep,
                                       const td_bench_rosa_needs *needs,
                                       const td_bench_rosa_best *best,
                                       td_errinfo *info);

#endif
