// SPDX-License-Identifier: Apache-2.0
#ifndef TD_SERVER_REPORT_VIEW_H
#define TD_SERVER_REPORT_VIEW_H

// What a server shows of itself at one moment, and the two ways it is written.

#include "base/http/prom.h"
#include "base/json/json.h"
#include "server/report/stats.h"

// Which model this is. All texts are borrowed.
typedef struct td_server_about {
    const char *server, *model, *version, *application, *device;
} td_server_about;

typedef struct td_server_view {
    td_server_about about;
    td_wire_server_state state;
    td_server_counts counts; // as of one moment: outcomes add up to received
    double gauges[TD_SERVER_GAUGE_COUNT];
    td_server_numbers numbers;
    td_server_client_numbers *clients; // [client_count], owned
    uint32_t client_count;
    td_server_departed departed[TD_SERVER_STATS_DEPARTED];
    uint32_t departed_count;
} td_server_view;

// Reads what the stats hold into a view, the spreads over the last `window_ns`
// (0: left out); of the clients only `client` (NULL: all, "": none). NOMEM.
TD_NODISCARD td_err td_server_view_read(td_server_view *view,
                                        td_server_stats *stats, int64_t now_ns,
                                        int64_t window_ns, const char *client);
void td_server_view_done(td_server_view *view);

// Every metric of the table, those of one name for all the servers together.
void td_server_view_prometheus(const td_server_view *views, size_t count,
                               td_prom *prom);

// One object.
void td_server_view_json(const td_server_view *view, int64_t now_ns,
                         td_json *json);

#endif
