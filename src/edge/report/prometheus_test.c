// SPDX-License-Identifier: Apache-2.0
#include "edge/report/prometheus.h"

#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static td_edge_report report;
static td_hist lateness, age, control, transport, installed, skew;
static const td_edge_times times = {.lateness_ns = &lateness,
                                    .age_ns = &age,
                                    .control_ns = &control,
                                    .transport_ns = &transport,
                                    .installed_ns = &installed,
                                    .skew_ns = &skew};
static char *text; // as written last

static int setup(void **state)
{
    (void)state;
    report = (td_edge_report){.state = TD_EDGE_STREAMING};
    td_hist_init(&lateness);
    td_hist_init(&age);
    td_hist_init(&control);
    td_hist_init(&transport);
    td_hist_init(&installed);
    td_hist_init(&skew);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    free(text);
    text = NULL;
    return 0;
}

static void write_all(void)
{
    free(text);
    text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    td_prom prom;
    td_prom_init(&prom, out);
    td_edge_prometheus_write(&prom, "arm \"1\"", &report, &times);
    assert_int_equal(fclose(out), 0);
}

static void assert_line(const char *line)
{
    char whole[256];
    snprintf(whole, sizeof whole, "\n%s\n", line);
    if (!strstr(text, whole)) fail_msg("no line %s in\n%s", line, text);
}

static void each_counter_has_its_name(void **state)
{
    (void)state;
    report.counts.ticks = 101;
    report.counts.fresh = 102;
    report.counts.starved = 103;
    report.counts.asked = 104;
    report.counts.sent = 105;
    report.counts.left = 106;
    report.missed_ticks = 107;
    report.outbox_replaced = 108;
    report.inbox_full = 110;
    report.driver_failed = 111;
    report.metrics_failed = 112;
    report.counts.blends_refused = 113;
    report.counts.warnings = 114;
    report.counts.asked_again = 115;
    write_all();
    assert_line("tendon_edge_ticks_total 101");
    assert_line("tendon_edge_fresh_ticks_total 102");
    assert_line("tendon_edge_starved_ticks_total 103");
    assert_line("tendon_edge_observations_asked_total 104");
    assert_line("tendon_edge_observations_sent_total 105");
    assert_line("tendon_edge_buffer_rows 106");
    assert_line("tendon_edge_missed_ticks_total 107");
    assert_line("tendon_edge_observations_replaced_total 108");
    assert_line("tendon_edge_inbox_full_total 110");
    assert_line("tendon_edge_driver_failed_total 111");
    assert_line("tendon_edge_metrics_failed_total 112");
    assert_line("tendon_edge_blends_refused_total 113");
    assert_line("tendon_edge_starved_warnings_total 114");
    assert_line("tendon_edge_answers_asked_again_total 115");
}

static void what_is_recorded_has_its_names(void **state)
{
    (void)state;
    report.camera_count = 1;
    strcpy(report.cameras[0].name, "top");
    write_all();
    assert_line("tendon_edge_record_state{state=\"off\"} 1");
    report.record = (td_edge_record_status){
        .state = TD_EDGE_RECORD_RECORDING,
        .episodes = 201,
        .frames = 202,
        .lost = 203,
        .between = 204,
        .missing = {205},
        .room_s = 206,
    };
    write_all();
    assert_line("tendon_edge_record_state{state=\"recording\"} 1");
    assert_line("tendon_edge_record_episodes_total 201");
    assert_line("tendon_edge_record_frames 202");
    assert_line("tendon_edge_record_lost_total 203");
    assert_line("tendon_edge_record_between_total 204");
    assert_line("tendon_edge_record_missing_total{camera=\"top\"} 205");
    assert_line("tendon_edge_record_room_seconds 206");
}

// Gives each counter of the report, whatever it is called, a number of its own
// and looks for it: one that is added and forgotten here is found missing.
static void no_counter_is_left_out(void **state)
{
    (void)state;
    size_t none =
        offsetof(td_edge_report, counts.failsafes[TD_EDGE_FAILSAFE_FOR_NONE]);
    size_t begin = offsetof(td_edge_report, counts);
    size_t end = offsetof(td_edge_report, server);
    for (size_t at = begin; at < end; at += sizeof(uint64_t)) {
        uint64_t number = 1000000 + at;
        memcpy((char *)&report + at, &number, sizeof number);
    }
    write_all();
    for (size_t at = begin; at < end; at += sizeof(uint64_t)) {
        if (at == none) continue; // no fail-safe
        char ending[32];
        snprintf(ending, sizeof ending, " %zu\n", 1000000 + at);
        if (!strstr(text, ending))
            fail_msg("the counter at %zu is not there", at);
    }
}

static void outcomes_and_strays_are_labels(void **state)
{
    (void)state;
    for (int i = 0; i < TD_EDGE_OUTCOME_COUNT; i++)
        report.counts.outcomes[i] = 1000 + (uint64_t)i;
    for (int i = 0; i < TD_EDGE_STRAY_COUNT; i++)
        report.counts.strays[i] = 2000 + (uint64_t)i;
    write_all();
    char line[256];
    for (int i = TD_EDGE_MERGED; i < TD_EDGE_OUTCOME_COUNT; i++) {
        snprintf(line, sizeof line,
                 "tendon_edge_observations_ended_total{outcome=\"%s\"} %d",
                 td_edge_outcome_name((td_edge_outcome)i), 1000 + i);
        assert_line(line);
    }
    for (int i = 0; i < TD_EDGE_STRAY_COUNT; i++) {
        snprintf(line, sizeof line,
                 "tendon_edge_answers_dropped_total{why=\"%s\"} %d",
                 td_edge_stray_name((td_edge_stray)i), 2000 + i);
        assert_line(line);
    }
}

