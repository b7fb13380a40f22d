// SPDX-License-Identifier: Apache-2.0
// A round trip through our Python SDK beside LeRobot's asynchronous client and
// server and beside Inferential's, one request under way, with a policy that
// costs nothing. They take turns; a server that polls is stopped meanwhile.
#include "bench/python.h"

#include "bench/rig.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WORD_BYTES 24
#define HOST "127.0.0.1"

enum { RATE, P50, P99, FIGURES };
enum { OURS, INFERENTIAL, LEROBOT, SIDES };

typedef struct python_case {
    const char *name;
    uint32_t height, width; // of each of two frames; height 1: opaque bytes
    bool lerobot;           // can send this
    double limit;           // of the ratios at p50 and p99
} python_case;

static const python_case cases[] = {
    {"raw/1840k", 480, 640, true, 1.0 / 8},
    {"jpeg/100k", 1, 16667, false, 1},
};

static const struct {
    const char *name;
    const char *unit;
} figures[] = {
    [RATE] = {"chunks", "1/s"},
    [P50] = {"round-trip/p50", "ms"},
    [P99] = {"round-trip/p99", "ms"},
};

static const struct {
    const char *name;
    const char *word;   // in the names of its rows
    const char *server; // NULL: the client starts it
    const char *client;
} sides[] = {
    [OURS] = {"Tendon", "", NULL, "tendon_client.py"},
    [INFERENTIAL] = {"Inferential", "/beside-inferential",
                     "inferential_server.py", "inferential_client.py"},
    [LEROBOT] = {"LeRobot", "/beside-lerobot", "lerobot_server.py",
                 "lerobot_client.py"},
};

typedef struct world {
    const python_case *what;
    bool there[SIDES];
    char height[WORD_BYTES], width[WORD_BYTES], seconds[WORD_BYTES];
    td_bench_peer server[SIDES], client[SIDES];
    td_bench_pairs pairs[FIGURES][SIDES]; // ours beside each other side
} world;

static void world_free(world *w)
{
    for (int i = 0; i < SIDES; i++) {
        td_bench_child_end(&w->client[i].child);
        if (w->server[i].child.pid > 0)
            (void)kill(w->server[i].child.pid, SIGCONT);
        td_bench_child_end(&w->server[i].child);
    }
    free(w);
}
TD_AUTO_FREE(world, world_free)

static td_err start_server(world *w, int side, const char *port,
                           td_errinfo *info)
{
    const char *still[] = {sides[side].server, port, "0", NULL};
    const char *sized[] = {sides[side].server, HOST,    port, w->height,
                           w->width,           "still", NULL};
    if (!sides[side].server) return TD_OK;
    return td_bench_peer_start(side == LEROBOT ? sized : still,
                               &w->server[side], info);
}

static td_err start_client(world *w, int side, const char *port,
                           td_errinfo *info)
{
    char program[TD_BENCH_LINE_BYTES];
    const char *script = sides[side].client;
    const char *args[SIDES][7] = {
        [OURS] = {script, program, port, w->height, w->width, w->seconds},
        [INFERENTIAL] = {script, port, "1", w->height, w->width, w->seconds},
        [LEROBOT] = {script, port, w->height, w->width, w->seconds},
    };
    TD_TRY(td_bench_tendon(program, info));
    return td_bench_peer_start(args[side], &w->client[side], info);
}

static td_err start(world *w, int side, td_errinfo *info)
{
    char endpoint[TD_BENCH_ENDPOINT_BYTES];
    TD_TRY(td_bench_endpoint(TD_BENCH_TCP, endpoint, info));
    const char *port = strrchr(endpoint, ':') + 1;
    TD_TRY(start_server(w, side, port, info));
    TD_TRY(start_client(w, side, port, info));
    if (side == INFERENTIAL) (void)kill(w->server[side].child.pid, SIGSTOP);
    return TD_OK;
}

