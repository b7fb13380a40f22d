// SPDX-License-Identifier: Apache-2.0
#ifndef TD_SERVER_REPORT_TELEMETRY_H
#define TD_SERVER_REPORT_TELEMETRY_H

// What a model reports of itself: counts and events from all its parts, a view
// for whoever looks, and messages on its metrics key.

#include "server/context.h"
#include "server/report/view.h"

// Counts one. Any thread; never blocks.
void td_server_telemetry_count(const td_server_context *ctx,
                               td_server_counter_id counter);
// The same of what could not be read, with a line now and then. Any thread.
void td_server_telemetry_bad(const td_server_context *ctx,
                             td_server_counter_id counter, const char *what,
                             const char *why);
// There was no room for something that came. Any thread.
void td_server_telemetry_dropped(const td_server_context *ctx);
// printf style. Any thread; the loop delivers it to whoever listens.
void td_server_telemetry_event(const td_server_context *ctx,
                               td_server_event_kind kind, const char *client,
                               const char *fmt, ...) TD_PRINTF(4, 5);

// As td_server_model_view().
TD_NODISCARD td_err td_server_telemetry_view(const td_server_context *ctx,
                                             int64_t now_ns, int64_t window_ns,
                                             const char *client,
                                             td_server_view *view);

typedef struct td_server_telemetry td_server_telemetry;

// Declares the metrics key, unless `period_ns` is 0. Owned by the caller.
// Loop's thread from then on; blocks in the network.
TD_NODISCARD td_err
td_server_telemetry_open(const td_server_context *ctx, int64_t period_ns,
                         td_server_telemetry **ret_telemetry, td_errinfo *info);
void td_server_telemetry_close(td_server_telemetry *telemetry);

// Puts the metrics if they are due. Returns when they are next; INT64_MAX:
// never.
int64_t td_server_telemetry_look(td_server_telemetry *telemetry,
                                 int64_t now_ns);

#endif
