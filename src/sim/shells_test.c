// SPDX-License-Identifier: Apache-2.0
// A real server and real edges, with all their threads, over one network in
// this process: the sums agree on both sides, and they part in any order.
#include "base/clock.h"
#include "base/sync/thread.h"
#include "edge/settings.h"
#include "net/inproc/inproc.h"
#include "server/load/settings.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define EDGES 2
#define WAIT_NS (30 * TD_NS_PER_S)
#define LOOK_NS (2 * TD_NS_PER_MS)

static const char manifest_text[] =
    "cluster_uuid: lab\n"
    "experiment_tag: trial\n"
    "models:\n"
    "- model_id: act\n"
    "  model_version: v1\n"
    "  application_tag: demo\n"
    "  server_id: gpu-1\n"
    "  fps: 200\n"
    "  endpoint: tcp/127.0.0.1:7447\n"
    "  clients:\n"
    "  - client_uuid: arm-0\n"
    "  - client_uuid: arm-1\n"
    "  engine:\n"
    "    kind: synthetic\n"
    "    actions: [lift, turn]\n"
    "    cameras: {top: {height: 48, width: 64}}\n"
    "    chunk: 10\n"
    "    max_batch: 2\n"
    "    latency: {kind: fixed, ms: 1}\n";

static const char robot_text[] = "cluster_uuid: lab\n"
                                 "experiment_tag: trial\n"
                                 "model_id: act\n"
                                 "model_version: v1\n"
                                 "application_tag: demo\n"
                                 "client_uuid: arm-%zu\n"
                                 "endpoint: tcp/127.0.0.1:7447\n"
                                 "fps: 200\n"
                                 "actions_per_chunk: 10\n"
                                 "realtime: {priority: 0}\n"
                                 "metrics_hz: 20\n"
                                 "robot:\n"
                                 "  kind: synthetic\n"
                                 "  joints: [lift, turn]\n"
                                 "  cameras: {top: {height: 48, width: 64}}\n";

typedef struct arm {
    td_config_robot *file;
    td_edge_config config;
    td_net *net;
    td_robot_hardware *robot;
    td_edge *edge;
    td_thread *thread; // runs td_edge_run()
    td_err result;
    td_edge_report report; // as of the last look
} arm;

typedef struct world {
    td_net_hub *hub;
    td_config_manifest *manifest;
    td_net *net;
    td_engine *engine;
    td_server_allowance *clients;
    td_server_model *server;
    uint64_t boot;
    td_server_model_report report; // as of the last look
    arm arms[EDGES];
} world;

static void check(td_err err, const td_errinfo *info)
{
    if (err != TD_OK) fail_msg("%s: %s", td_err_name(err), info->text);
}

static void open_server(world *w)
{
    td_server_model_config config;
    td_errinfo info = {.text = ""};
    const td_config_model *entry = &w->manifest->models[0];
    check(td_net_inproc_open(w->hub, "server", &w->net, &info), &info);
    check(td_server_engines_open(entry, NULL, &w->engine, &info), &info);
    check(td_server_settings_from(w->manifest, entry, ++w->boot, &config,
                                  &w->clients),
          &info);
    check(td_server_model_open(w->net, w->engine, &config, &w->server, &info),
          &info);
}

static void close_server(world *w)
{
    td_server_model_close(TD_TAKE(w->server));
    td_engine_close(TD_TAKE(w->engine));
    td_net_close(TD_TAKE(w->net));
    free(TD_TAKE(w->clients));
}

static void run(void *user)
{
    arm *a = user;
    a->result = td_edge_run(a->edge, NULL);
}

static void open_arm(world *w, size_t index)
{
    arm *a = &w->arms[index];
    char text[sizeof robot_text + 16];
    const td_thread_config thread = {.name = "td-run", .cpu = -1};
    td_robot_config robot;
    td_errinfo info = {.text = ""};
    (void)snprintf(text, sizeof text, robot_text, index);
    check(td_config_robot_parse("robot.yaml", text, strlen(text), &a->file,
                                &info),
          &info);
    td_edge_settings_from(a->file, 1, &a->config);
    td_edge_settings_robot(a->file, &robot);
    check(td_net_inproc_open(w->hub, a->config.client, &a->net, &info), &info);
    check(td_robot_hardware_open("synthetic", &robot, &a->robot, &info), &info);
    check(td_edge_open(a->net, a->robot, &a->config, &a->edge, &info), &info);
    check(td_thread_start(&thread, run, a, &a->thread, &info), &info);
}

static void stop_arm(arm *a)
{
    td_edge_stop(a->edge);
    td_thread_join(TD_TAKE(a->thread));
    assert_int_equal(a->result, TD_OK);
}

static void close_arm(arm *a)
{
    if (a->thread) stop_arm(a);
    td_edge_close(TD_TAKE(a->edge));
    td_robot_hardware_close(a->robot);
    td_net_close(a->net);
    td_config_robot_free(a->file);
}

static int world_setup(void **state)
{
    world *w = calloc(1, sizeof *w);
    td_errinfo info = {.text = ""};
    assert_non_null(w);
    check(td_net_hub_new_threaded(1, &w->hub), &info);
    check(td_config_manifest_parse("manifest.yaml", manifest_text,
                                   strlen(manifest_text), &w->manifest, &info),
          &info);
    open_server(w);
    for (size_t i = 0; i < EDGES; i++)
        open_arm(w, i);
    *state = w;
    return 0;
}

static int world_teardown(void **state)
{
    world *w = *state;
    for (size_t i = 0; i < EDGES; i++)
        if (w->arms[i].edge) close_arm(&w->arms[i]);
    if (w->server) close_server(w);
    td_config_manifest_free(w->manifest);
    td_net_hub_free(w->hub);
    free(w);
    return 0;
}

