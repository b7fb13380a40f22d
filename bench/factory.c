// SPDX-License-Identifier: Apache-2.0
// Our own plans on the Rosa paper's workloads and profiles, beside what the
// paper reached. Each plan is simulated with jitter in actions and network, by
// the deadlines of our scheduler, and must hold for every robot and component.
#include "bench/workload.h"

#include "base/clock.h"
#include "bench/bench.h"

#include <stdio.h>

// How robots act, and how their actions vary: up to 5 %, or by a deviation of
// 5 %.
typedef struct variant {
    const char *name, *policy;
    bool deviates, limited;
} variant;

static const variant variants[] = {
    {"sync", "", false, true},
    {"sync/deviation", "", true, true},
    {"async", "  execution: async\n", false, false},
};

static const struct {
    td_bench_workload workload;
    uint32_t robots; // 0: as many as give most
    double paper_hz; // of mixes: derived from its ratios
    double limit;
} cases[] = {
    {TD_BENCH_P4, 8, 23.9, 1.2},     {TD_BENCH_P4, 32, 89.4, 1.2},
    {TD_BENCH_P2, 32, 106.9, 1.15},  {TD_BENCH_P3, 32, 106.9, 1.14},
    {TD_BENCH_P4, 64, 78.8, 1.5},    {TD_BENCH_MIX2, 0, 96.6, 1.15},
    {TD_BENCH_MIX4, 0, 100.5, 1.15},
};

static const uint32_t fleets[] = {8, 16, 32, 64};

static td_sim_factory_options long_run(const td_bench_options *options,
                                       const variant *how)
{
    td_sim_factory_options sim = td_sim_factory_defaults;
    sim.deviates = how->deviates;
    sim.runs = options->quick ? 1 : 20;
    sim.duration_ns = (options->quick ? 30 : 620) * TD_NS_PER_S;
    return sim;
}

static td_err plan(td_bench_workload workload, uint32_t robots,
                   const char *policy, const td_config_profiles *profiles,
                   td_bench_planned *ret_planned, td_errinfo *info)
{
    td_plan_options plans = td_plan_options_of(TD_PLAN_TENDON);
    td_bench_workload_size size = td_bench_workload_of(robots);
    size.policy = policy;
    return td_bench_workload_plan(workload, &size, profiles, &plans,
                                  ret_planned, info);
}

// The fleet whose plan promises most.
static td_err find_peak(td_bench_workload workload, const char *policy,
                        const td_config_profiles *profiles,
                        uint32_t *ret_robots, td_errinfo *info)
{
    double most_hz = -1;
    for (size_t i = 0; i < TD_COUNT_OF(fleets); i++) {
        td_bench_planned planned;
        td_err err =
            plan(workload, fleets[i], policy, profiles, &planned, info);
        if (err == TD_ERR_LIMIT) continue;
        TD_TRY(err);
        if (planned.plan->actions_hz > most_hz) {
            most_hz = planned.plan->actions_hz;
            *ret_robots = fleets[i];
        }
        td_bench_planned_done(&planned);
    }
    return most_hz < 0 ? TD_ERR_LIMIT : TD_OK;
}

// The part that was on time of the robot and component that fares worst.
static double least_met(const td_sim_factory_result *result)
{
    double least = 1;
    for (size_t i = 0; i < result->stream_count; i++) {
        double met = td_sim_factory_met(&result->streams[i]);
        if (met < least) least = met;
    }
    return 100 * least;
}

static void print(const td_bench_options *options, size_t i, uint32_t robots,
                  const variant *how, const td_bench_planned *planned,
                  const td_sim_factory_result *result)
{
    char name[64];
    int used =
        snprintf(name, sizeof name, "%s/%u/%s/",
                 td_bench_workload_name(cases[i].workload), robots, how->name);
    char *metric = name + used;
    size_t room = sizeof name - (size_t)used;
    (void)snprintf(metric, room, "qualified");
    td_bench_row row = {.bench = "factory",
                        .name = name,
                        .value = result->qualified_hz,
                        .unit = "1/s",
                        .more = true,
                        .against = "paper",
                        .ratio = result->qualified_hz / cases[i].paper_hz};
    if (how->limited) {
        row.limited = TD_BENCH_RATIO;
        row.limit = cases[i].limit;
    }
    td_bench_print(options, &row);
    (void)snprintf(metric, room, "least-met");
    row = (td_bench_row){.bench = "factory",
                         .name = name,
                         .value = least_met(result),
                         .unit = "%",
                         .more = true,
                         .limited = TD_BENCH_VALUE,
                         .limit = 99};
    td_bench_print(options, &row);
    uint32_t gpus[TD_BENCH_ROLES];
    td_bench_planned_roles(planned, gpus);
    td_bench_say(options, "    %.4g planned, GPUs %u:%u:%u:%u",
                 planned->plan->actions_hz, gpus[0], gpus[1], gpus[2], gpus[3]);
}

static td_err run_case(const td_bench_options *options, size_t i,
                       const variant *how, const td_config_profiles *profiles,
                       td_errinfo *info)
{
    td_sim_factory_options sim = long_run(options, how);
    td_sim_factory_result result;
    td_bench_planned planned;
    uint32_t robots = cases[i].robots;
    td_bench_workload workload = cases[i].workload;
    if (robots == 0)
        TD_TRY(find_peak(workload, how->policy, profiles, &robots, info));
    td_bench_progress("factory: %s, %u robots, %s",
                      td_bench_workload_name(workload), robots, how->name);
    TD_TRY(plan(workload, robots, how->policy, profiles, &planned, info));
    td_err err = td_sim_factory_run(planned.factory, profiles, planned.plan,
                                    &sim, &result, info);
    if (err == TD_OK) {
        print(options, i, robots, how, &planned, &result);
        td_sim_factory_result_done(&result);
    }
    td_bench_planned_done(&planned);
    return err;
}

td_err td_bench_factory(const td_bench_options *options, td_errinfo *info)
{
    TD_AUTO(td_config_profiles) *profiles = NULL;
    TD_TRY(td_bench_workload_profiles(&profiles, info));
    for (size_t m = 0; m < TD_COUNT_OF(variants); m++)
        for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
            TD_TRY(run_case(options, i, &variants[m], profiles, info));
            TD_TRY(td_bench_sleep(0));
        }
    return TD_OK;
}
