// SPDX-License-Identifier: Apache-2.0
// One simulated robot of LeRobot's and one policy of 30 ms, over a cable of
// 100 Mb/s that loses 2 of 100 packets each way: through LeRobot's own client
// and policy server, and through ours. They take turns, each with the cable to
// itself.
#include "bench/netns.h"
#include "bench/python.h"

#include <stdio.h>
#include <stdlib.h>

#define MBIT 100
#define LOSS_PERCENT 2
#define THEIR_PORT "8080"
#define HEIGHT "480"
#define WIDTH "640"

static const char our_endpoint[] = "tcp/" TD_BENCH_FAR_ADDRESS ":7447";
static const char their_address[] = TD_BENCH_FAR_ADDRESS ":" THEIR_PORT;

enum { FRESH, AGE_P50, AGE_P99, CARRIED, FIGURES };
enum { OURS, THEIRS, SIDES };

static const struct {
    const char *name;
    const char *unit;
    bool more; // is better
} figures[] = {
    [FRESH] = {"fresh", "%", true},
    [AGE_P50] = {"age/p50", "ms", false},
    [AGE_P99] = {"age/p99", "ms", false},
    [CARRIED] = {"carried", "kB/s", false},
};

typedef struct world {
    td_bench_netns *netns;
    char program[TD_BENCH_LINE_BYTES];
    const char *seconds; // that a turn is watched
    td_bench_peer server[SIDES], client[SIDES];
    td_bench_pairs pairs[FIGURES];
} world;

static void world_free(world *w)
{
    for (int side = 0; side < SIDES; side++) {
        td_bench_child_end(&w->client[side].child);
        td_bench_child_end(&w->server[side].child);
    }
    if (w->netns) td_bench_netns_close(w->netns);
    free(w);
}
TD_AUTO_FREE(world, world_free)

static td_err start_servers(world *w, td_errinfo *info)
{
    const char *ours[] = {
        "tendon_server.py", w->program, our_endpoint, HEIGHT, WIDTH, NULL};
    const char *theirs[] = {"lerobot_server.py",
                            TD_BENCH_FAR_ADDRESS,
                            THEIR_PORT,
                            HEIGHT,
                            WIDTH,
                            "wave",
                            NULL};
    TD_TRY(td_bench_peer_start(ours, &w->server[OURS], info));
    return td_bench_peer_start(theirs, &w->server[THEIRS], info);
}

static td_err start_clients(world *w, td_errinfo *info)
{
    const char *ours[] = {"lerobot_arm.py", "ours", our_endpoint, HEIGHT, WIDTH,
                          w->seconds,       NULL};
    const char *theirs[] = {
        "lerobot_arm.py", "theirs", their_address, HEIGHT, WIDTH,
        w->seconds,       NULL};
    TD_TRY(td_bench_peer_start(ours, &w->client[OURS], info));
    return td_bench_peer_start(theirs, &w->client[THEIRS], info);
}

static td_err start(world *w, td_errinfo *info)
{
    TD_TRY(td_bench_netns_shape(w->netns, MBIT, LOSS_PERCENT, info));
    TD_TRY(td_bench_netns_enter(w->netns, TD_BENCH_FAR, info));
    td_err err = start_servers(w, info);
    TD_TRY(td_bench_netns_enter(w->netns, TD_BENCH_NEAR, info));
    TD_TRY(err);
    return start_clients(w, info);
}

static td_err run_turn(world *w, size_t turn, td_errinfo *info)
{
    double seen[SIDES][FIGURES];
    for (size_t i = 0; i < SIDES; i++) {
        size_t side = (turn + i) % SIDES; // each is first as often
        TD_TRY(
            td_bench_peer_block(&w->client[side], seen[side], FIGURES, info));
    }
    for (int i = 0; i < FIGURES; i++)
        td_bench_pairs_add(&w->pairs[i], seen[OURS][i], seen[THEIRS][i]);
    return TD_OK;
}

static void print(const td_bench_options *options, const world *w, int figure)
{
    char name[64];
    (void)snprintf(name, sizeof name, TD_BENCH_PYTHON_NET "/%s",
                   figures[figure].name);
    const td_bench_row row = {
        .bench = "python",
        .name = name,
        .value = td_bench_pairs_value(&w->pairs[figure]),
        .unit = figures[figure].unit,
        .more = figures[figure].more,
        .against = "LeRobot",
        .ratio = td_bench_pairs_ratio(&w->pairs[figure]),
        .limited = TD_BENCH_RATIO,
        .limit = 1,
    };
    td_bench_print(options, &row);
}

static td_err run(const td_bench_options *options, world *w, td_errinfo *info)
{
    size_t turns = options->quick ? 1 : 6;
    w->seconds = options->quick ? "3" : "20";
    TD_TRY(td_bench_tendon(w->program, info));
    TD_TRY(start(w, info));
    for (size_t i = 0; i < turns; i++) {
        td_bench_progress("python: " TD_BENCH_PYTHON_NET ", turn %zu of %zu",
                          i + 1, turns);
        TD_TRY(run_turn(w, i, info));
    }
    for (int i = 0; i < FIGURES; i++)
        print(options, w, i);
    return TD_OK;
}

td_err td_bench_python_net(const td_bench_options *options, td_errinfo *info)
{
    TD_AUTO(world) *w = calloc(1, sizeof *w);
    if (!w) return TD_ERR_NOMEM;
    td_errinfo why = {.text = ""};
    td_err err = td_bench_netns_open(&w->netns, &why);
    if (err == TD_ERR_DENIED || err == TD_ERR_NOTFOUND) {
        td_bench_say(options, TD_BENCH_PYTHON_NET " %s: figures without it",
                     why.text);
        return TD_OK;
    }
    if (err != TD_OK) return td_fail(info, err, "%s", why.text);
    return run(options, w, info);
}