static void look(world *w)
{
    if (w->server) td_server_model_report_get(w->server, &w->report);
    for (size_t i = 0; i < EDGES; i++)
        if (w->arms[i].edge)
            td_edge_report_get(w->arms[i].edge, &w->arms[i].report);
}

#define world_until(w, is_so) until_named((w), (is_so), #is_so)

static void until_named(world *w, bool (*is_so)(const arm *a), const char *name)
{
    int64_t until_ns = td_clock_monotonic_ns() + WAIT_NS;
    for (;;) {
        bool all = true;
        look(w);
        for (size_t i = 0; i < EDGES; i++)
            all = all && is_so(&w->arms[i]);
        if (all) return;
        if (td_clock_monotonic_ns() > until_ns)
            fail_msg("waited in vain: %s", name);
        td_clock_sleep_until(td_clock_monotonic_ns() + LOOK_NS);
    }
}

static bool has_merged_many(const arm *a)
{
    return a->report.counts.outcomes[TD_EDGE_MERGED] >= 150;
}

static bool has_merged_some(const arm *a)
{
    return a->report.counts.outcomes[TD_EDGE_MERGED] >= 20;
}

static bool is_streaming(const arm *a)
{
    return a->report.state == TD_EDGE_STREAMING;
}

static bool is_reconnecting(const arm *a)
{
    return a->report.state == TD_EDGE_RECONNECTING;
}

static uint64_t sum(const uint64_t *values, int count)
{
    uint64_t total = 0;
    for (int i = 0; i < count; i++)
        total += values[i];
    return total;
}

// Everything that was asked for has ended.
static bool is_settled(const arm *a)
{
    const td_edge_report *report = &a->report;
    return report->counts.outcomes[TD_EDGE_PENDING] == 0 &&
           report->counts.asked ==
               report->counts.sent + report->outbox_replaced +
                   sum(report->counts.skipped, TD_EDGE_SKIP_COUNT);
}

static void assert_edges_are_even(const world *w)
{
    for (size_t i = 0; i < EDGES; i++) {
        const td_edge_counts *counts = &w->arms[i].report.counts;
        assert_int_equal(sum(counts->outcomes, TD_EDGE_OUTCOME_COUNT),
                         counts->sent);
        assert_int_equal(sum(counts->strays, TD_EDGE_STRAY_COUNT), 0);
        assert_int_equal(w->arms[i].report.inbox_full, 0);
    }
}

static uint64_t edges_ended(const world *w, td_edge_outcome outcome)
{
    uint64_t total = 0;
    for (size_t i = 0; i < EDGES; i++)
        total += w->arms[i].report.counts.outcomes[outcome];
    return total;
}

// An answer leaves before it is counted, so that the server settles last.
static void until_server_is_settled(world *w)
{
    int64_t until_ns = td_clock_monotonic_ns() + WAIT_NS;
    const uint64_t *outcomes = w->report.counts.outcomes;
    for (look(w);
         outcomes[TD_SERVER_WAITING] > 0 || outcomes[TD_SERVER_RUNNING] > 0;
         look(w)) {
        if (td_clock_monotonic_ns() > until_ns)
            fail_msg("the server does not settle");
        td_clock_sleep_until(td_clock_monotonic_ns() + LOOK_NS);
    }
}

static void the_sums_agree_on_both_sides(void **state)
{
    world *w = *state;
    world_until(w, has_merged_many);
    for (size_t i = 0; i < EDGES; i++)
        stop_arm(&w->arms[i]);
    world_until(w, is_settled);
    until_server_is_settled(w);
    assert_edges_are_even(w);
    const td_server_counts *counts = &w->report.counts;
    uint64_t sent = 0;
    for (size_t i = 0; i < EDGES; i++)
        sent += w->arms[i].report.counts.sent;
    uint64_t superseded = edges_ended(w, TD_EDGE_SUPERSEDED);
    assert_int_equal(counts->received, sent);
    assert_int_equal(sum(counts->outcomes, TD_SERVER_OUTCOME_COUNT), sent);
    assert_int_equal(counts->outcomes[TD_SERVER_SUPERSEDED], superseded);
    assert_int_equal(counts->outcomes[TD_SERVER_ANSWERED], sent - superseded);
    assert_int_equal(w->report.clients, EDGES);
    assert_int_equal(w->report.events_dropped, 0);
    assert_int_equal(w->report.puts_failed, 0);
}

static void the_edges_may_go_first(void **state)
{
    world *w = *state;
    world_until(w, is_streaming);
    for (size_t i = 0; i < EDGES; i++)
        close_arm(&w->arms[i]);
    close_server(w);
}

static void the_server_may_go_first(void **state)
{
    world *w = *state;
    world_until(w, is_streaming);
    close_server(w);
    world_until(w, is_reconnecting);
    assert_edges_are_even(w);
}

static void a_server_that_comes_back_is_found_again(void **state)
{
    world *w = *state;
    for (int i = 0; i < 3; i++) {
        world_until(w, is_streaming);
        close_server(w);
        world_until(w, is_reconnecting);
        open_server(w);
    }
    world_until(w, is_streaming);
    world_until(w, has_merged_some);
    assert_edges_are_even(w);
    for (size_t i = 0; i < EDGES; i++)
        assert_true(w->arms[i].report.entered[TD_EDGE_RECONNECTING] >= 3);
}

#define WORLD_TEST(test)                                                       \
    cmocka_unit_test_setup_teardown(test, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(the_sums_agree_on_both_sides),
        WORLD_TEST(the_edges_may_go_first),
        WORLD_TEST(the_server_may_go_first),
        WORLD_TEST(a_server_that_comes_back_is_found_again),
    };
    return cmocka_run_group_tests_name("sim/shells", tests, NULL, NULL);
}
