// SPDX-License-Identifier: Apache-2.0
// How many GPUs a split needs to match what rosa plans with 8, once as the
// planner reckons everywhere, once with servers that are asked at random.
#include "bench/rosa.h"

#include "base/rand.h"
#include "plan/capacity/queue.h"

#include <math.h>
#include <stdlib.h>

#define MOST_TIMES 16 // as many GPUs are tried
#define OVERHEAD_MS 6 // as factories have it
#define ARRIVALS 200000
#define HALVINGS 12

static const struct {
    td_plan_split split;
    td_plan_planner planner;
} matches[] = {
    [TD_BENCH_ROSA_MATCH_EQUAL] = {TD_PLAN_SPLIT_EQUAL, TD_PLAN_EQUAL},
    [TD_BENCH_ROSA_MATCH_WEIGHTED] = {TD_PLAN_SPLIT_BY_SIZE, TD_PLAN_WEIGHTED},
};

// A workload with so many GPUs, as a split.
typedef struct divided {
    const td_config_profiles *profiles;
    td_bench_workload workload;
    uint32_t robots;
    td_bench_rosa_split split;
    td_errinfo *info;
} divided;

// Its rate with batches of one; 0: no plan.
static td_err planned_hz(const divided *it, uint32_t gpus, double *ret_hz)
{
    td_plan_options plans = td_plan_options_of(TD_PLAN_PAPER);
    td_bench_workload_size size = td_bench_rosa_size(it->robots);
    td_bench_planned planned;
    plans.split = matches[it->split].split;
    plans.batch_most = 1;
    size.gpus = gpus;
    *ret_hz = 0;
    td_err err = td_bench_workload_plan(it->workload, &size, it->profiles,
                                        &plans, &planned, it->info);
    if (err == TD_ERR_LIMIT) return TD_OK;
    TD_TRY(err);
    *ret_hz = planned.plan->actions_hz;
    td_bench_planned_done(&planned);
    return TD_OK;
}

static td_err match_planned(const divided *it, double wanted_hz,
                            double *ret_times)
{
    *ret_times = 0;
    for (uint32_t gpus = 8; gpus <= 8 * MOST_TIMES; gpus++) {
        double hz;
        TD_TRY(planned_hz(it, gpus, &hz));
        if (hz < wanted_hz * (1 - 1e-9)) continue;
        *ret_times = gpus / 8.0;
        return TD_OK;
    }
    return TD_OK;
}

// GPUs of System 1; 0: no plan.
static td_err count_system1(const divided *it, uint32_t gpus,
                            uint32_t *ret_count)
{
    td_plan_options plans = td_plan_options_of(matches[it->split].planner);
    td_bench_workload_size size = td_bench_rosa_size(it->robots);
    uint32_t roles[TD_BENCH_ROLES];
    td_bench_planned planned;
    size.gpus = gpus;
    *ret_count = 0;
    td_err err = td_bench_workload_plan(it->workload, &size, it->profiles,
                                        &plans, &planned, it->info);
    if (err == TD_ERR_LIMIT) return TD_OK;
    TD_TRY(err);
    td_bench_planned_roles(&planned, roles);
    *ret_count = roles[0];
    td_bench_planned_done(&planned);
    return TD_OK;
}

static td_err match_random(const divided *it, double rate_hz, double most_hz,
                           double *ret_times)
{
    uint32_t on_one = (uint32_t)(most_hz / rate_hz + 1e-9);
    *ret_times = 0;
    if (on_one == 0) return TD_OK;
    uint32_t wanted = (it->robots + on_one - 1) / on_one;
    for (uint32_t gpus = wanted < 8 ? 8 : wanted; gpus <= 8 * MOST_TIMES;
         gpus++) {
        uint32_t count;
        TD_TRY(count_system1(it, gpus, &count));
        if (count < wanted) continue;
        *ret_times = gpus / 8.0;
        return TD_OK;
    }
    return TD_OK;
}

static void draw_arrivals(double rate_hz, double *ret_ms, size_t count)
{
    double at_ms = 0;
    td_rand rand;
    td_rand_init(&rand, 1);
    for (size_t i = 0; i < count; i++) {
        at_ms += -log(1 - td_rand_unit(&rand)) * 1000 / rate_hz;
        ret_ms[i] = at_ms;
    }
}

// What a server of System 1 takes with batches of one when requests come at
// random and 99 % of them are to meet the deadline.
static td_err find_random_hz(const td_config_profiles *profiles, double *ret_hz,
                             td_errinfo *info)
{
    const td_config_profile *system1;
    td_plan_service service;
    const td_bench_workload_size size = td_bench_rosa_size(1);
    double limit_ms = size.system1_ms - OVERHEAD_MS;
    TD_TRY(td_config_profiles_find(profiles, "nvidia/GR00T-N1.6-3B", "",
                                   "NVIDIA H200", &system1, info));
    td_plan_service_init(&service, system1);
    double low = 0;
    double high = 1000 / td_config_profile_mean_ms(system1, 1);
    double *arrivals_ms = malloc(ARRIVALS * sizeof *arrivals_ms);
    if (!arrivals_ms) return TD_ERR_NOMEM;
    for (int i = 0; i < HALVINGS; i++) {
        double middle = (low + high) / 2;
        draw_arrivals(middle, arrivals_ms, ARRIVALS);
        if (td_plan_queue_run(&service, arrivals_ms, ARRIVALS, 1, 0, 99,
                              4 * limit_ms)
                .tail_ms <= limit_ms)
            low = middle;
        else
            high = middle;
    }
    free(arrivals_ms);
    *ret_hz = low;
    return TD_OK;
}

static td_err match(const divided *it, double wanted_hz,
                    td_bench_rosa_needs *needs, int fleet)
{
    td_bench_rosa_split split = it->split;
    TD_TRY(match_planned(it, wanted_hz,
                         &needs->planned[split][it->workload][fleet]));
    return match_random(it, wanted_hz / it->robots, needs->random_hz,
                        &needs->random[split][it->workload][fleet]);
}

td_err td_bench_rosa_match(const td_config_profiles *profiles,
                           const td_bench_rosa_sweep *sweep,
                           td_bench_rosa_needs *ret_needs, td_errinfo *info)
{
    *ret_needs = (td_bench_rosa_needs){.random_hz = 0};
    TD_TRY(find_random_hz(profiles, &ret_needs->random_hz, info));
    for (int w = 0; w <= TD_BENCH_P4; w++)
        for (int f = 0; f < TD_BENCH_ROSA_FLEETS; f++)
            for (int s = 0; s < TD_BENCH_ROSA_MATCH_COUNT; s++) {
                const divided it = {profiles, (td_bench_workload)w,
                                    td_bench_rosa_fleets[f],
                                    (td_bench_rosa_split)s, info};
                td_bench_progress("rosa: GPUs for %s, %u robots",
                                  td_bench_workload_name(it.workload),
                                  it.robots);
                TD_TRY(match(&it,
                             sweep->points[w][f][TD_BENCH_ROSA_ROSA].planned_hz,
                             ret_needs, f));
                TD_TRY(td_bench_sleep(0));
            }
    return TD_OK;
}
