// SPDX-License-Identifier: Apache-2.0
#include "edge/report/telemetry.h"

#include "base/clock.h"
#include "wire/tally.h"

#include <stdio.h>
#include <stdlib.h>

#define CAMERA_COUNTERS 3

struct td_edge_telemetry {
    td_edge_telemetry_config config;
    td_net_pub *pub; // NULL: no metrics are sent
    td_wire_encoder *encoder;
    int64_t due_ns;
    _Atomic uint64_t failed;
    char camera_counters[TD_WIRE_MAX_IMAGES][CAMERA_COUNTERS]
                        [TD_WIRE_MAX_NAME + 1]; // their names
};

// Ticks, by why and by which limit; "none" is no fail-safe.
static const char *const failsafe_names[] = {
#define FAILSAFE_NAME(name, text) "failsafe_" text,
    TD_EDGE_FAILSAFE_REASONS(FAILSAFE_NAME)
#undef FAILSAFE_NAME
};
static const char *const limited_names[] = {
#define LIMITED_NAME(name, text) "limited_" text,
    TD_EDGE_GATE_LIMITS(LIMITED_NAME)
#undef LIMITED_NAME
};

static void add_safety(const td_edge_counts *counts, td_wire_metrics *metrics)
{
    for (int i = 1; i < TD_EDGE_FAILSAFE_REASON_COUNT; i++)
        td_wire_tally_counter(metrics, failsafe_names[i], counts->failsafes[i]);
    for (int i = 0; i < TD_EDGE_GATE_LIMIT_COUNT; i++)
        td_wire_tally_counter(metrics, limited_names[i], counts->limited[i]);
    td_wire_tally_counter(metrics, "blends_refused", counts->blends_refused);
    td_wire_tally_counter(metrics, "aggregate_late", counts->aggregate_late);
    td_wire_tally_counter(metrics, "aggregate_failed",
                          counts->aggregate_failed);
}

static void add_counts(const td_edge_report *report, td_wire_metrics *metrics)
{
    const td_edge_counts *counts = &report->counts;
    td_wire_tally_counter(metrics, "ticks", counts->ticks);
    td_wire_tally_counter(metrics, "fresh", counts->fresh);
    td_wire_tally_counter(metrics, "starved", counts->starved);
    td_wire_tally_counter(metrics, "warnings", counts->warnings);
    td_wire_tally_counter(metrics, "asked", counts->asked);
    td_wire_tally_counter(metrics, "asked_again", counts->asked_again);
    for (int i = 0; i < TD_EDGE_SKIP_COUNT; i++)
        td_wire_tally_counter(metrics, td_edge_skip_name((td_edge_skip)i),
                              counts->skipped[i]);
    td_wire_tally_counter(metrics, "sent", counts->sent);
    for (int i = 0; i < TD_EDGE_OUTCOME_COUNT; i++)
        td_wire_tally_counter(metrics, td_edge_outcome_name((td_edge_outcome)i),
                              counts->outcomes[i]);
    for (int i = 0; i < TD_EDGE_STRAY_COUNT; i++)
        td_wire_tally_counter(metrics, td_edge_stray_name((td_edge_stray)i),
                              counts->strays[i]);
    add_safety(counts, metrics);
    td_wire_tally_counter(metrics, "outbox_replaced", report->outbox_replaced);
    td_wire_tally_counter(metrics, "metrics_failed", report->metrics_failed);
    td_wire_tally_counter(metrics, "inbox_full", report->inbox_full);
    td_wire_tally_counter(metrics, "missed_ticks", report->missed_ticks);
    td_wire_tally_counter(metrics, "driver_failed", report->driver_failed);
    td_wire_tally_counter(metrics, "resets_failed", report->resets_failed);
    for (int i = 0; i < TD_EDGE_STATE_COUNT; i++)
        td_wire_tally_counter(metrics, td_edge_state_counter((td_edge_state)i),
                              report->entered[i]);
#define TALLY(field, name, help)                                               \
    td_wire_tally_counter(metrics, name, report->net.field);
    TD_NET_COUNTS(TALLY)
#undef TALLY
    for (int i = 0; i < TD_EDGE_REPLY_COUNT; i++)
        td_wire_tally_counter(metrics, td_edge_reply_counter((td_edge_reply)i),
                              report->replies[i]);
}

static void name_camera_counters(td_edge_telemetry *telemetry)
{
    static const char *const counters[CAMERA_COUNTERS] = {
        "camera_taken", "camera_failed", "camera_stale"};
    for (uint32_t i = 0; i < telemetry->config.camera_count; i++) {
        td_wire_text camera = telemetry->config.cameras[i].name;
        for (int j = 0; j < CAMERA_COUNTERS; j++)
            (void)snprintf(telemetry->camera_counters[i][j],
                           sizeof telemetry->camera_counters[i][j], "%s/%.*s",
                           counters[j], (int)camera.size, camera.data);
    }
}

static td_err telemetry_init(td_edge_telemetry *telemetry, td_errinfo *info)
{
    static const td_net_qos qos = {.priority = TD_NET_DATA_LOW};
    const td_edge_telemetry_config *config = &telemetry->config;
    char key[TD_WIRE_MAX_KEY];
    name_camera_counters(telemetry);
    TD_TRY(td_wire_encoder_new(&telemetry->encoder));
    if (config->period_ns == 0) return TD_OK;
    TD_TRY(td_wire_key(config->route, config->client, "metrics", key, info));
    return td_net_publish(config->net, key, &qos, &telemetry->pub, info);
}

