// SPDX-License-Identifier: Apache-2.0
#include "bench/rosa.h"

#include "base/clock.h"

#define NO_DEADLINE_MS 600000
#define LARGEST_BATCH 16

const uint32_t td_bench_rosa_fleets[TD_BENCH_ROSA_FLEETS] = {8, 16, 32, 64};
const double td_bench_rosa_periods_ms[TD_BENCH_ROSA_PERIODS] = {50, 100, 200,
                                                                400, 800};
const uint32_t td_bench_rosa_crowds[TD_BENCH_ROSA_CROWDS] = {1, 2, 4, 8, 16};

const char *td_bench_rosa_name(td_bench_rosa_system system)
{
    static const char *const names[] = {
#define TD_BENCH_ROSA_TEXT(name, text) text,
        TD_BENCH_ROSA_SYSTEMS(TD_BENCH_ROSA_TEXT)
#undef TD_BENCH_ROSA_TEXT
    };
    return names[system];
}

static td_plan_options plan_options(td_bench_rosa_system system)
{
    static const td_plan_planner planners[] = {
        [TD_BENCH_ROSA_ROSA] = TD_PLAN_PAPER,
        [TD_BENCH_ROSA_EQUAL] = TD_PLAN_EQUAL,
        [TD_BENCH_ROSA_WEIGHTED] = TD_PLAN_WEIGHTED,
        [TD_BENCH_ROSA_UNCAPPED] = TD_PLAN_PAPER,
        [TD_BENCH_ROSA_SPLIT_EQUAL] = TD_PLAN_PAPER,
        [TD_BENCH_ROSA_SPLIT_WEIGHTED] = TD_PLAN_PAPER,
        [TD_BENCH_ROSA_DEDICATED] = TD_PLAN_DEDICATED,
        [TD_BENCH_ROSA_DEDICATED_ROBOT] = TD_PLAN_DEDICATED_ROBOT,
    };
    td_plan_options options = td_plan_options_of(planners[system]);
    if (system == TD_BENCH_ROSA_SPLIT_EQUAL)
        options.split = TD_PLAN_SPLIT_EQUAL;
    if (system == TD_BENCH_ROSA_SPLIT_WEIGHTED)
        options.split = TD_PLAN_SPLIT_BY_SIZE;
    return options;
}

td_bench_workload_size td_bench_rosa_size(uint32_t robots)
{
    td_bench_workload_size size = td_bench_workload_of(robots);
    size.policy = "  on_miss: count\n";
    return size;
}

static td_sim_factory_options sim_options(const td_bench_options *options)
{
    td_sim_factory_options sim = td_sim_factory_defaults;
    sim.runs = options->quick ? 1 : 3;
    sim.duration_ns = (options->quick ? 30 : 80) * TD_NS_PER_S;
    sim.action_jitter = 0;
    sim.network_jitter_ns = 0;
    sim.in_turn = sim.unphased = true;
    return sim;
}

static void uncap(td_plan *plan)
{
    for (size_t i = 0; i < plan->stream_count; i++)
        if (plan->streams[i].component == 0) plan->streams[i].rate_hz = 0;
}

static void add(td_sim_factory_tally *sum, const td_sim_factory_tally *more)
{
    sum->on_time += more->on_time;
    sum->late += more->late;
    sum->lost += more->lost;
}

static td_err simulate(const td_bench_options *options,
                       const td_bench_planned *planned,
                       td_bench_rosa_point *point, td_errinfo *info)
{
    td_sim_factory_options sim = sim_options(options);
    td_sim_factory_result result;
    td_sim_factory_tally system1 = {0};
    TD_TRY(td_sim_factory_run(planned->factory, planned->profiles,
                              planned->plan, &sim, &result, info));
    for (size_t i = 0; i < result.class_count; i++)
        add(&system1, &result.classes[i].components[0].tally);
    point->raw_hz = result.actions_hz;
    point->qualified_hz = result.qualified_hz;
    point->met = 100 * td_sim_factory_met(&system1);
    point->p50_ms = result.classes[0].components[0].p50_ms;
    point->p99_ms = result.classes[0].components[0].p99_ms;
    td_sim_factory_result_done(&result);
    return TD_OK;
}

