// SPDX-License-Identifier: Apache-2.0
#ifndef TD_HOST_STREAM_H
#define TD_HOST_STREAM_H

// Numbers and events for functions of the user's, on a thread of its own.
//
// What is recorded goes into a bounded queue; what finds no room there is
// counted, and whoever records it waits for nobody. The gauges, and what the
// servers' cores count, are looked up once a second.

#include "server/server.h"
#include "tendon/serve.h"

struct td_host_house;

typedef struct td_host_listeners {
    td_host_metric_fn on_metric; // NULL: nobody
    void *metric_user;
    td_host_event_fn on_event; // NULL: nobody
    void *event_user;
} td_host_listeners;

typedef struct td_host_stream td_host_stream;

// Starts to tell of what comes from now on. Borrows the house, whose events and
// entries are there. Owned by the caller. NOMEM and what a thread's start
// returns.
TD_NODISCARD td_err td_host_stream_open(struct td_host_house *house,
                                        const td_host_listeners *listeners,
                                        td_host_stream **ret_stream,
                                        td_errinfo *info);

// Tells what is left and frees. Nothing may be recorded any more. Blocks until
// the functions have returned.
void td_host_stream_close(td_host_stream *stream);
TD_AUTO_FREE(td_host_stream, td_host_stream_close)

// For the server of this entry; borrowed while the stream is open.
td_server_tap td_host_stream_tap(td_host_stream *stream, size_t index);

#endif
