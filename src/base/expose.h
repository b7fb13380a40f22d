// SPDX-License-Identifier: Apache-2.0
#ifndef TD_BASE_EXPOSE_H
#define TD_BASE_EXPOSE_H

// Metrics over HTTP, for Prometheus to fetch: GET /metrics and nothing else.
//
// One ordinary thread, td-expose, serves everyone. A request is small and one
// a connection, connections are few (TD_EXPOSE_MAX_CLIENTS; more of them wait)
// and short-lived, so that a slow or hostile client delays other clients a
// little, and nobody else.

#include "base/prom.h"

#define TD_EXPOSE_MAX_CLIENTS 16

// Writes every metric. Called on td-expose; what it waits for, all clients wait
// for.
typedef void (*td_expose_render)(td_prom *prom, void *user);

typedef struct td_expose_config {
    const char *address; // IPv4 or IPv6, in numbers; NULL: 127.0.0.1
    uint16_t port;       // 0: any that is free
    int64_t patience_ns; // from a client's connecting to its last byte; 0: 10 s
    td_expose_render render;
    void *user;
} td_expose_config;

typedef struct td_expose td_expose;

// Serves from now on. Owned by the caller. INVALID (no such address), EXISTS
// (the port is taken), DENIED (not ours to take), IO, LIMIT, NOMEM, each with
// address:port and what to do.
TD_NODISCARD td_err td_expose_open(const td_expose_config *config,
                                   td_expose **ret_expose, td_errinfo *info);

// The port that it listens on. Any thread.
uint16_t td_expose_port(const td_expose *expose);

// Cuts off whoever is connected, ends the thread and frees. `render` is not
// called any more. Blocks while it is being called.
void td_expose_close(td_expose *expose);
TD_AUTO_FREE(td_expose, td_expose_close)

#endif
