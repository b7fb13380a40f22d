// SPDX-License-Identifier: Apache-2.0
#ifndef TD_EDGE_REPORT_TELEMETRY_H
#define TD_EDGE_REPORT_TELEMETRY_H

// A robot's numbers by name, on its metrics topic (docs/wire.md).

#include "edge/report/report.h"

typedef struct td_edge_telemetry_config {
    td_net *net;
    const td_wire_route *route; // this and all else is borrowed
    const char *client;
    uint64_t boot;
    int64_t opened_ns;             // when the robot started
    int64_t period_ns;             // 0: nothing is sent
    const td_wire_camera *cameras; // [camera_count]
    uint32_t camera_count;
} td_edge_telemetry_config;

typedef struct td_edge_telemetry td_edge_telemetry;

// Declares the topic. Owned by the caller. NOMEM, and as td_net_publish().
TD_NODISCARD td_err
td_edge_telemetry_open(const td_edge_telemetry_config *config,
                       td_edge_telemetry **ret_telemetry, td_errinfo *info);

// Leaves the network; then frees.
void td_edge_telemetry_leave(td_edge_telemetry *telemetry);
void td_edge_telemetry_close(td_edge_telemetry *telemetry);
TD_AUTO_FREE(td_edge_telemetry, td_edge_telemetry_close)

// The numbers by name; the names are borrowed from the telemetry. Any thread.
void td_edge_telemetry_fill(const td_edge_telemetry *telemetry, int64_t now_ns,
                            const td_edge_report *report,
                            const td_edge_times *times,
                            td_wire_metrics *ret_metrics);

// Whether the next are to be sent; sends them. Session's thread.
bool td_edge_telemetry_is_due(const td_edge_telemetry *telemetry,
                              int64_t now_ns);
void td_edge_telemetry_put(td_edge_telemetry *telemetry, int64_t now_ns,
                           const td_edge_report *report,
                           const td_edge_times *times);

// Those that could not be sent. Any thread.
uint64_t td_edge_telemetry_failed(const td_edge_telemetry *telemetry);

#endif
