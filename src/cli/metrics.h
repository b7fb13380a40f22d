// SPDX-License-Identifier: Apache-2.0
#ifndef TD_CLI_METRICS_H
#define TD_CLI_METRICS_H

// What robots and servers publish on their metrics topics: the
// newest of each, for a table that a person looks at.

#include "net/net.h"
#include "tendon/wire.h"

#define TD_CLI_METRICS_MAX 64

typedef struct td_cli_metrics_row {
    char source[TD_WIRE_MAX_NAME + 1];
    char
        state[24]; // and " rec" of one that records, " rec!" that no longer can
    double uptime_s;
    double rate_hz; // ticks a second, since the message before
    uint64_t ticks, fresh, starved, sent, merged, lost;
    double buffer_rows;
    double transport_p50_ms, transport_p99_ms;
    double installed_p50_ms, installed_p99_ms;
} td_cli_metrics_row;

typedef struct td_cli_metrics td_cli_metrics;

// Subscribes to the metrics of every robot of the route. Owned by the caller.
TD_NODISCARD td_err td_cli_metrics_open(td_net *net, const td_wire_route *route,
                                        td_cli_metrics **ret_table,
                                        td_errinfo *info);
void td_cli_metrics_close(td_cli_metrics *table);

// Copies the rows, ordered by source. Any thread. Returns how many.
size_t td_cli_metrics_rows(td_cli_metrics *table,
                           td_cli_metrics_row ret_rows[TD_CLI_METRICS_MAX]);

#endif
