// SPDX-License-Identifier: Apache-2.0
#ifndef TD_SERVER_REPORT_ADMIN_H
#define TD_SERVER_REPORT_ADMIN_H

// What the servers of a process show over HTTP. It can be read and nothing
// else: nothing here moves a robot or changes a server (docs/metrics.md).
//
//   /metrics    for Prometheus
//   /healthz    200 while every server's loop turns, else 503
//   /readyz     200 while every model is ready, else 503, and which is what
//   /v1/stats   all numbers as JSON: window=SECONDS, model=ID, client=ID
//   /v1/events  what happened, a line of JSON each: after=NUMBER, limit=COUNT

#include "server/model.h"
#include "server/report/events.h"
#include "server/report/view.h"

typedef struct td_server_admin_config {
    const char *address;           // in numbers; NULL: 127.0.0.1
    uint16_t port;                 // 0: any that is free
    const td_server_about *models; // borrowed while it is open
    size_t model_count;
    td_server_events *events; // borrowed while it is open
    int64_t stall_ns;    // a loop that stands still for so long is ill; 0: 5 s
    int64_t patience_ns; // with a client, see base/http/http.h; 0: 10 s
} td_server_admin_config;

typedef struct td_server_admin td_server_admin;

// Serves from now on; each model is `warming` until it is shown. Owned by the
// caller. As td_http_open().
TD_NODISCARD td_err td_server_admin_open(const td_server_admin_config *config,
                                         td_server_admin **ret_admin,
                                         td_errinfo *info);
void td_server_admin_close(td_server_admin *admin);
TD_AUTO_FREE(td_server_admin, td_server_admin_close)

// The port that it listens on. Any thread.
uint16_t td_server_admin_port(const td_server_admin *admin);

// Shows the server of the model with this index, which is borrowed until NULL
// is shown in its place: then the model is `draining`. Any thread; blocks while
// it is read.
void td_server_admin_show(td_server_admin *admin, size_t model,
                          td_server_model *server);

#endif
