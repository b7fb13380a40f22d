// SPDX-License-Identifier: Apache-2.0
#include "server/report/view.h"

#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define NOW_NS (1000 * TD_NS_PER_S)
#define MINUTE_NS (60 * TD_NS_PER_S)

// Two servers, one with clients.
struct world {
    td_server_stats *stats[2];
    td_server_view views[2];
    char *text;
    size_t size;
};

static void read_view(struct world *w, size_t index, const char *client)
{
    td_server_view_done(&w->views[index]);
    w->views[index] = (td_server_view){
        .about = {index ? "gpu-2" : "gpu-1", "act", "v1", "pick", "cuda:0"},
        .state = index ? TD_WIRE_WARMING : TD_WIRE_READY,
        .counts =
            {.received = 10,
             .outcomes = {[TD_SERVER_ANSWERED] = 9, [TD_SERVER_WAITING] = 1}},
    };
    assert_int_equal(td_server_view_read(&w->views[index], w->stats[index],
                                         NOW_NS, MINUTE_NS, client),
                     TD_OK);
}

static void record(td_server_stats *stats)
{
    assert_int_equal(td_server_stats_enter(stats, 0, "arm-0", NOW_NS), TD_OK);
    assert_int_equal(td_server_stats_enter(stats, 1, "arm-1", NOW_NS), TD_OK);
    for (int i = 0; i < 4; i++)
        td_server_stats_record(stats, TD_SERVER_SPREAD_INFERENCE, 0, NOW_NS,
                               30000);
    td_server_stats_record(stats, TD_SERVER_SPREAD_BATCH, TD_SERVER_NOBODY,
                           NOW_NS, 3);
    td_server_stats_error(stats, 1, TD_ERR_CLOSED);
    td_server_stats_count(stats, TD_SERVER_COUNT_DEVICE_US, 0, 1500000);
    assert_int_equal(td_server_stats_enter(stats, 2, "arm-2", NOW_NS), TD_OK);
    td_server_stats_leave(stats, 2);
}

static int setup(void **state)
{
    struct world *w = calloc(1, sizeof *w);
    if (!w) return 1;
    for (size_t i = 0; i < 2; i++)
        if (td_server_stats_new(4, &w->stats[i]) != TD_OK) return 1;
    record(w->stats[0]);
    read_view(w, 0, NULL);
    read_view(w, 1, NULL);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;
    for (size_t i = 0; i < 2; i++) {
        td_server_view_done(&w->views[i]);
        td_server_stats_free(w->stats[i]);
    }
    free(w->text);
    free(w);
    return 0;
}

static void write_prometheus(struct world *w)
{
    td_prom prom;
    FILE *out = open_memstream(&w->text, &w->size);
    assert_non_null(out);
    td_prom_init(&prom, out);
    td_server_view_prometheus(w->views, 2, &prom);
    assert_int_equal(fclose(out), 0);
}

static void write_json(struct world *w, size_t index)
{
    free(w->text);
    w->text = NULL;
    td_json json;
    FILE *out = open_memstream(&w->text, &w->size);
    assert_non_null(out);
    td_json_init(&json, out);
    td_server_view_json(&w->views[index], NOW_NS + TD_NS_PER_S, &json);
    assert_int_equal(fclose(out), 0);
}

static void assert_says(const struct world *w, const char *line)
{
    if (!strstr(w->text, line)) fail_msg("no %s in:\n%s", line, w->text);
}

static void every_metric_has_its_family(void **state)
{
    struct world *w = *state;
    write_prometheus(w);
    const td_server_metric *const tables[] = {
        td_server_spread_rows, td_server_counter_rows, td_server_gauge_rows};
    const int counts[] = {TD_SERVER_SPREAD_COUNT, TD_SERVER_COUNTER_COUNT,
                          TD_SERVER_GAUGE_COUNT};
    for (size_t i = 0; i < TD_COUNT_OF(tables); i++)
        for (int j = 0; j < counts[i]; j++) {
            char line[128];
            (void)snprintf(line, sizeof line, "# TYPE %s ", tables[i][j].prom);
            const char *first = strstr(w->text, line);
            if (!first) fail_msg("no %s", line);
            if (strstr(first + 1, line)) fail_msg("twice: %s", line);
        }
}

