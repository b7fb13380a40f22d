// SPDX-License-Identifier: Apache-2.0
// What a request of 100 KB costs the server's processors, from the packet to
// the answer, beside a bare Zenoh echo of the same bytes: busy, when each
// client asks as soon as it was answered, and paced, when the server sleeps and
// wakes for each. The model costs nothing, and no JPEG is decoded.
#include "base/clock.h"
#include "bench/bare.h"
#include "bench/crowd.h"
#include "bench/serve.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define CLIENTS 16
#define MOST_US 60
#define BUSY_HZ 1000000 // a ping that never waits

static const struct {
    const char *name;
    td_bench_link link;
    int64_t pace; // a second, all clients together; 0: busy
    bool limited;
} cases[] = {
    {"shm/100k/busy/cpu", TD_BENCH_SHM, 0, true},
    {"tcp/100k/busy/cpu", TD_BENCH_TCP, 0, false},
    {"shm/100k/paced/cpu", TD_BENCH_SHM, 480, false},
    {"tcp/100k/paced/cpu", TD_BENCH_TCP, 480, false},
};

typedef struct world {
    td_bench_setup setup;
    td_bench_server server;
    td_bench_bare bare;
    td_bench_crowd *crowd;
    td_bench_crowd_seen seen;
    int64_t pace;
    int64_t block_ns;
    size_t pings; // of a block
    td_bench_pairs pairs;
} world;

static void world_free(world *w)
{
    if (w->crowd) td_bench_crowd_close(w->crowd);
    td_bench_bare_end(&w->bare);
    td_bench_child_end(&w->server.child);
    free(w);
}
TD_AUTO_FREE(world, world_free)

// Of all its threads so far.
static td_err cpu_ns(pid_t pid, int64_t *ret_ns, td_errinfo *info)
{
    clockid_t clock;
    struct timespec used;
    if (clock_getcpuclockid(pid, &clock) != 0 ||
        clock_gettime(clock, &used) != 0)
        return td_fail(info, TD_ERR_IO, "no processor time of process %d",
                       (int)pid);
    *ret_ns = used.tv_sec * TD_NS_PER_S + used.tv_nsec;
    return TD_OK;
}

static td_err run_ours(world *w, double *ret_us, td_errinfo *info)
{
    const td_bench_crowd_plan plan = {
        .in_flight = w->pace == 0,
        .period_ns = w->pace ? CLIENTS * TD_NS_PER_S / w->pace : 0,
        .patience_ns = TD_NS_PER_S,
        .counted = true,
    };
    int64_t before_ns = 0, after_ns = 0;
    for (uint32_t i = 0; i < CLIENTS; i++)
        td_bench_crowd_set(w->crowd, i, plan);
    TD_TRY(td_bench_crowd_run(w->crowd, w->block_ns / 8, &w->seen, info));
    TD_TRY(cpu_ns(w->server.child.pid, &before_ns, info));
    TD_TRY(td_bench_crowd_run(w->crowd, w->block_ns, &w->seen, info));
    TD_TRY(cpu_ns(w->server.child.pid, &after_ns, info));
    TD_TRY(td_bench_crowd_rest(w->crowd));
    if (w->seen.total == 0)
        return td_fail(info, TD_ERR_TIMEOUT, "serve: no answers");
    *ret_us = (double)(after_ns - before_ns) / (double)w->seen.total / 1000;
    return TD_OK;
}

static td_err run_theirs(world *w, double *ret_us, td_errinfo *info)
{
    int64_t before_ns = 0, after_ns = 0;
    double unused_us[TD_BENCH_BARE_QUANTILES];
    TD_TRY(cpu_ns(w->bare.echo.pid, &before_ns, info));
    TD_TRY(td_bench_bare_block(&w->bare, unused_us, info));
    TD_TRY(cpu_ns(w->bare.echo.pid, &after_ns, info));
    double pings = (double)(w->pings + TD_BENCH_BARE_WARM);
    *ret_us = (double)(after_ns - before_ns) / pings / 1000;
    return TD_OK;
}

static td_err run_pairs(world *w, size_t pairs, td_errinfo *info)
{
    td_bench_setup bare = w->setup;
    bare.fps = w->pace ? w->pace : BUSY_HZ;
    TD_TRY(td_bench_server_start(&w->setup, &w->server, info));
    TD_TRY(
        td_bench_bare_start(&bare, TD_BENCH_AT_ONCE, w->pings, &w->bare, info));
    TD_TRY(
        td_bench_crowd_open(&w->setup, &w->server, CLIENTS, &w->crowd, info));
    for (size_t i = 0; i < pairs; i++) {
        double ours_us = 0, theirs_us = 0;
        td_bench_progress("serve: cpu, pair %zu of %zu", i + 1, pairs);
        TD_TRY(run_theirs(w, &theirs_us, info));
        TD_TRY(run_ours(w, &ours_us, info));
        td_bench_pairs_add(&w->pairs, ours_us, theirs_us);
    }
    return TD_OK;
}

static td_err run_case(const td_bench_options *options, size_t index,
                       td_errinfo *info)
{
    TD_AUTO(world) *w = calloc(1, sizeof *w);
    if (!w) return TD_ERR_NOMEM;
    w->setup = (td_bench_setup){.link = cases[index].link,
                                .fps = 30,
                                .cameras = 2,
                                .height = 128,
                                .width = 130,
                                .raw = true,
                                .max_batch = CLIENTS};
    w->pace = cases[index].pace;
    w->block_ns = (options->quick ? 1 : 4) * TD_NS_PER_S;
    w->pings = (size_t)(w->block_ns / TD_NS_PER_S * (w->pace ? w->pace : 2000));
    TD_TRY(run_pairs(w, options->quick ? 1 : 7, info));
    const td_bench_row row = {
        .bench = "serve",
        .name = cases[index].name,
        .value = td_bench_pairs_value(&w->pairs),
        .unit = "us",
        .against = "zenoh echo",
        .ratio = td_bench_pairs_ratio(&w->pairs),
        .limited = cases[index].limited ? TD_BENCH_VALUE : TD_BENCH_NO_LIMIT,
        .limit = MOST_US,
    };
    td_bench_print(options, &row);
    return TD_OK;
}

td_err td_bench_serve_cpu(const td_bench_options *options, td_errinfo *info)
{
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++)
        TD_TRY(run_case(options, i, info));
    return TD_OK;
}
