// SPDX-License-Identifier: Apache-2.0
// A td_edge_report and its histograms as Prometheus reads them.
//
// Plain counters are rows of one table, by name, help and place in the report:
// a counter that is added to td_edge_report gets a row here and one line in
// telemetry.c. Counters
// by reason, outcome, state or camera have a function each, which gives every
// value its label, those that are 0 too, so that a graph begins at 0.
//
// Times are histograms in seconds. The state of the session and of the
// recording are gauges, 1 for the present one and 0 for the others, as is usual
// there.
//
// No state and no lock: the caller gathers the report.
#include "edge/report/prometheus.h"

#include <string.h>

static const struct {
    const char *name;
    const char *help;
    size_t offset; // of the uint64_t in td_edge_report
} counters[] = {
#define COUNTER(name, field, help)                                             \
    {"tendon_edge_" name "_total", help, offsetof(td_edge_report, field)}
    COUNTER("ticks", counts.ticks, "Control ticks."),
    COUNTER("fresh_ticks", counts.fresh, "Ticks that played a new action."),
    COUNTER("starved_ticks", counts.starved,
            "Ticks that held for want of an action."),
    COUNTER("starved_warnings", counts.warnings,
            "Times it starved for long enough to be reported."),
    COUNTER("missed_ticks", missed_ticks,
            "Periods that went by while the tick was late."),
    COUNTER("observations_asked", counts.asked,
            "Observations that the tick asked for."),
    COUNTER("answers_asked_again", counts.asked_again,
            "Of those, for an answer that was missed."),
    COUNTER("observations_replaced", outbox_replaced,
            "Observations replaced by a newer one before they were sent."),
    COUNTER("observations_sent", counts.sent,
            "Observations handed to the transport."),
    COUNTER("blends_refused", counts.blends_refused,
            "Rows that the user's aggregation refused."),
    COUNTER("aggregate_late", counts.aggregate_late,
            "Chunks that the user's aggregation was too late for."),
    COUNTER("aggregate_failed", counts.aggregate_failed,
            "Chunks for which the user's aggregation failed."),
    COUNTER("inbox_full", inbox_full, "Answers and orders that found no room."),
    COUNTER("driver_failed", driver_failed, "Failures of the robot's driver."),
    COUNTER("resets_failed", resets_failed,
            "Resets that could not be sent to the server."),
    COUNTER("metrics_failed", metrics_failed,
            "Reports on the metrics topic that could not be sent."),
#define NET_COUNTER(field, name, help) COUNTER(name, net.field, help),
    TD_NET_COUNTS(NET_COUNTER)
#undef NET_COUNTER
#undef COUNTER
};

static void write_counters(td_prom *prom, const td_edge_report *report)
{
    for (size_t i = 0; i < TD_COUNT_OF(counters); i++) {
        uint64_t value;
        memcpy(&value, (const char *)report + counters[i].offset, sizeof value);
        td_prom_counter(prom, counters[i].name, counters[i].help, NULL, value);
    }
}

static void write_failsafes(td_prom *prom, const td_edge_counts *counts)
{
    for (int i = 0; i < TD_EDGE_FAILSAFE_REASON_COUNT; i++) {
        if (i == TD_EDGE_FAILSAFE_FOR_NONE) continue;
        const char *why =
            td_edge_failsafe_reason_name((td_edge_failsafe_reason)i);
        td_prom_counter(prom, "tendon_edge_failsafe_ticks_total",
                        "Ticks in which the fail-safe acted, by why.",
                        (td_prom_label[]){{"why", why}, {0}},
                        counts->failsafes[i]);
    }
}

static void write_limits(td_prom *prom, const td_edge_counts *counts)
{
    for (int i = 0; i < TD_EDGE_GATE_LIMIT_COUNT; i++) {
        const char *limit = td_edge_gate_limit_name((td_edge_gate_limit)i);
        td_prom_counter(prom, "tendon_edge_limited_ticks_total",
                        "Ticks in which the gate changed a command, by limit.",
                        (td_prom_label[]){{"limit", limit}, {0}},
                        counts->limited[i]);
    }
}

