// SPDX-License-Identifier: Apache-2.0
// A real server with a synthetic engine that takes 30 ms for one and 1 ms for
// each more, in batches of up to 16, and many clients in this process.
#include "bench/serve.h"

#include "base/clock.h"
#include "bench/crowd.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define BATCH 16
#define BATCH_MS 30
#define MEMBER_MS 1
#define FAIR_CLIENTS 64
#define FAIR_LOAD 1.5
#define CALM_CLIENTS 8
#define NOISY_NS TD_NS_PER_MS

static const uint32_t crowds[] = {1, 8, 64, 256, 1000};

static const td_bench_setup setup = {
    .link = TD_BENCH_TCP,
    .fps = 30,
    .capacity = 1024,
    .max_batch = BATCH,
    .batch_ms = BATCH_MS,
    .member_ms = MEMBER_MS,
};

typedef struct world {
    const td_bench_options *options;
    td_bench_server server;
    td_bench_crowd_seen seen;
} world;

static void world_free(world *w)
{
    td_bench_child_end(&w->server.child);
    free(w);
}
TD_AUTO_FREE(world, world_free)

static int64_t seconds(const world *w, double full)
{
    double quick = full / 4 < 1 ? full / 4 : 1;
    return (int64_t)((w->options->quick ? quick : full) * (double)TD_NS_PER_S);
}

// What the engine alone can answer for n clients.
static double engine_per_s(uint32_t clients)
{
    uint32_t n = clients < BATCH ? clients : BATCH;
    return 1000.0 * n / (BATCH_MS + (n - 1) * MEMBER_MS);
}

// One that runs and one that waits, at all times: a client asks again when the
// one that waited runs, and else not before what it asked last can have begun
// to. Sooner, the newer would take the place of that one.
static td_bench_crowd_plan keep_one_waiting(uint32_t clients)
{
    uint32_t n = clients < BATCH ? clients : BATCH;
    int64_t apart_ms = n == 1 ? BATCH_MS / 2 : BATCH_MS + n * MEMBER_MS + 8;
    return (td_bench_crowd_plan){.in_flight = 2,
                                 .pause_ns = BATCH_MS / 2 * TD_NS_PER_MS,
                                 .apart_ns = apart_ms * TD_NS_PER_MS,
                                 .patience_ns = 15 * TD_NS_PER_S,
                                 .counted = true};
}

static td_err run_crowd(world *w, uint32_t clients, td_errinfo *info)
{
    const td_bench_crowd_plan plan = keep_one_waiting(clients);
    TD_AUTO(td_bench_crowd) *crowd = NULL;
    td_bench_progress("serve: %u clients", clients);
    TD_TRY(td_bench_crowd_open(&setup, &w->server, clients, &crowd, info));
    for (uint32_t i = 0; i < clients; i++)
        td_bench_crowd_set(crowd, i, plan);
    double turn_s = clients / engine_per_s(clients);
    TD_TRY(
        td_bench_crowd_run(crowd, seconds(w, 1 + 2 * turn_s), &w->seen, info));
    return td_bench_crowd_run(crowd, seconds(w, 10), &w->seen, info);
}

static td_err measure_throughput(world *w, uint32_t clients, td_errinfo *info)
{
    char name[64];
    TD_TRY(run_crowd(w, clients, info));
    double per_s = (double)w->seen.total / w->seen.seconds;
    (void)snprintf(name, sizeof name, "%u-clients/throughput", clients);
    const td_bench_row row = {
        .bench = "serve",
        .name = name,
        .value = per_s,
        .unit = "1/s",
        .more = true,
        .against = "the engine alone",
        .ratio = per_s / engine_per_s(clients),
        .limited = TD_BENCH_RATIO,
        .limit = 0.97,
    };
    td_bench_print(w->options, &row);
    return TD_OK;
}

// 1 when all have the same, 1/n when one has everything.
static double jain(const uint64_t *values, uint32_t count)
{
    double sum = 0, squares = 0;
    for (uint32_t i = 0; i < count; i++) {
        sum += (double)values[i];
        squares += (double)values[i] * (double)values[i];
    }
    return squares > 0 ? sum * sum / count / squares : 0;
}

