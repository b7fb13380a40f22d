// SPDX-License-Identifier: Apache-2.0
#ifndef TD_BENCH_WORKLOAD_H
#define TD_BENCH_WORKLOAD_H

// The tasks and fleets of the Rosa paper's evaluation (arXiv 2607.01088, Tables
// 1 and 2), planned and simulated with the profiles in profiles/.

#include "plan/plan.h"
#include "sim/factory.h"

#define TD_BENCH_WORKLOADS(X)                                                  \
    X(P1, "P1", "1")      /* System 1 alone */                                 \
    X(P2, "P2", "2")      /* with a monitor */                                 \
    X(P3, "P3", "3")      /* with a monitor and safety */                      \
    X(P4, "P4", "4")      /* with both and System 2 */                         \
    X(MIX2, "Mix2", "24") /* half of the robots each */                        \
    X(MIX4, "Mix4", "1234")

typedef enum td_bench_workload {
#define TD_BENCH_WORKLOAD_ENUM(name, text, tasks) TD_BENCH_##name,
    TD_BENCH_WORKLOADS(TD_BENCH_WORKLOAD_ENUM)
#undef TD_BENCH_WORKLOAD_ENUM
        TD_BENCH_WORKLOAD_COUNT
} td_bench_workload;

const char *td_bench_workload_name(td_bench_workload workload);

typedef struct td_bench_workload_size {
    uint32_t robots, gpus;
    double action_ms;   // t_act
    double system1_ms;  // its deadline
    const char *policy; // lines of each task: execution, on_miss; "": none
} td_bench_workload_size;

// 8 GPUs, 200 ms of action, 200 ms for System 1, synchronous, falling back.
td_bench_workload_size td_bench_workload_of(uint32_t robots);

// Owned by the caller. As td_config_factory_parse().
TD_NODISCARD td_err td_bench_workload_factory(
    td_bench_workload workload, const td_bench_workload_size *size,
    td_config_factory **ret_factory, td_errinfo *info);

// Those that come with the program. Owned by the caller. Blocks. NOTFOUND, or
// as td_config_profiles_load().
TD_NODISCARD td_err
td_bench_workload_profiles(td_config_profiles **ret_profiles, td_errinfo *info);

// A factory, its profiles (borrowed) and its plan.
typedef struct td_bench_planned {
    td_config_factory *factory;
    const td_config_profiles *profiles;
    td_plan *plan;
} td_bench_planned;

// LIMIT where the planner finds no plan; else as the two above.
TD_NODISCARD td_err td_bench_workload_plan(td_bench_workload workload,
                                           const td_bench_workload_size *size,
                                           const td_config_profiles *profiles,
                                           const td_plan_options *options,
                                           td_bench_planned *ret_planned,
                                           td_errinfo *info);
void td_bench_planned_done(td_bench_planned *planned);

// GPUs of system1, system2, safety and monitor.
#define TD_BENCH_ROLES 4
void td_bench_planned_roles(const td_bench_planned *planned,
                            uint32_t ret_gpus[TD_BENCH_ROLES]);

#endif
