// SPDX-License-Identifier: Apache-2.0
// A minute of robots in virtual time: how much faster than the real one.
#include "sim/sim.h"

#include "base/clock.h"
#include "bench/bench.h"

#define MOST_RUNS 9

static td_err run_once(const td_sim_config *config, double *ret_speed,
                       td_errinfo *info)
{
    td_sim_result result;
    int64_t start_ns = td_clock_now_ns(&td_clock_monotonic);
    TD_TRY(td_sim_run(config, &result, info));
    int64_t took_ns = td_clock_now_ns(&td_clock_monotonic) - start_ns;
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

td_err td_bench_sim(const td_bench_options *options, td_errinfo *info)
{
    td_sim_config config = td_sim_config_default();
    TD_TRY(run_case(options, "4-robots/minute/p50", &config, info));
    config.robots = 64;
    return run_case(options, "64-robots/minute/p50", &config, info);
}
