// SPDX-License-Identifier: Apache-2.0
#ifndef TD_EDGE_REPORT_REPORT_H
#define TD_EDGE_REPORT_REPORT_H

// What happened on a robot so far, in numbers: edge.c gathers them from whoever
// counts, and telemetry and Prometheus give them names.

#include "base/hist.h"
#include "edge/core/core.h"
#include "edge/record/episode_writer.h"
#include "edge/session/finder.h"
#include "edge/session/state.h"
#include "net/net.h"

typedef struct td_edge_camera_report {
    char name[TD_WIRE_MAX_NAME + 1];
    uint64_t taken;  // frames
    uint64_t failed; // frames that did not come
    uint64_t stale;  // observations not sent for want of a new one
} td_edge_camera_report;

typedef struct td_edge_report {
    td_edge_state state;
    td_edge_counts counts;
    uint64_t outbox_replaced; // observations replaced before they were sent
    uint64_t metrics_failed;  // telemetry that could not be sent
    uint64_t inbox_full;      // answers and commands without room
    uint64_t missed_ticks;    // periods that went by while the tick was late
    uint64_t driver_failed;
    uint64_t resets_failed;                // messages that could not be sent
    uint64_t entered[TD_EDGE_STATE_COUNT]; // each state, how often
    uint64_t replies[TD_EDGE_REPLY_COUNT]; // of servers that were asked
    td_net_counts net;
    char server[TD_WIRE_MAX_NAME + 1]; // empty: none
    td_edge_camera_report cameras[TD_WIRE_MAX_IMAGES];
    uint32_t camera_count;
    td_edge_record_status record;
} td_edge_report;

// Borrowed while the edge is open; safe to read while it runs.
typedef struct td_edge_times {
    const td_hist *lateness_ns;  // tick: wake-up after its due time
    const td_hist *age_ns;       // of what is played, since its capture
    const td_hist *transport_ns; // put -> callback
    const td_hist *installed_ns; // capture -> installed
    const td_hist *control_ns;   // the user's own controller
    const td_hist *skew_ns;      // between a frame and its state
} td_edge_times;

#endif
