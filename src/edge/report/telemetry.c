// SPDX-License-Identifier: Apache-2.0
#include "edge/shell.h"
#include "wire/tally.h"

#include <stdio.h>
#include <stdlib.h>

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

void td_edge_telemetry_open(td_edge *edge)
{
    static const char *const counters[TD_EDGE_CAMERA_COUNTERS] = {
        "camera_taken", "camera_failed", "camera_stale"};
    const td_edge_profile *profile = &edge->config.profile;
    for (uint32_t i = 0; i < profile->camera_count; i++) {
        td_wire_text camera = profile->cameras[i].name;
        for (int j = 0; j < TD_EDGE_CAMERA_COUNTERS; j++)
            (void)snprintf(edge->camera_counters[i][j],
                           sizeof edge->camera_counters[i][j], "%s/%.*s",
                           counters[j], (int)camera.size, camera.data);
    }
}

static void add_camera(const td_edge *edge, uint32_t index,
                       const td_edge_camera_report *camera,
                       td_wire_metrics *metrics)
{
    const uint64_t values[TD_EDGE_CAMERA_COUNTERS] = {
        camera->taken, camera->failed, camera->stale};
    for (int i = 0; i < TD_EDGE_CAMERA_COUNTERS; i++)
        td_wire_tally_counter(metrics, edge->camera_counters[index][i],
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

static void fill(const td_edge *edge, int64_t now_ns,
                 const td_edge_report *report, td_wire_metrics *metrics)
{
    metrics->source = td_wire_text_of(edge->config.client);
    metrics->boot = edge->config.core.boot;
    metrics->uptime_us = (now_ns - edge->opened_ns) / TD_NS_PER_US;
    metrics->state = td_wire_text_of(td_edge_state_name(report->state));
    add_counts(report, metrics);
    for (uint32_t i = 0; i < report->camera_count; i++)
        add_camera(edge, i, &report->cameras[i], metrics);
    td_wire_tally_gauge(metrics, "buffer_rows", report->counts.left);
    if (report->record.state != TD_EDGE_RECORD_OFF) add_record(report, metrics);
    td_wire_tally_hist(metrics, "lateness_ms", &edge->lateness_ns);
    td_wire_tally_hist(metrics, "age_ms", &edge->age_ns);
    td_wire_tally_hist(metrics, "control_ms", &edge->control_ns);
    td_wire_tally_hist(metrics, "transport_ms", &edge->transport_ns);
    td_wire_tally_hist(metrics, "installed_ms", &edge->installed_ns);
    td_wire_tally_hist(metrics, "skew_ms", &edge->skew_ns);
}

void td_edge_telemetry_fill(td_edge *edge, int64_t now_ns,
                            td_wire_metrics *ret_metrics)
{
    td_edge_report report;
    td_edge_report_get(edge, &report);
    *ret_metrics = (td_wire_metrics){0};
    fill(edge, now_ns, &report, ret_metrics);
}

void td_edge_telemetry_put(td_edge *edge, td_net_pub *pub,
                           td_wire_encoder *encoder, int64_t now_ns)
{
    td_wire_metrics *metrics = malloc(sizeof *metrics);
    if (!metrics) return;
    td_edge_telemetry_fill(edge, now_ns, metrics);
    td_err err = td_wire_metrics_encode(encoder, metrics, NULL);
    free(metrics);
    if (err == TD_OK) {
        size_t count;
        const td_slice *parts = td_wire_encoder_parts(encoder, &count);
        err = td_net_put(pub, parts, count, NULL, NULL);
    }
    if (err != TD_OK) atomic_fetch_add(&edge->metrics_failed, 1);
}
