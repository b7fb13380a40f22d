// SPDX-License-Identifier: Apache-2.0
// Robot -> server -> robot, two processes, beside a bare Zenoh ping of the same
// encoded lengths, also two processes. All sides send at the same pace; while
// one has its block the others are silent.
//
// The ping answers from within Zenoh's callback, which a server with a model
// cannot. A second one, whose callback wakes a thread that answers, says what
// that alone costs.
#include "base/clock.h"
#include "bench/bare.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define WARM_SAMPLES 40
#define LOOK_NS (5 * TD_NS_PER_MS)
#define BLOCK_WAIT_NS (30 * TD_NS_PER_S)

typedef struct size_case {
    const char *name;
    uint32_t cameras, height, width;
    bool raw;
    int64_t fps;
} size_case;

static const size_case sizes[] = {
    {"64b", 0, 0, 0, true, 400},
    {"100k", 2, 224, 288, false, 400}, // JPEGs of noise, 50 KB each
    {"1840k", 2, 480, 640, true, 200},
};

static const struct {
    const char *name;
    td_bench_link link;
} links[] = {
    {"tcp", TD_BENCH_TCP}, {"unix", TD_BENCH_UNIX}, {"shm", TD_BENCH_SHM}};

#define LINKS TD_COUNT_OF(links)

enum { PUT_CALLBACK, CAPTURE_INSTALLED, SPANS };
enum { P50, P99, QUANTILES };
_Static_assert(QUANTILES == TD_BENCH_BARE_QUANTILES, "as the ping says them");

static const double quantiles[] = {[P50] = 0.5, [P99] = 0.99};

static const struct {
    const char *name;
    double limits[QUANTILES]; // of the ratio; 0: none
} spans[] = {
    [PUT_CALLBACK] = {"put-callback", {1.3, 1.5}},
    [CAPTURE_INSTALLED] = {"capture-installed", {1.6, 0}},
};

// One size over one link: both sides, and what their blocks gave.
typedef struct world {
    td_bench_setup setup;
    td_bench_server server;
    td_bench_bare bare, handed;
    size_t samples; // of a block
    td_robot_hardware *robot;
    td_net *net;
    td_bench_pairs pairs[SPANS][QUANTILES], handed_pairs[QUANTILES];
    td_hist ours[SPANS];
    td_hist now, before; // scratch
} world;

static void world_free(world *w)
{
    if (w->net) td_net_close(w->net);
    if (w->robot) td_robot_hardware_close(w->robot);
    td_bench_bare_end(&w->handed);
    td_bench_bare_end(&w->bare);
    td_bench_child_end(&w->server.child);
    free(w);
}
TD_AUTO_FREE(world, world_free)

static td_err world_open(td_bench_link link, const size_case *size,
                         size_t samples, world **ret_world, td_errinfo *info)
{
    TD_AUTO(world) *w = calloc(1, sizeof *w);
    if (!w) return TD_ERR_NOMEM;
    w->samples = samples;
    w->setup = (td_bench_setup){.link = link,
                                .fps = size->fps,
                                .cameras = size->cameras,
                                .height = size->height,
                                .width = size->width,
                                .raw = size->raw,
                                .eager = true};
    TD_TRY(td_bench_still_open(&w->setup, &w->robot));
    TD_TRY(td_bench_server_start(&w->setup, &w->server, info));
    TD_TRY(td_bench_bare_start(&w->setup, TD_BENCH_AT_ONCE, samples, &w->bare,
                               info));
    TD_TRY(td_bench_bare_start(&w->setup, TD_BENCH_HANDED_OVER, samples,
                               &w->handed, info));
    TD_TRY(td_bench_net_open(&w->setup, &w->server, &w->net, info));
    *ret_world = TD_TAKE(w);
    return TD_OK;
}

static td_err wait_for_samples(const td_hist *hist, uint64_t count,
                               td_errinfo *info)
{
    int64_t until_ns = td_clock_monotonic_ns() + BLOCK_WAIT_NS;
    while (td_hist_count(hist) < count) {
        TD_TRY(td_bench_sleep(LOOK_NS));
        if (td_clock_monotonic_ns() > until_ns)
            return td_fail(info, TD_ERR_TIMEOUT, "%llu answers in 30 s",
                           (unsigned long long)td_hist_count(hist));
    }
    return TD_OK;
}

static void copy_hist(const td_hist *live, td_hist *ret_copy)
{
    td_hist_init(ret_copy);
    td_hist_merge(ret_copy, live);
}

// A robot of its own for each block; connecting and warming up do not count.
static td_err run_ours(world *w, td_errinfo *info)
{
    TD_AUTO(td_bench_edge) *edge = NULL;
    TD_TRY(td_bench_edge_open(&w->setup, w->net, w->robot, &edge, info));
    td_edge_times times = td_edge_times_get(td_bench_edge_get(edge));
    const td_hist *live[] = {[PUT_CALLBACK] = times.transport_ns,
                             [CAPTURE_INSTALLED] = times.installed_ns};
    TD_TRY(wait_for_samples(live[CAPTURE_INSTALLED], WARM_SAMPLES, info));
    for (int i = 0; i < SPANS; i++)
        copy_hist(live[i], &w->ours[i]);
    TD_TRY(wait_for_samples(live[CAPTURE_INSTALLED], WARM_SAMPLES + w->samples,
                            info));
    for (int i = 0; i < SPANS; i++) {
        w->before = w->ours[i];
        copy_hist(live[i], &w->now);
        td_hist_since(&w->now, &w->before, &w->ours[i]);
    }
    return TD_OK;
}