static void samples_have_their_labels_and_units(void **state)
{
    struct world *w = *state;
    write_prometheus(w);
#define WHO "server=\"gpu-1\",model=\"act\""
    static const char *const lines[] = {
        "tendon_server_info{" WHO ",version=\"v1\",application=\"pick\","
        "device=\"cuda:0\"} 1\n",
        "tendon_server_state{" WHO ",state=\"ready\"} 1\n",
        "tendon_server_state{server=\"gpu-2\",model=\"act\","
        "state=\"warming\"} 1\n",
        "tendon_server_observations_received_total{" WHO "} 10\n",
        "tendon_server_observations_pending{" WHO ",outcome=\"waiting\"} 1\n",
        "tendon_server_observations_ended_total{" WHO
        ",outcome=\"answered\"} 9\n",
        "tendon_server_inference_latency_seconds_bucket{" WHO
        ",client=\"arm-0\",le=\"0.025\"} 0\n",
        "tendon_server_inference_latency_seconds_bucket{" WHO
        ",client=\"arm-0\",le=\"0.05\"} 4\n",
        "tendon_server_inference_latency_seconds_sum{" WHO
        ",client=\"arm-0\"} 0.12\n",
        "tendon_server_inference_latency_seconds_count{" WHO
        ",client=\"arm-1\"} 0\n",
        "tendon_server_batch_size_bucket{" WHO ",le=\"4\"} 1\n",
        "tendon_server_dispatch_errors_total{" WHO
        ",client=\"arm-1\",error=\"CLOSED\"} 1\n",
        "tendon_server_device_seconds_total{" WHO ",client=\"arm-0\"} 1.5\n",
        "tendon_server_client_disconnected_total{" WHO ",client=\"arm-2\"} 1\n",
    };
#undef WHO
    for (size_t i = 0; i < TD_COUNT_OF(lines); i++)
        assert_says(w, lines[i]);
}

static void the_json_holds_everything_once(void **state)
{
    struct world *w = *state;
    write_json(w, 0);
    assert_says(w, "{\"server\":\"gpu-1\",\"model\":\"act\",\"version\":\"v1\","
                   "\"application\":\"pick\",\"device\":\"cuda:0\","
                   "\"state\":\"ready\",\"received\":10,\"outcomes\":{"
                   "\"waiting\":1,\"running\":0,\"answered\":9,");
    assert_says(w, "\"inference_latency_ms\":{\"count\":4,\"mean\":30,"
                   "\"min\":30,\"p50\":30,\"p95\":30,\"p99\":30,\"max\":30}");
    assert_says(w, "\"errors\":{\"CLOSED\":1}");
    assert_says(w, "\"client\":\"arm-0\",\"attached_s\":1,");
    assert_says(w, "\"departed\":{\"arm-2\":1}");
}

static void one_client_may_be_asked_for(void **state)
{
    struct world *w = *state;
    read_view(w, 0, "arm-1");
    write_json(w, 0);
    assert_says(w, "\"clients\":[{\"client\":\"arm-1\"");
    assert_null(strstr(w->text, "\"client\":\"arm-0\""));
    read_view(w, 0, "nobody");
    write_json(w, 0);
    assert_says(w, "\"clients\":[]");
    read_view(w, 0, "");
    assert_int_equal(w->views[0].client_count, 0);
}

static void the_page_has_a_row_for_each(void **state)
{
    struct world *w = *state;
    FILE *out = open_memstream(&w->text, &w->size);
    assert_non_null(out);
    td_server_metrics_page(out);
    assert_int_equal(fclose(out), 0);
    assert_says(w, "| `inference_latency_ms` | spread | "
                   "`tendon_server_inference_latency_seconds` | server, model, "
                   "client | ");
    assert_says(w, "| `answered`, `failed`");
}

#define VIEW_TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        VIEW_TEST(every_metric_has_its_family),
        VIEW_TEST(samples_have_their_labels_and_units),
        VIEW_TEST(the_json_holds_everything_once),
        VIEW_TEST(one_client_may_be_asked_for),
        VIEW_TEST(the_page_has_a_row_for_each),
    };
    return cmocka_run_group_tests_name("server/view", tests, NULL, NULL);
}