static void write_skips(td_prom *prom, const td_edge_counts *counts)
{
    for (int i = 0; i < TD_EDGE_SKIP_COUNT; i++) {
        const char *why = td_edge_skip_name((td_edge_skip)i);
        td_prom_counter(prom, "tendon_edge_observations_skipped_total",
                        "Observations asked for and not sent, by why.",
                        (td_prom_label[]){{"why", why}, {0}},
                        counts->skipped[i]);
    }
}

static void write_cameras(td_prom *prom, const td_edge_report *report)
{
    static const struct {
        const char *name, *help;
        size_t offset; // of the uint64_t in td_edge_camera_report
    } rows[] = {
        {"tendon_edge_camera_frames_total", "Frames that came.",
         offsetof(td_edge_camera_report, taken)},
        {"tendon_edge_camera_failed_total", "Frames that did not come.",
         offsetof(td_edge_camera_report, failed)},
        {"tendon_edge_camera_stale_total",
         "Observations not sent for want of a new frame of this camera.",
         offsetof(td_edge_camera_report, stale)},
    };
    for (size_t i = 0; i < TD_COUNT_OF(rows); i++)
        for (uint32_t j = 0; j < report->camera_count; j++) {
            const td_edge_camera_report *camera = &report->cameras[j];
            uint64_t value;
            memcpy(&value, (const char *)camera + rows[i].offset, sizeof value);
            td_prom_counter(prom, rows[i].name, rows[i].help,
                            (td_prom_label[]){{"camera", camera->name}, {0}},
                            value);
        }
}

// PENDING is no end: an observation leaves it again.
static void write_outcomes(td_prom *prom, const td_edge_counts *counts)
{
    td_prom_gauge(prom, "tendon_edge_observations_pending",
                  "Observations on their way.", NULL,
                  (double)counts->outcomes[TD_EDGE_PENDING]);
    for (int i = 0; i < TD_EDGE_OUTCOME_COUNT; i++) {
        if (i == TD_EDGE_PENDING) continue;
        const char *outcome = td_edge_outcome_name((td_edge_outcome)i);
        td_prom_counter(prom, "tendon_edge_observations_ended_total",
                        "Observations sent, by what came of them.",
                        (td_prom_label[]){{"outcome", outcome}, {0}},
                        counts->outcomes[i]);
    }
}

static void write_strays(td_prom *prom, const td_edge_counts *counts)
{
    for (int i = 0; i < TD_EDGE_STRAY_COUNT; i++) {
        const char *why = td_edge_stray_name((td_edge_stray)i);
        td_prom_counter(prom, "tendon_edge_answers_dropped_total",
                        "Answers to nothing on its way, by why they were "
                        "dropped.",
                        (td_prom_label[]){{"why", why}, {0}},
                        counts->strays[i]);
    }
}

static void write_states(td_prom *prom, const td_edge_report *report)
{
    for (int i = 0; i < TD_EDGE_STATE_COUNT; i++) {
        const char *state = td_edge_state_name((td_edge_state)i);
        td_prom_gauge(prom, "tendon_edge_state",
                      "1 for the state of the session, 0 for the others.",
                      (td_prom_label[]){{"state", state}, {0}},
                      (int)report->state == i);
    }
    for (int i = 0; i < TD_EDGE_STATE_COUNT; i++) {
        const char *state = td_edge_state_name((td_edge_state)i);
        td_prom_counter(prom, "tendon_edge_state_entered_total",
                        "How often each state was entered.",
                        (td_prom_label[]){{"state", state}, {0}},
                        report->entered[i]);
    }
}