// The bare ping is in the middle, beside both; who goes first alternates.
static td_err run_round(world *w, bool ours_first, td_errinfo *info)
{
    double bare_us[QUANTILES], handed_us[QUANTILES];
    if (ours_first) TD_TRY(run_ours(w, info));
    if (!ours_first) TD_TRY(td_bench_bare_block(&w->handed, handed_us, info));
    TD_TRY(td_bench_bare_block(&w->bare, bare_us, info));
    if (ours_first) TD_TRY(td_bench_bare_block(&w->handed, handed_us, info));
    if (!ours_first) TD_TRY(run_ours(w, info));
    for (int q = 0; q < QUANTILES; q++) {
        td_bench_pairs_add(&w->handed_pairs[q], handed_us[q], bare_us[q]);
        for (int span = 0; span < SPANS; span++)
            td_bench_pairs_add(
                &w->pairs[span][q],
                td_bench_quantile_us(&w->ours[span], quantiles[q]), bare_us[q]);
    }
    return TD_OK;
}

static void print_pairs(const td_bench_options *options,
                        const td_bench_pairs pairs[QUANTILES],
                        const double limits[QUANTILES], const char *prefix,
                        const char *what)
{
    for (int q = 0; q < QUANTILES; q++) {
        char name[64];
        (void)snprintf(name, sizeof name, "%s/%s/p%g", prefix, what,
                       100 * quantiles[q]);
        const td_bench_row row = {
            .bench = "rt",
            .name = name,
            .value = td_bench_pairs_value(&pairs[q]),
            .unit = "us",
            .against = "zenoh ping",
            .ratio = td_bench_pairs_ratio(&pairs[q]),
            .limited = limits[q] > 0 ? TD_BENCH_RATIO : TD_BENCH_NO_LIMIT,
            .limit = limits[q],
        };
        td_bench_print(options, &row);
    }
}

static void print_world(const td_bench_options *options, const world *w,
                        const char *link, const char *size_name)
{
    static const double none[QUANTILES] = {0};
    char prefix[32];
    (void)snprintf(prefix, sizeof prefix, "%s/%s", link, size_name);
    for (int span = 0; span < SPANS; span++)
        print_pairs(options, w->pairs[span], spans[span].limits, prefix,
                    spans[span].name);
    print_pairs(options, w->handed_pairs, none, prefix, "ping-handed-over");
}

// Shared memory beside TCP, block by block.
static void print_gain(const td_bench_options *options, const world *shm,
                       const world *tcp, int span, const char *size_name)
{
    td_bench_pairs pairs = {0};
    const td_bench_pairs *ours = &shm->pairs[span][P50];
    const td_bench_pairs *theirs = &tcp->pairs[span][P50];
    for (size_t i = 0; i < ours->count; i++)
        td_bench_pairs_add(&pairs, ours->ours[i], theirs->ours[i]);
    char name[64];
    (void)snprintf(name, sizeof name, "shm-to-tcp/%s/%s/p50", size_name,
                   spans[span].name);
    const td_bench_row row = {
        .bench = "rt",
        .name = name,
        .value = td_bench_pairs_value(&pairs),
        .unit = "us",
        .against = "over TCP",
        .ratio = td_bench_pairs_ratio(&pairs),
        .limited = TD_BENCH_RATIO,
        .limit = 1.0 / 3,
    };
    td_bench_print(options, &row);
}

static td_err run_blocks(const td_bench_options *options, const size_case *size,
                         world *worlds[LINKS], td_errinfo *info)
{
    size_t blocks = options->quick ? 3 : 25;
    size_t samples = options->quick ? 100 : (size_t)size->fps;
    for (size_t i = 0; i < LINKS; i++)
        TD_TRY(world_open(links[i].link, size, samples, &worlds[i], info));
    for (size_t block = 0; block < blocks; block++)
        for (size_t i = 0; i < LINKS; i++) {
            td_bench_progress("rt: %s over %s, block %zu of %zu", size->name,
                              links[i].name, block + 1, blocks);
            TD_TRY(run_round(worlds[i], block % 2 == 0, info));
        }
    return TD_OK;
}

static td_err run_size(const td_bench_options *options, const size_case *size,
                       td_errinfo *info)
{
    world *worlds[LINKS] = {0};
    td_err err = run_blocks(options, size, worlds, info);
    for (size_t i = 0; err == TD_OK && i < LINKS; i++)
        print_world(options, worlds[i], links[i].name, size->name);
    for (int span = 0; err == TD_OK && size->fps == 200 && span < SPANS; span++)
        print_gain(options, worlds[TD_BENCH_SHM], worlds[TD_BENCH_TCP], span,
                   size->name);
    for (size_t i = 0; i < LINKS; i++)
        if (worlds[i]) world_free(worlds[i]);
    return err;
}

static td_err run_all(const td_bench_options *options, td_errinfo *info)
{
    for (size_t i = 0; i < TD_COUNT_OF(sizes); i++)
        if (td_bench_wanted(options, sizes[i].name))
            TD_TRY(run_size(options, &sizes[i], info));
    return TD_OK;
}

td_err td_bench_rt(const td_bench_options *options, td_errinfo *info)
{
    int awake = td_bench_stay_awake(options);
    td_err err = run_all(options, info);
    if (awake >= 0) (void)close(awake);
    return err;
}