// Every other client asks twice as often as its neighbour, which gains nothing:
// the slower ones ask for a fair share of what the engine can do.
static td_err measure_fairness(world *w, td_errinfo *info)
{
    TD_AUTO(td_bench_crowd) *crowd = NULL;
    double mean_per_s = FAIR_LOAD * engine_per_s(FAIR_CLIENTS) / FAIR_CLIENTS;
    td_bench_progress("serve: fairness");
    TD_TRY(td_bench_crowd_open(&setup, &w->server, FAIR_CLIENTS, &crowd, info));
    for (uint32_t i = 0; i < FAIR_CLIENTS; i++) {
        double per_s = mean_per_s * (i % 2 ? 4.0 / 3 : 2.0 / 3);
        const td_bench_crowd_plan plan = {
            .period_ns = (int64_t)((double)TD_NS_PER_S / per_s),
            .patience_ns = TD_NS_PER_S,
            .counted = true};
        td_bench_crowd_set(crowd, i, plan);
    }
    TD_TRY(td_bench_crowd_run(crowd, seconds(w, 2), &w->seen, info));
    TD_TRY(td_bench_crowd_run(crowd, seconds(w, 20), &w->seen, info));
    const td_bench_row row = {
        .bench = "serve",
        .name = "64-clients/load-150/fairness",
        .value = jain(w->seen.answers, FAIR_CLIENTS),
        .unit = "Jain",
        .more = true,
        .limited = TD_BENCH_VALUE,
        .limit = 0.95,
    };
    td_bench_print(w->options, &row);
    return TD_OK;
}

enum { NOISY_CLIENT = CALM_CLIENTS, CORRUPTER, NOISY_CLIENTS };

static td_err run_calm(world *w, td_bench_crowd *crowd, bool noise,
                       double *ret_p99_ms, td_errinfo *info)
{
    td_bench_crowd_plan noisy = {.period_ns = noise ? NOISY_NS : 0};
    td_bench_crowd_plan corrupt = {.period_ns = noise ? NOISY_NS : 0,
                                   .corrupt = true};
    td_bench_crowd_set(crowd, NOISY_CLIENT, noisy);
    td_bench_crowd_set(crowd, CORRUPTER, corrupt);
    TD_TRY(td_bench_crowd_run(crowd, seconds(w, 1), &w->seen, info));
    TD_TRY(td_bench_crowd_run(crowd, seconds(w, 6), &w->seen, info));
    *ret_p99_ms = td_bench_quantile_us(&w->seen.round_trip_ns, 0.99) / 1000;
    return TD_OK;
}

static td_err run_noise_pairs(world *w, td_bench_crowd *crowd,
                              td_bench_pairs *pairs, td_errinfo *info)
{
    const td_bench_crowd_plan calm = keep_one_waiting(NOISY_CLIENTS);
    for (uint32_t i = 0; i < CALM_CLIENTS; i++)
        td_bench_crowd_set(crowd, i, calm);
    for (int i = 0; i < (w->options->quick ? 1 : 5); i++) {
        double calm_ms, noisy_ms;
        td_bench_progress("serve: noise, pair %d", i + 1);
        TD_TRY(run_calm(w, crowd, false, &calm_ms, info));
        TD_TRY(run_calm(w, crowd, true, &noisy_ms, info));
        td_bench_pairs_add(pairs, noisy_ms, calm_ms);
    }
    return TD_OK;
}

static td_err measure_noise(world *w, td_errinfo *info)
{
    td_bench_pairs pairs = {0};
    TD_AUTO(td_bench_crowd) *crowd = NULL;
    TD_TRY(
        td_bench_crowd_open(&setup, &w->server, NOISY_CLIENTS, &crowd, info));
    TD_TRY(run_noise_pairs(w, crowd, &pairs, info));
    const td_bench_row row = {
        .bench = "serve",
        .name = "shouted-and-corrupted/others/p99",
        .value = td_bench_pairs_value(&pairs),
        .unit = "ms",
        .against = "undisturbed",
        .ratio = td_bench_pairs_ratio(&pairs),
        .limited = TD_BENCH_RATIO,
        .limit = 1.1,
    };
    td_bench_print(w->options, &row);
    return TD_OK;
}

td_err td_bench_serve(const td_bench_options *options, td_errinfo *info)
{
    TD_AUTO(world) *w = calloc(1, sizeof *w);
    if (!w) return TD_ERR_NOMEM;
    w->options = options;
    TD_TRY(td_bench_server_start(&setup, &w->server, info));
    for (size_t i = 0; i < TD_COUNT_OF(crowds); i++)
        TD_TRY(measure_throughput(w, crowds[i], info));
    TD_TRY(measure_fairness(w, info));
    TD_TRY(measure_noise(w, info));
    return td_bench_serve_cpu(options, info);
}