static td_err run_point(const td_bench_options *options,
                        const td_config_profiles *profiles,
                        td_bench_workload workload, uint32_t robots,
                        td_bench_rosa_system system,
                        td_bench_rosa_point *ret_point, td_errinfo *info)
{
    td_plan_options plans = plan_options(system);
    td_bench_workload_size size = td_bench_rosa_size(robots);
    td_bench_planned planned;
    *ret_point = (td_bench_rosa_point){.feasible = false};
    td_bench_progress("rosa: %s, %u robots, %s",
                      td_bench_workload_name(workload), robots,
                      td_bench_rosa_name(system));
    td_err err = td_bench_workload_plan(workload, &size, profiles, &plans,
                                        &planned, info);
    if (err == TD_ERR_LIMIT) return TD_OK;
    TD_TRY(err);
    ret_point->feasible = true;
    ret_point->planned_hz = planned.plan->actions_hz;
    if (system == TD_BENCH_ROSA_UNCAPPED) uncap(planned.plan);
    td_bench_planned_roles(&planned, ret_point->gpus);
    err = simulate(options, &planned, ret_point, info);
    td_bench_planned_done(&planned);
    return err;
}

static bool is_wanted(td_bench_workload workload, td_bench_rosa_system system)
{
    bool mixed = workload == TD_BENCH_MIX2 || workload == TD_BENCH_MIX4;
    return !mixed || system <= TD_BENCH_ROSA_WEIGHTED;
}

td_err td_bench_rosa_run(const td_bench_options *options,
                         const td_config_profiles *profiles,
                         td_bench_rosa_sweep *ret_sweep, td_errinfo *info)
{
    for (int w = 0; w < TD_BENCH_WORKLOAD_COUNT; w++)
        for (int f = 0; f < TD_BENCH_ROSA_FLEETS; f++)
            for (int s = 0; s < TD_BENCH_ROSA_SYSTEM_COUNT; s++) {
                td_bench_rosa_point *point = &ret_sweep->points[w][f][s];
                *point = (td_bench_rosa_point){.feasible = false};
                if (!is_wanted((td_bench_workload)w, (td_bench_rosa_system)s))
                    continue;
                TD_TRY(run_point(options, profiles, (td_bench_workload)w,
                                 td_bench_rosa_fleets[f],
                                 (td_bench_rosa_system)s, point, info));
                TD_TRY(td_bench_sleep(0));
            }
    return TD_OK;
}

// The throughput of one GPU with full batches of this size.
static td_err batch_hz(const td_bench_options *options,
                       const td_config_profiles *profiles, double period_ms,
                       uint32_t robots, uint32_t batch, double *ret_hz,
                       td_errinfo *info)
{
    td_plan_options plans = td_plan_options_of(TD_PLAN_EQUAL);
    td_bench_workload_size size = td_bench_rosa_size(robots);
    td_bench_planned planned;
    td_bench_rosa_point point;
    size.gpus = 1;
    size.action_ms = period_ms;
    size.system1_ms = NO_DEADLINE_MS;
    TD_TRY(td_bench_workload_plan(TD_BENCH_P1, &size, profiles, &plans,
                                  &planned, info));
    planned.plan->servers[0].batch_most = batch;
    planned.plan->servers[0].wait = TD_CONFIG_WAIT_FULL;
    td_err err = simulate(options, &planned, &point, info);
    if (err == TD_OK) *ret_hz = point.raw_hz;
    td_bench_planned_done(&planned);
    return err;
}

static td_err best_batch(const td_bench_options *options,
                         const td_config_profiles *profiles, int period,
                         int crowd, td_bench_rosa_best *best, td_errinfo *info)
{
    double one_hz, most_hz = 0;
    uint32_t robots = td_bench_rosa_crowds[crowd];
    double period_ms = td_bench_rosa_periods_ms[period];
    td_bench_progress("rosa: batches of %u robots at %g ms", robots, period_ms);
    TD_TRY(batch_hz(options, profiles, period_ms, robots, 1, &one_hz, info));
    for (uint32_t b = 1; b <= robots && b <= LARGEST_BATCH; b *= 2) {
        double hz;
        TD_TRY(batch_hz(options, profiles, period_ms, robots, b, &hz, info));
        best->all[period][crowd] = hz / one_hz;
        if (hz <= most_hz) continue;
        most_hz = hz;
        best->batch[period][crowd] = b;
    }
    best->speedup[period][crowd] = most_hz / one_hz;
    return TD_OK;
}

td_err td_bench_rosa_batches(const td_bench_options *options,
                             const td_config_profiles *profiles,
                             td_bench_rosa_best *ret_best, td_errinfo *info)
{
    for (int p = 0; p < TD_BENCH_ROSA_PERIODS; p++)
        for (int c = 0; c < TD_BENCH_ROSA_CROWDS; c++) {
            TD_TRY(best_batch(options, profiles, p, c, ret_best, info));
            TD_TRY(td_bench_sleep(0));
        }
    return TD_OK;
}