static void fail_safe_and_limits_are_labels(void **state)
{
    (void)state;
    report.counts.failsafes[TD_EDGE_FAILSAFE_FOR_DRIVER] = 5;
    report.counts.limited[TD_EDGE_GATE_STEP] = 6;
    write_all();
    assert_line("tendon_edge_failsafe_ticks_total{why=\"driver\"} 5");
    assert_line("tendon_edge_limited_ticks_total{limit=\"step\"} 6");
    assert_null(strstr(text, "why=\"none\""));
}

static void skips_and_cameras_are_labels(void **state)
{
    (void)state;
    report.counts.skipped[TD_EDGE_SKIP_STALE] = 8;
    report.camera_count = 2;
    report.cameras[0] = (td_edge_camera_report){"top", 9, 10, 11};
    report.cameras[1] = (td_edge_camera_report){"hand", 12, 13, 14};
    write_all();
    assert_line(
        "tendon_edge_observations_skipped_total{why=\"frame_stale\"} 8");
    assert_line("tendon_edge_camera_frames_total{camera=\"top\"} 9");
    assert_line("tendon_edge_camera_failed_total{camera=\"top\"} 10");
    assert_line("tendon_edge_camera_stale_total{camera=\"top\"} 11");
    assert_line("tendon_edge_camera_frames_total{camera=\"hand\"} 12");
}

static void what_may_fall_is_no_counter(void **state)
{
    (void)state;
    report.counts.outcomes[TD_EDGE_PENDING] = 7;
    write_all();
    assert_line("# TYPE tendon_edge_observations_pending gauge");
    assert_line("tendon_edge_observations_pending 7");
    assert_null(strstr(text, "outcome=\"pending\""));
}

static void one_state_is_the_present_one(void **state)
{
    (void)state;
    report.state = TD_EDGE_STALLED;
    report.entered[TD_EDGE_STALLED] = 3;
    write_all();
    assert_line("tendon_edge_state{state=\"STALLED\"} 1");
    assert_line("tendon_edge_state{state=\"STREAMING\"} 0");
    assert_line("tendon_edge_state_entered_total{state=\"STALLED\"} 3");
}

static void robot_and_server_are_named(void **state)
{
    (void)state;
    strcpy(report.server, "gpu-1");
    write_all();
    assert_line(
        "tendon_edge_info{client=\"arm \\\"1\\\"\",server=\"gpu-1\"} 1");
}

static void times_are_in_seconds(void **state)
{
    (void)state;
    td_hist_record(&lateness, 70 * TD_NS_PER_US);
    td_hist_record(&age, 400 * TD_NS_PER_MS);
    td_hist_record(&control, 20 * TD_NS_PER_US);
    td_hist_record(&transport, 3 * TD_NS_PER_MS);
    td_hist_record(&installed, 2 * TD_NS_PER_S);
    td_hist_record(&skew, 20 * TD_NS_PER_MS);
    write_all();
    assert_line("tendon_edge_lateness_seconds_bucket{le=\"0.00005\"} 0");
    assert_line("tendon_edge_lateness_seconds_bucket{le=\"0.0001\"} 1");
    assert_line("tendon_edge_lateness_seconds_sum 0.000070000");
    assert_line("tendon_edge_age_seconds_sum 0.400000000");
    assert_line("tendon_edge_control_seconds_sum 0.000020000");
    assert_line("tendon_edge_transport_seconds_sum 0.003000000");
    assert_line("tendon_edge_installed_seconds_sum 2.000000000");
    assert_line("tendon_edge_installed_seconds_count 1");
    assert_line("tendon_edge_skew_seconds_sum 0.020000000");
}

// As a reader of the format counts: a second TYPE line is an error.
static void no_family_is_introduced_twice(void **state)
{
    (void)state;
    int families = 0;
    write_all();
    for (const char *at = text; (at = strstr(at, "# TYPE ")); at++) {
        char name[TD_PROM_MAX_NAME + 16];
        const char *end = strchr(at + 7, ' ');
        snprintf(name, sizeof name, "%.*s ", (int)(end - at), at);
        if (strstr(at + 1, name)) fail_msg("twice: %s", name);
        families++;
    }
    assert_true(families > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_counter_has_its_name, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(what_is_recorded_has_its_names, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(no_counter_is_left_out, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(fail_safe_and_limits_are_labels, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(outcomes_and_strays_are_labels, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(skips_and_cameras_are_labels, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(what_may_fall_is_no_counter, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(one_state_is_the_present_one, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(robot_and_server_are_named, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(times_are_in_seconds, setup, teardown),
        cmocka_unit_test_setup_teardown(no_family_is_introduced_twice, setup,
                                        teardown),
    };
    return cmocka_run_group_tests_name("edge/prometheus", tests, NULL, NULL);
}
