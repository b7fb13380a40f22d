// SPDX-License-Identifier: Apache-2.0
// A robot and its server on two networks of their own with a cable between: as
// the kernel has it, slow and lossy, or with a relay in it that takes its time.
// What reaches the robot's joints, how old it is, and what it costs in bytes.
#include "net/net.h"
#include "base/clock.h"
#include "bench/netns.h"
#include "bench/rig.h"

#include <stdio.h>
#include <stdlib.h>

#define SERVER_PLACE TD_BENCH_FAR_ADDRESS ":7447"
#define RELAY_PLACE TD_BENCH_FAR_ADDRESS ":7448"
#define SETTLE_NS (2 * TD_NS_PER_S)
#define WATCH_NS (20 * TD_NS_PER_S)
#define QUICK_WATCH_NS (3 * TD_NS_PER_S)

static const struct network {
    const char *name;
    unsigned mbit, loss_percent; // 0: no limit, none
    const char *delay_ms,
        *jitter_ms; // of a relay, each way; NULL: there is none
} networks[] = {
    {.name = "cable"},
    {.name = "100mbit-loss2", .mbit = 100, .loss_percent = 2},
    {.name = "relay-40ms", .delay_ms = "40", .jitter_ms = "20"},
};

static const struct codec {
    const char *name;
    int jpeg_quality; // 0: raw
} codecs[] = {
    {"jpeg50", 50},
    {"jpeg75", 75},
    {"jpeg90", 90},
    {"raw", 0},
};

// What has happened until a moment.
typedef struct moment {
    int64_t now_ns;
    td_edge_report report;
    td_hist age_ns, round_trip_ns;
    uint64_t sent_bytes;
    uint64_t dropped; // messages, for want of room on the link
} moment;

typedef struct world {
    const td_bench_options *options;
    td_bench_netns *netns;
    td_bench_server server;
    td_bench_child relay;
    td_net *net;
    td_robot_hardware *robot;
    td_bench_edge *edge;
    moment before, after;
    td_hist age_ns, round_trip_ns; // between the two
} world;

static void close_run(world *w)
{
    if (w->edge) td_bench_edge_close(TD_TAKE(w->edge));
    if (w->robot) td_robot_hardware_close(TD_TAKE(w->robot));
    if (w->net) td_net_close(TD_TAKE(w->net));
    td_bench_child_end(&w->relay);
    td_bench_child_end(&w->server.child);
}

static void world_free(world *w)
{
    close_run(w);
    if (w->netns) td_bench_netns_close(w->netns);
    free(w);
}
TD_AUTO_FREE(world, world_free)

static td_err start_far(world *w, const struct network *network,
                        const td_bench_setup *setup, td_errinfo *info)
{
    TD_TRY(td_bench_server_start(setup, &w->server, info));
    if (!network->delay_ms) return TD_OK;
    const char *args[] = {"relay",
                          RELAY_PLACE,
                          SERVER_PLACE,
                          network->delay_ms,
                          network->jitter_ms,
                          "1",
                          NULL};
    TD_TRY(td_bench_child_start(args, &w->relay, info));
    TD_TRY(td_bench_child_ready(&w->relay, info));
    (void)snprintf(w->server.endpoint, sizeof w->server.endpoint, "tcp/%s",
                   RELAY_PLACE);
    return TD_OK;
}

static td_err open_run(world *w, const struct network *network,
                       const struct codec *codec, td_errinfo *info)
{
    const td_bench_setup setup = {
        .link = TD_BENCH_TCP,
        .fps = 30,
        .cameras = 2,
        .height = 480,
        .width = 640,
        .raw = codec->jpeg_quality == 0,
        .jpeg_quality = codec->jpeg_quality,
        .eager = true,
        .listen = "tcp/" SERVER_PLACE,
    };
    TD_TRY(td_bench_netns_enter(w->netns, TD_BENCH_FAR, info));
    td_err err = start_far(w, network, &setup, info);
    TD_TRY(td_bench_netns_enter(w->netns, TD_BENCH_NEAR, info));
    TD_TRY(err);
    TD_TRY(td_bench_net_open(&setup, &w->server, &w->net, info));
    TD_TRY(td_bench_synthetic_open(&setup, &w->robot, info));
    return td_bench_edge_open(&setup, w->net, w->robot, &w->edge, info);
}