static td_err run_side(world *w, int side, double ret_figures[FIGURES],
                       td_errinfo *info)
{
    pid_t server = w->server[side].child.pid;
    if (server > 0) (void)kill(server, SIGCONT);
    td_err err =
        td_bench_peer_block(&w->client[side], ret_figures, FIGURES, info);
    if (side == INFERENTIAL) (void)kill(server, SIGSTOP);
    return err;
}

static td_err run_turn(world *w, td_errinfo *info)
{
    double seen[SIDES][FIGURES] = {0};
    for (int side = 0; side < SIDES; side++)
        if (w->there[side]) TD_TRY(run_side(w, side, seen[side], info));
    for (int figure = 0; figure < FIGURES; figure++)
        for (int side = 0; side < SIDES; side++)
            td_bench_pairs_add(&w->pairs[figure][side], seen[OURS][figure],
                               seen[side][figure]);
    return TD_OK;
}

static void print(const td_bench_options *options, const world *w, int figure,
                  int side)
{
    char name[80];
    const td_bench_pairs *pairs = &w->pairs[figure][side];
    bool beside = side != OURS;
    (void)snprintf(name, sizeof name, "%s%s/%s", w->what->name,
                   sides[side].word, figures[figure].name);
    const td_bench_row row = {
        .bench = "python",
        .name = name,
        .value = td_bench_pairs_value(pairs),
        .unit = figures[figure].unit,
        .more = figure == RATE,
        .against = beside ? sides[side].name : NULL,
        .ratio = beside ? td_bench_pairs_ratio(pairs) : 0,
        .limited =
            beside && figure != RATE ? TD_BENCH_RATIO : TD_BENCH_NO_LIMIT,
        .limit = w->what->limit,
    };
    td_bench_print(options, &row);
}

static void print_all(const td_bench_options *options, const world *w)
{
    bool alone = !w->there[INFERENTIAL] && !w->there[LEROBOT];
    for (int figure = 0; figure < FIGURES; figure++)
        for (int side = alone ? OURS : INFERENTIAL; side < SIDES; side++)
            if (w->there[side]) print(options, w, figure, side);
}

static td_err run_case(const td_bench_options *options, const python_case *what,
                       const bool there[SIDES], td_errinfo *info)
{
    size_t turns = options->quick ? 1 : 7;
    TD_AUTO(world) *w = calloc(1, sizeof *w);
    if (!w) return TD_ERR_NOMEM;
    w->what = what;
    memcpy(w->there, there, sizeof w->there);
    w->there[LEROBOT] &= what->lerobot;
    (void)snprintf(w->height, sizeof w->height, "%u", what->height);
    (void)snprintf(w->width, sizeof w->width, "%u", what->width);
    (void)snprintf(w->seconds, sizeof w->seconds, "%d", options->quick ? 1 : 5);
    for (int side = 0; side < SIDES; side++)
        if (w->there[side]) TD_TRY(start(w, side, info));
    for (size_t i = 0; i < turns; i++) {
        td_bench_progress("python: %s, turn %zu of %zu", what->name, i + 1,
                          turns);
        TD_TRY(run_turn(w, info));
    }
    print_all(options, w);
    return TD_OK;
}

static td_err run_all(const td_bench_options *options, const bool there[SIDES],
                      td_errinfo *info)
{
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++)
        if (there[OURS] && td_bench_wanted(options, cases[i].name))
            TD_TRY(run_case(options, &cases[i], there, info));
    if (there[OURS] && td_bench_wanted(options, TD_BENCH_PYTHON_GIL))
        TD_TRY(td_bench_python_gil(options, info));
    if (there[OURS] && there[LEROBOT] &&
        td_bench_wanted(options, TD_BENCH_PYTHON_NET))
        TD_TRY(td_bench_python_net(options, info));
    return TD_OK;
}

td_err td_bench_python(const td_bench_options *options, td_errinfo *info)
{
    bool there[SIDES];
    int awake = td_bench_stay_awake(options);
    for (int side = 0; side < SIDES; side++)
        there[side] =
            td_bench_peer_can(options, sides[side].name, sides[side].client);
    td_err err = run_all(options, there, info);
    if (awake >= 0) (void)close(awake);
    return err;
}