static void write_replies(td_prom *prom, const td_edge_report *report)
{
    for (int i = 0; i < TD_EDGE_REPLY_COUNT; i++) {
        const char *why = td_edge_reply_name((td_edge_reply)i);
        td_prom_counter(prom, "tendon_edge_status_unused_total",
                        "Replies to questions for a server that were of no "
                        "use, by why; nobody: there was none.",
                        (td_prom_label[]){{"why", why}, {0}},
                        report->replies[i]);
    }
}

static void write_missing(td_prom *prom, const td_edge_report *report)
{
    for (uint32_t i = 0; i < report->camera_count; i++)
        td_prom_counter(
            prom, "tendon_edge_record_missing_total",
            "Pictures that are missing in recorded frames.",
            (td_prom_label[]){{"camera", report->cameras[i].name}, {0}},
            report->record.missing[i]);
}

static void write_record(td_prom *prom, const td_edge_report *report)
{
    const td_edge_record_status *record = &report->record;
    for (int i = 0; i < TD_EDGE_RECORD_STATE_COUNT; i++) {
        const char *state = td_edge_record_state_name((td_edge_record_state)i);
        td_prom_gauge(prom, "tendon_edge_record_state",
                      "1 for the state of the recording, 0 for the others.",
                      (td_prom_label[]){{"state", state}, {0}},
                      (int)record->state == i);
    }
    if (record->state == TD_EDGE_RECORD_OFF) return;
    td_prom_counter(prom, "tendon_edge_record_episodes_total",
                    "Episodes saved.", NULL, record->episodes);
    td_prom_counter(prom, "tendon_edge_record_lost_total",
                    "Recorded frames whose row was lost.", NULL, record->lost);
    td_prom_counter(prom, "tendon_edge_record_between_total",
                    "Steps played while an episode was saved or begun.", NULL,
                    record->between);
    write_missing(prom, report);
    td_prom_gauge(prom, "tendon_edge_record_frames",
                  "Frames of the episode under way.", NULL,
                  (double)record->frames);
    td_prom_gauge(prom, "tendon_edge_record_room_seconds",
                  "How long the disk lasts; -1: not known yet.", NULL,
                  record->room_s);
}

static void write_times(td_prom *prom, const td_edge_times *times)
{
    td_prom_histogram(prom, "tendon_edge_lateness_seconds",
                      "Wake-up of the tick after its due time.", NULL,
                      times->lateness_ns);
    td_prom_histogram(prom, "tendon_edge_age_seconds",
                      "Of what is played, since its capture.", NULL,
                      times->age_ns);
    td_prom_histogram(prom, "tendon_edge_control_seconds",
                      "The user's own controller.", NULL, times->control_ns);
    td_prom_histogram(prom, "tendon_edge_transport_seconds",
                      "From an observation's put to its answer's callback.",
                      NULL, times->transport_ns);
    td_prom_histogram(prom, "tendon_edge_installed_seconds",
                      "From an observation's capture to its chunk's "
                      "installation.",
                      NULL, times->installed_ns);
    td_prom_histogram(prom, "tendon_edge_skew_seconds",
                      "Between a frame and the state that it was sent with.",
                      NULL, times->skew_ns);
}

void td_edge_prometheus_write(td_prom *prom, const char *client,
                              const td_edge_report *report,
                              const td_edge_times *times)
{
    td_prom_gauge(
        prom, "tendon_edge_info", "Which robot this is, and its server.",
        (td_prom_label[]){{"client", client}, {"server", report->server}, {0}},
        1);
    write_states(prom, report);
    write_replies(prom, report);
    write_counters(prom, report);
    write_failsafes(prom, &report->counts);
    write_limits(prom, &report->counts);
    write_skips(prom, &report->counts);
    write_cameras(prom, report);
    write_outcomes(prom, &report->counts);
    write_strays(prom, &report->counts);
    td_prom_gauge(prom, "tendon_edge_buffer_rows", "Actions left to play.",
                  NULL, report->counts.left);
    write_record(prom, report);
    write_times(prom, times);
}