td_err td_edge_telemetry_open(const td_edge_telemetry_config *config,
                              td_edge_telemetry **ret_telemetry,
                              td_errinfo *info)
{
    td_edge_telemetry *made = calloc(1, sizeof *made);
    if (!made) return TD_ERR_NOMEM;
    TD_AUTO(td_edge_telemetry) *telemetry = made;
    telemetry->config = *config;
    TD_TRY(telemetry_init(telemetry, info));
    *ret_telemetry = TD_TAKE(telemetry);
    return TD_OK;
}

void td_edge_telemetry_leave(td_edge_telemetry *telemetry)
{
    if (telemetry->pub) td_net_unpublish(TD_TAKE(telemetry->pub));
}

void td_edge_telemetry_close(td_edge_telemetry *telemetry)
{
    td_edge_telemetry_leave(telemetry);
    if (telemetry->encoder) td_wire_encoder_free(telemetry->encoder);
    free(telemetry);
}

static void add_camera(const td_edge_telemetry *telemetry, uint32_t index,
                       const td_edge_camera_report *camera,
                       td_wire_metrics *metrics)
{
    const uint64_t values[CAMERA_COUNTERS] = {camera->taken, camera->failed,
                                              camera->stale};
    for (int i = 0; i < CAMERA_COUNTERS; i++)
        td_wire_tally_counter(metrics, telemetry->camera_counters[index][i],
                              values[i]);
}

// The state is the number of a td_edge_record_state.
static void add_record(const td_edge_report *report, td_wire_metrics *metrics)
{
    const td_edge_record_status *record = &report->record;
    uint64_t missing = 0;
    for (uint32_t i = 0; i < report->camera_count; i++)
        missing += record->missing[i];
    td_wire_tally_counter(metrics, "record_episodes", record->episodes);
    td_wire_tally_counter(metrics, "record_missing", missing);
    td_wire_tally_counter(metrics, "record_lost", record->lost);
    td_wire_tally_counter(metrics, "record_between", record->between);
    td_wire_tally_gauge(metrics, "record_state", record->state);
    td_wire_tally_gauge(metrics, "record_frames", (double)record->frames);
    td_wire_tally_gauge(metrics, "record_room_s", record->room_s);
}

static void add_times(const td_edge_times *times, td_wire_metrics *metrics)
{
    td_wire_tally_hist(metrics, "lateness_ms", times->lateness_ns);
    td_wire_tally_hist(metrics, "age_ms", times->age_ns);
    td_wire_tally_hist(metrics, "control_ms", times->control_ns);
    td_wire_tally_hist(metrics, "transport_ms", times->transport_ns);
    td_wire_tally_hist(metrics, "installed_ms", times->installed_ns);
    td_wire_tally_hist(metrics, "skew_ms", times->skew_ns);
}

void td_edge_telemetry_fill(const td_edge_telemetry *telemetry, int64_t now_ns,
                            const td_edge_report *report,
                            const td_edge_times *times,
                            td_wire_metrics *ret_metrics)
{
    const td_edge_telemetry_config *config = &telemetry->config;
    *ret_metrics = (td_wire_metrics){
        .source = td_wire_text_of(config->client),
        .boot = config->boot,
        .uptime_us = (now_ns - config->opened_ns) / TD_NS_PER_US,
        .state = td_wire_text_of(td_edge_state_name(report->state)),
    };
    add_counts(report, ret_metrics);
    for (uint32_t i = 0; i < report->camera_count; i++)
        add_camera(telemetry, i, &report->cameras[i], ret_metrics);
    td_wire_tally_gauge(ret_metrics, "buffer_rows", report->counts.left);
    if (report->record.state != TD_EDGE_RECORD_OFF)
        add_record(report, ret_metrics);
    add_times(times, ret_metrics);
}

bool td_edge_telemetry_is_due(const td_edge_telemetry *telemetry,
                              int64_t now_ns)
{
    return telemetry->pub && now_ns >= telemetry->due_ns;
}

static td_err put(td_edge_telemetry *telemetry, const td_wire_metrics *metrics)
{
    size_t count;
    TD_TRY(td_wire_metrics_encode(telemetry->encoder, metrics, NULL));
    const td_slice *parts = td_wire_encoder_parts(telemetry->encoder, &count);
    return td_net_put(telemetry->pub, parts, count, NULL, NULL);
}

void td_edge_telemetry_put(td_edge_telemetry *telemetry, int64_t now_ns,
                           const td_edge_report *report,
                           const td_edge_times *times)
{
    if (!telemetry->pub) return;
    telemetry->due_ns = now_ns + telemetry->config.period_ns;
    td_wire_metrics *metrics = malloc(sizeof *metrics);
    if (!metrics) return;
    td_edge_telemetry_fill(telemetry, now_ns, report, times, metrics);
    if (put(telemetry, metrics) != TD_OK)
        atomic_fetch_add(&telemetry->failed, 1);
    free(metrics);
}

uint64_t td_edge_telemetry_failed(const td_edge_telemetry *telemetry)
{
    return atomic_load(&telemetry->failed);
}
