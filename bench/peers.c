// SPDX-License-Identifier: Apache-2.0
// Our server beside Inferential's, each with its own clients, one request of
// each client under way. While one side has its block the other is silent:
// Inferential's server looks a thousand times a second whether there is
// something to do, and is stopped meanwhile.
#include "base/clock.h"
#include "bench/crowd.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATIENCE_NS (200 * TD_NS_PER_MS)

enum { RATE, P50, P99, FIGURES };

typedef struct peers_case {
    const char *name;
    uint32_t clients;
    td_bench_setup setup;
    double limits[FIGURES]; // of the ratio; 0: none
} peers_case;

#define SMALL_FRAMES .cameras = 2, .height = 128, .width = 130, .raw = true
#define LARGE_FRAMES .cameras = 2, .height = 480, .width = 640, .raw = true

static const peers_case cases[] = {
    {"10ms-policy/16-clients/100k",
     16,
     {SMALL_FRAMES, .fps = 30, .max_batch = 16, .batch_ms = 10,
      .member_ms = 0.4},
     {[RATE] = 8, [P99] = 1}},
    {"free-policy/8-clients/100k",
     8,
     {SMALL_FRAMES, .fps = 30, .max_batch = 16},
     {[RATE] = 1}},
    {"free-policy/32-clients/100k",
     32,
     {SMALL_FRAMES, .fps = 30, .max_batch = 16},
     {[RATE] = 1}},
    {"free-policy/1-client/1840k",
     1,
     {LARGE_FRAMES, .fps = 30, .link = TD_BENCH_SHM},
     {[P50] = 1.0 / 8}},
};

static const struct {
    const char *name;
    const char *unit;
} figures[] = {
    [RATE] = {"chunks", "1/s"},
    [P50] = {"round-trip/p50", "ms"},
    [P99] = {"round-trip/p99", "ms"},
};

typedef struct world {
    const peers_case *what;
    int64_t block_ns;
    td_bench_server ours;
    td_bench_crowd *crowd;
    td_bench_peer server, client;
    td_bench_crowd_seen seen;
    td_bench_pairs pairs[FIGURES];
} world;

static void world_free(world *w)
{
    if (w->crowd) td_bench_crowd_close(w->crowd);
    td_bench_child_end(&w->client.child);
    if (w->server.child.pid > 0) (void)kill(w->server.child.pid, SIGCONT);
    td_bench_child_end(&w->server.child);
    td_bench_child_end(&w->ours.child);
    free(w);
}
TD_AUTO_FREE(world, world_free)

static td_err start_theirs(world *w, td_errinfo *info)
{
    char endpoint[TD_BENCH_ENDPOINT_BYTES];
    char words[5][24];
    const td_bench_setup *setup = &w->what->setup;
    TD_TRY(td_bench_endpoint(TD_BENCH_TCP, endpoint, info));
    const char *port = strrchr(endpoint, ':') + 1;
    (void)snprintf(words[0], sizeof words[0], "%g", setup->batch_ms);
    (void)snprintf(words[1], sizeof words[1], "%u", w->what->clients);
    (void)snprintf(words[2], sizeof words[2], "%u", setup->height);
    (void)snprintf(words[3], sizeof words[3], "%u", setup->width);
    (void)snprintf(words[4], sizeof words[4], "%g",
                   (double)w->block_ns / (double)TD_NS_PER_S);
    const char *server[] = {"inferential_server.py", port, words[0], NULL};
    const char *client[] = {"inferential_client.py",
                            port,
                            words[1],
                            words[2],
                            words[3],
                            words[4],
                            NULL};
    TD_TRY(td_bench_peer_start(server, &w->server, info));
    TD_TRY(td_bench_peer_start(client, &w->client, info));
    (void)kill(w->server.child.pid, SIGSTOP);
    return TD_OK;
}

static td_err run_theirs(world *w, double ret_figures[FIGURES],
                         td_errinfo *info)
{
    (void)kill(w->server.child.pid, SIGCONT);
    td_err err = td_bench_peer_block(&w->client, ret_figures, FIGURES, info);
    (void)kill(w->server.child.pid, SIGSTOP);
    return err;
}

static td_err run_ours(world *w, double ret_figures[FIGURES], td_errinfo *info)
{
    const td_bench_crowd_plan plan = {
        .in_flight = 1, .patience_ns = PATIENCE_NS, .counted = true};
    const td_hist *took = &w->seen.round_trip_ns;
    for (uint32_t i = 0; i < w->what->clients; i++)
        td_bench_crowd_set(w->crowd, i, plan);
    TD_TRY(td_bench_crowd_run(w->crowd, w->block_ns / 10, &w->seen, info));
    TD_TRY(td_bench_crowd_run(w->crowd, w->block_ns, &w->seen, info));
    ret_figures[RATE] = (double)w->seen.total / w->seen.seconds;
    ret_figures[P50] = td_bench_quantile_us(took, 0.5) / 1000;
    ret_figures[P99] = td_bench_quantile_us(took, 0.99) / 1000;
    return td_bench_crowd_rest(w->crowd);
}

static td_err run_pairs(world *w, bool beside, size_t pairs, td_errinfo *info)
{
    const peers_case *what = w->what;
    if (beside) TD_TRY(start_theirs(w, info));
    TD_TRY(td_bench_server_start(&what->setup, &w->ours, info));
    TD_TRY(td_bench_crowd_open(&what->setup, &w->ours, what->clients, &w->crowd,
                               info));
    for (size_t i = 0; i < pairs; i++) {
        double ours[FIGURES], theirs[FIGURES] = {0};
        td_bench_progress("peers: %s, pair %zu of %zu", what->name, i + 1,
                          pairs);
        if (beside) TD_TRY(run_theirs(w, theirs, info));
        TD_TRY(run_ours(w, ours, info));
        for (int j = 0; j < FIGURES; j++)
            td_bench_pairs_add(&w->pairs[j], ours[j], theirs[j]);
    }
    return TD_OK;
}

static void print(const td_bench_options *options, const world *w, int figure,
                  bool beside)
{
    char name[80];
    double limit = beside ? w->what->limits[figure] : 0;
    (void)snprintf(name, sizeof name, "%s/%s", w->what->name,
                   figures[figure].name);
    const td_bench_row row = {
        .bench = "peers",
        .name = name,
        .value = td_bench_pairs_value(&w->pairs[figure]),
        .unit = figures[figure].unit,
        .more = figure == RATE,
        .against = beside ? "Inferential" : NULL,
        .ratio = beside ? td_bench_pairs_ratio(&w->pairs[figure]) : 0,
        .limited = limit > 0 ? TD_BENCH_RATIO : TD_BENCH_NO_LIMIT,
        .limit = limit,
    };
    td_bench_print(options, &row);
}

static td_err run_case(const td_bench_options *options, const peers_case *what,
                       bool beside, td_errinfo *info)
{
    TD_AUTO(world) *w = calloc(1, sizeof *w);
    if (!w) return TD_ERR_NOMEM;
    w->what = what;
    w->block_ns = (options->quick ? 1 : 5) * TD_NS_PER_S;
    TD_TRY(run_pairs(w, beside, options->quick ? 1 : 7, info));
    for (int i = 0; i < FIGURES; i++)
        print(options, w, i, beside);
    return TD_OK;
}

td_err td_bench_peers(const td_bench_options *options, td_errinfo *info)
{
    bool beside = td_bench_peer_there(options);
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++)
        TD_TRY(run_case(options, &cases[i], beside, info));
    return TD_OK;
}
