// SPDX-License-Identifier: Apache-2.0
#ifndef TD_BASE_HTTP_HTTP_H
#define TD_BASE_HTTP_HTTP_H

// Numbers over HTTP: a few paths that can be read, with GET and HEAD, and
// nothing that changes anything.
//
// One ordinary thread, td-http, serves everyone. A request is small and one a
// connection, connections are few (TD_HTTP_MAX_CLIENTS; more of them wait) and
// short-lived, so that a slow or hostile client delays other clients a little,
// and nobody else.

#include "base/err.h"

#include <stdio.h>

#define TD_HTTP_MAX_CLIENTS 16
#define TD_HTTP_MAX_QUERY 512 // bytes after the '?'

// An answer in the making.
typedef struct td_http_reply {
    FILE *out;        // takes its text
    unsigned status;  // 200 unless set
    const char *type; // static; plain text unless set
} td_http_reply;

// Makes the answer. `query` is what stands after the '?', as it came; borrowed.
// Called on td-http; what it waits for, all clients wait for.
typedef void (*td_http_handler)(td_http_reply *reply, const char *query,
                                void *user);

typedef struct td_http_route {
    const char *path;
    td_http_handler handle;
} td_http_route;

typedef struct td_http_config {
    const char *what;    // it is for, as errors say: "metrics"
    const char *address; // IPv4 or IPv6, in numbers; NULL: 127.0.0.1
    uint16_t port;       // 0: any that is free
    int64_t patience_ns; // from a client's connecting to its last byte; 0: 10 s
    const td_http_route *routes; // borrowed while it is open
    size_t route_count;
    void *user;
} td_http_config;

typedef struct td_http td_http;

// Serves from now on. Owned by the caller. INVALID (no such address), EXISTS
// (the port is taken), DENIED (not ours to take), IO, LIMIT, NOMEM, each with
// address:port and what to do.
TD_NODISCARD td_err td_http_open(const td_http_config *config,
                                 td_http **ret_http, td_errinfo *info);

// The port that it listens on. Any thread.
uint16_t td_http_port(const td_http *http);

// Cuts off whoever is connected, ends the thread and frees. No handler is
// called any more. Blocks while one is.
void td_http_close(td_http *http);
TD_AUTO_FREE(td_http, td_http_close)

// A handler's answer when it can give none: `status`, and a line that says why.
// What was written before it stays before it.
void td_http_refuse(td_http_reply *reply, unsigned status, const char *why);

#endif
