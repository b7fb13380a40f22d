// SPDX-License-Identifier: Apache-2.0
// Robots in virtual time: how much faster than the real one.
#include "sim/sim.h"

#include "base/clock.h"
#include "bench/bench.h"
#include "bench/workload.h"

#define MOST_RUNS 9
#define FACTORY_RUNS 3

static td_err run_once(const td_sim_config *config, double *ret_speed,
                       td_errinfo *info)
{
    td_sim_result result;
    int64_t start_ns = td_clock_monotonic_ns();
    TD_TRY(td_sim_run(config, &result, info));
    int64_t took_ns = td_clock_monotonic_ns() - start_ns;
    *ret_speed = (double)result.virtual_ns / (double)took_ns;
    td_sim_result_done(&result);
    return TD_OK;
}

static td_err run_case(const td_bench_options *options, const char *name,
                       const td_sim_config *config, td_errinfo *info)
{
    double speeds[MOST_RUNS];
    size_t runs = options->quick ? 1 : MOST_RUNS;
    for (size_t i = 0; i < runs; i++) {
        td_bench_progress("sim: %s, run %zu of %zu", name, i + 1, runs);
        TD_TRY(run_once(config, &speeds[i], info));
        TD_TRY(td_bench_sleep(0));
    }
    const td_bench_row row = {
        .bench = "sim",
        .name = name,
        .value = td_bench_median(speeds, runs),
        .unit = "x",
        .more = true,
        .against = "real time",
        .ratio = td_bench_median(speeds, runs),
    };
    td_bench_print(options, &row);
    return TD_OK;
}

static td_err run_factory(const td_bench_planned *planned, double *ret_s,
                          td_errinfo *info)
{
    td_sim_factory_options sim = td_sim_factory_defaults;
    td_sim_factory_result result;
    sim.duration_ns = 600 * TD_NS_PER_S;
    int64_t start_ns = td_clock_monotonic_ns();
    TD_TRY(td_sim_factory_run(planned->factory, planned->profiles,
                              planned->plan, &sim, &result, info));
    int64_t took_ns = td_clock_monotonic_ns() - start_ns;
    *ret_s = (double)took_ns / (double)TD_NS_PER_S;
    td_sim_factory_result_done(&result);
    return TD_OK;
}

static td_err time_factory(const td_bench_options *options,
                           const td_bench_planned *planned, td_errinfo *info)
{
    double took_s[FACTORY_RUNS];
    size_t runs = options->quick ? 1 : FACTORY_RUNS;
    for (size_t i = 0; i < runs; i++) {
        td_bench_progress("sim: a factory, run %zu of %zu", i + 1, runs);
        TD_TRY(run_factory(planned, &took_s[i], info));
        TD_TRY(td_bench_sleep(0));
    }
    const td_bench_row row = {
        .bench = "sim",
        .name = "factory/64-robots/600s/p50",
        .value = td_bench_median(took_s, runs),
        .unit = "s",
        .limited = TD_BENCH_VALUE,
        .limit = 2,
    };
    td_bench_print(options, &row);
    return TD_OK;
}

// P4, the largest of the paper's factories, as we plan it.
static td_err run_factories(const td_bench_options *options, td_errinfo *info)
{
    TD_AUTO(td_config_profiles) *profiles = NULL;
    td_plan_options plans = td_plan_options_of(TD_PLAN_TENDON);
    td_bench_workload_size size = td_bench_workload_of(64);
    td_bench_planned planned;
    TD_TRY(td_bench_workload_profiles(&profiles, info));
    TD_TRY(td_bench_workload_plan(TD_BENCH_P4, &size, profiles, &plans,
                                  &planned, info));
    td_err err = time_factory(options, &planned, info);
    td_bench_planned_done(&planned);
    return err;
}

td_err td_bench_sim(const td_bench_options *options, td_errinfo *info)
{
    td_sim_config config = td_sim_config_default();
    TD_TRY(run_case(options, "4-robots/minute/p50", &config, info));
    config.robots = 64;
    TD_TRY(run_case(options, "64-robots/minute/p50", &config, info));
    return run_factories(options, info);
}
