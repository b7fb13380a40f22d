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

typedef struct house {
    td_net_hub *hub;
    td_config_manifest *manifest;
    td_net *net;
    td_engine *engine;
    td_server_allowance *clients;
    td_server_model *server;
    uint64_t boot;
    td_server_model_report report; // as of the last look
    arm arms[EDGES];
} house;

static void check(td_err err, const td_errinfo *info)
{
    if (err != TD_OK) fail_msg("%s: %s", td_err_name(err), info->text);
}

static void open_server(house *h)
{
    td_server_model_config config;
    td_errinfo info = {.text = ""};
    const td_config_model *entry = &h->manifest->models[0];
    check(td_net_inproc_open(h->hub, "server", &h->net, &info), &info);
    check(td_server_engines_open(entry, NULL, &h->engine, &info), &info);
    check(td_server_settings_from(h->manifest, entry, ++h->boot, &config,
                                  &h->clients),
          &info);
    check(td_server_model_open(h->net, h->engine, &config, &h->server, &info),
          &info);
}

static void close_server(house *h)
{
    td_server_model_close(TD_TAKE(h->server));
    td_engine_close(TD_TAKE(h->engine));
    td_net_close(TD_TAKE(h->net));
    free(TD_TAKE(h->clients));
}

static void run(void *user)
{
    arm *a = user;
    a->result = td_edge_run(a->edge, NULL);
}

static void open_arm(house *h, size_t index)
{
    arm *a = &h->arms[index];
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
    check(td_net_inproc_open(h->hub, a->config.client, &a->net, &info), &info);
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

static int house_setup(void **state)
{
    house *h = calloc(1, sizeof *h);
    td_errinfo info = {.text = ""};
    assert_non_null(h);
    check(td_net_hub_new_threaded(1, &h->hub), &info);
    check(td_config_manifest_parse("manifest.yaml", manifest_text,
                                   strlen(manifest_text), &h->manifest, &info),
          &info);
    open_server(h);
    for (size_t i = 0; i < EDGES; i++)
        open_arm(h, i);
    *state = h;
    return 0;
}

static int house_teardown(void **state)
{
    house *h = *state;
    for (size_t i = 0; i < EDGES; i++)
        if (h->arms[i].edge) close_arm(&h->arms[i]);
    if (h->server) close_server(h);
    td_config_manifest_free(h->manifest);
    td_net_hub_free(h->hub);
    free(h);
    return 0;
}

static void look(house *h)
{
    if (h->server) td_server_model_report_get(h->server, &h->report);
    for (size_t i = 0; i < EDGES; i++)
        if (h->arms[i].edge)
            td_edge_report_get(h->arms[i].edge, &h->arms[i].report);
}

#define house_until(h, is_so) until_named((h), (is_so), #is_so)

static void until_named(house *h, bool (*is_so)(const arm *a), const char *name)
{
    int64_t until_ns = td_clock_monotonic_ns() + WAIT_NS;
    for (;;) {
        bool all = true;
        look(h);
        for (size_t i = 0; i < EDGES; i++)
            all = all && is_so(&h->arms[i]);
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

static void assert_edges_are_even(const house *h)
{
    for (size_t i = 0; i < EDGES; i++) {
        const td_edge_counts *counts = &h->arms[i].report.counts;
        assert_int_equal(sum(counts->outcomes, TD_EDGE_OUTCOME_COUNT),
                         counts->sent);
        assert_int_equal(sum(counts->strays, TD_EDGE_STRAY_COUNT), 0);
        assert_int_equal(h->arms[i].report.inbox_full, 0);
    }
}

static uint64_t edges_ended(const house *h, td_edge_outcome outcome)
{
    uint64_t total = 0;
    for (size_t i = 0; i < EDGES; i++)
        total += h->arms[i].report.counts.outcomes[outcome];
    return total;
}

// An answer leaves before it is counted, so that the server settles last.
static void until_server_is_settled(house *h)
{
    int64_t until_ns = td_clock_monotonic_ns() + WAIT_NS;
    const uint64_t *outcomes = h->report.counts.outcomes;
    for (look(h);
         outcomes[TD_SERVER_WAITING] > 0 || outcomes[TD_SERVER_RUNNING] > 0;
         look(h)) {
        if (td_clock_monotonic_ns() > until_ns)
            fail_msg("the server does not settle");
        td_clock_sleep_until(td_clock_monotonic_ns() + LOOK_NS);
    }
}

static void the_sums_agree_on_both_sides(void **state)
{
    house *h = *state;
    house_until(h, has_merged_many);
    for (size_t i = 0; i < EDGES; i++)
        stop_arm(&h->arms[i]);
    house_until(h, is_settled);
    until_server_is_settled(h);
    assert_edges_are_even(h);
    const td_server_counts *counts = &h->report.counts;
    uint64_t sent = 0;
    for (size_t i = 0; i < EDGES; i++)
        sent += h->arms[i].report.counts.sent;
    uint64_t superseded = edges_ended(h, TD_EDGE_SUPERSEDED);
    assert_int_equal(counts->received, sent);
    assert_int_equal(sum(counts->outcomes, TD_SERVER_OUTCOME_COUNT), sent);
    assert_int_equal(counts->outcomes[TD_SERVER_SUPERSEDED], superseded);
    assert_int_equal(counts->outcomes[TD_SERVER_ANSWERED], sent - superseded);
    assert_int_equal(h->report.clients, EDGES);
    assert_int_equal(h->report.events_dropped, 0);
    assert_int_equal(h->report.puts_failed, 0);
}

static void the_edges_may_go_first(void **state)
{
    house *h = *state;
    house_until(h, is_streaming);
    for (size_t i = 0; i < EDGES; i++)
        close_arm(&h->arms[i]);
    close_server(h);
}

static void the_server_may_go_first(void **state)
{
    house *h = *state;
    house_until(h, is_streaming);
    close_server(h);
    house_until(h, is_reconnecting);
    assert_edges_are_even(h);
}

static void a_server_that_comes_back_is_found_again(void **state)
{
    house *h = *state;
    for (int i = 0; i < 3; i++) {
        house_until(h, is_streaming);
        close_server(h);
        house_until(h, is_reconnecting);
        open_server(h);
    }
    house_until(h, is_streaming);
    house_until(h, has_merged_some);
    assert_edges_are_even(h);
    for (size_t i = 0; i < EDGES; i++)
        assert_true(h->arms[i].report.entered[TD_EDGE_RECONNECTING] >= 3);
}

#define HOUSE_TEST(test)                                                       \
    cmocka_unit_test_setup_teardown(test, house_setup, house_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        HOUSE_TEST(the_sums_agree_on_both_sides),
        HOUSE_TEST(the_edges_may_go_first),
        HOUSE_TEST(the_server_may_go_first),
        HOUSE_TEST(a_server_that_comes_back_is_found_again),
    };
    return cmocka_run_group_tests_name("sim/shells", tests, NULL, NULL);
}