static td_err look(const world *w, moment *ret_moment, td_errinfo *info)
{
    td_edge *edge = td_bench_edge_get(w->edge);
    td_edge_times times = td_edge_times_get(edge);
    ret_moment->now_ns = td_clock_monotonic_ns();
    td_edge_report_get(edge, &ret_moment->report);
    td_hist_init(&ret_moment->age_ns);
    td_hist_merge(&ret_moment->age_ns, times.age_ns);
    td_hist_init(&ret_moment->round_trip_ns);
    td_hist_merge(&ret_moment->round_trip_ns, times.transport_ns);
    ret_moment->dropped = td_net_counts_get(w->net).drops;
    return td_bench_netns_sent(&ret_moment->sent_bytes, info);
}

static td_err watch(world *w, td_errinfo *info)
{
    TD_TRY(td_bench_sleep(SETTLE_NS));
    TD_TRY(look(w, &w->before, info));
    TD_TRY(td_bench_sleep(w->options->quick ? QUICK_WATCH_NS : WATCH_NS));
    TD_TRY(look(w, &w->after, info));
    td_hist_since(&w->after.age_ns, &w->before.age_ns, &w->age_ns);
    td_hist_since(&w->after.round_trip_ns, &w->before.round_trip_ns,
                  &w->round_trip_ns);
    return TD_OK;
}

static double fresh_percent(const world *w)
{
    const td_edge_counts *before = &w->before.report.counts;
    const td_edge_counts *after = &w->after.report.counts;
    uint64_t ticks = after->ticks - before->ticks;
    if (ticks == 0) return 0;
    return 100 * (double)(after->fresh - before->fresh) / (double)ticks;
}

static double per_second(const world *w, uint64_t before, uint64_t after)
{
    int64_t ns = w->after.now_ns - w->before.now_ns;
    return (double)(after - before) * (double)TD_NS_PER_S / (double)ns;
}

static void print_row(const world *w, const char *of, const char *name,
                      const char *unit, double value, bool more)
{
    char whole[64];
    (void)snprintf(whole, sizeof whole, "%s/%s", of, name);
    const td_bench_row row = {.bench = "net",
                              .name = whole,
                              .value = value,
                              .unit = unit,
                              .more = more};
    td_bench_print(w->options, &row);
}

// Nothing where nothing came.
static void print_times(const world *w, const char *of, const char *name,
                        const td_hist *hist)
{
    static const double quantiles[] = {0.5, 0.99};
    if (td_hist_count(hist) == 0) return;
    for (size_t i = 0; i < TD_COUNT_OF(quantiles); i++) {
        char whole[32];
        (void)snprintf(whole, sizeof whole, "%s/p%g", name, 100 * quantiles[i]);
        print_row(w, of, whole, "ms",
                  td_bench_quantile_us(hist, quantiles[i]) / 1000, false);
    }
}

static void print(const world *w, const char *of)
{
    const uint64_t *merged[] = {w->before.report.counts.outcomes,
                                w->after.report.counts.outcomes};
    print_row(w, of, "fresh", "%", fresh_percent(w), true);
    print_times(w, of, "age", &w->age_ns);
    print_times(w, of, "put-callback", &w->round_trip_ns);
    print_row(
        w, of, "chunks", "1/s",
        per_second(w, merged[0][TD_EDGE_MERGED], merged[1][TD_EDGE_MERGED]),
        true);
    print_row(w, of, "dropped", "1/s",
              per_second(w, w->before.dropped, w->after.dropped), false);
    print_row(w, of, "sent", "kB/s",
              per_second(w, w->before.sent_bytes, w->after.sent_bytes) / 1000,
              false);
}

static td_err run(world *w, const struct network *network,
                  const struct codec *codec, td_errinfo *info)
{
    char of[32];
    (void)snprintf(of, sizeof of, "%s/%s", network->name, codec->name);
    td_bench_progress("net: %s", of);
    TD_TRY(td_bench_netns_shape(w->netns, network->mbit, network->loss_percent,
                                info));
    TD_TRY(open_run(w, network, codec, info));
    TD_TRY(watch(w, info));
    close_run(w);
    print(w, of);
    return TD_OK;
}

td_err td_bench_net(const td_bench_options *options, td_errinfo *info)
{
    TD_AUTO(world) *w = calloc(1, sizeof *w);
    if (!w) return TD_ERR_NOMEM;
    w->options = options;
    TD_TRY(td_bench_netns_open(&w->netns, info));
    for (size_t i = 0; i < TD_COUNT_OF(networks); i++)
        for (size_t k = 0; k < TD_COUNT_OF(codecs); k++)
            TD_TRY(run(w, &networks[i], &codecs[k], info));
    return TD_OK;
}
