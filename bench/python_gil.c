// SPDX-License-Identifier: Apache-2.0
// A Python robot under the control loop at 1000 Hz, whose read() holds Python's
// lock for half of every second: how late the tick wakes up beside the same
// robot when it does not, whether the fail-safe acts, and whether a person is
// told.
#include "bench/python.h"
#include "bench/rig.h"

#include <stdio.h>
#include <stdlib.h>

#define LIMIT 1.2

enum { CALM_P99, CALM_P999, HELD_P99, HELD_P999, ACTED, LOGGED, NUMBERS };

typedef struct world {
    td_bench_server server;
    td_bench_peer robot;
    td_bench_pairs p99, p999; // held beside calm
    double acted[TD_BENCH_MAX_PAIRS], logged[TD_BENCH_MAX_PAIRS]; // a hold
} world;

static void world_free(world *w)
{
    td_bench_child_end(&w->robot.child);
    td_bench_child_end(&w->server.child);
    free(w);
}
TD_AUTO_FREE(world, world_free)

static td_err start(world *w, const char *seconds, td_errinfo *info)
{
    const td_bench_setup setup = {.link = TD_BENCH_TCP,
                                  .fps = 100,
                                  .cameras = 2,
                                  .height = 128,
                                  .width = 130,
                                  .raw = true};
    TD_TRY(td_bench_server_start(&setup, &w->server, info));
    const char *args[] = {"tendon_gil.py", w->server.endpoint, seconds, NULL};
    return td_bench_peer_start(args, &w->robot, info);
}

static td_err run_pair(world *w, size_t pair, td_errinfo *info)
{
    double seen[NUMBERS];
    TD_TRY(td_bench_peer_block(&w->robot, seen, NUMBERS, info));
    td_bench_pairs_add(&w->p99, seen[HELD_P99], seen[CALM_P99]);
    td_bench_pairs_add(&w->p999, seen[HELD_P999], seen[CALM_P999]);
    w->acted[pair] = seen[ACTED];
    w->logged[pair] = seen[LOGGED];
    return TD_OK;
}

static void print_lateness(const td_bench_options *options, const char *name,
                           const td_bench_pairs *pairs)
{
    td_bench_row row = {
        .bench = "python",
        .name = name,
        .value = td_bench_pairs_value(pairs),
        .unit = "us",
        .against = "undisturbed",
        .ratio = td_bench_pairs_ratio(pairs),
        .limited = TD_BENCH_RATIO,
        .limit = LIMIT,
    };
    td_bench_pairs_range(pairs, &row.low, &row.high);
    td_bench_print(options, &row);
}

static void print_each_hold(const td_bench_options *options, const char *name,
                            const char *unit, double *values, size_t count)
{
    const td_bench_row row = {
        .bench = "python",
        .name = name,
        .value = td_bench_median(values, count),
        .unit = unit,
        .more = true,
        .limited = TD_BENCH_VALUE,
        .limit = 1,
    };
    td_bench_print(options, &row);
}

td_err td_bench_python_gil(const td_bench_options *options, td_errinfo *info)
{
    size_t pairs = options->quick ? 1 : 21;
    TD_AUTO(world) *w = calloc(1, sizeof *w);
    if (!w) return TD_ERR_NOMEM;
    TD_TRY(start(w, options->quick ? "2" : "6", info));
    for (size_t i = 0; i < pairs; i++) {
        td_bench_progress("python: " TD_BENCH_PYTHON_GIL ", pair %zu of %zu",
                          i + 1, pairs);
        TD_TRY(run_pair(w, i, info));
    }
    print_lateness(options, TD_BENCH_PYTHON_GIL "/lateness/p99", &w->p99);
    print_lateness(options, TD_BENCH_PYTHON_GIL "/lateness/p99.9", &w->p999);
    print_each_hold(options, TD_BENCH_PYTHON_GIL "/failsafe", "ticks", w->acted,
                    pairs);
    print_each_hold(options, TD_BENCH_PYTHON_GIL "/logged", "lines", w->logged,
                    pairs);
    return TD_OK;
}
