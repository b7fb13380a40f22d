// SPDX-License-Identifier: Apache-2.0
#ifndef TD_SERVER_PROCESS_STREAM_H
#define TD_SERVER_PROCESS_STREAM_H

// Numbers and events for functions of the user's, on a thread of its own.
//
// What is recorded goes into a bounded queue; what finds no room there is
// counted, and whoever records it waits for nobody. The gauges, and what the
// servers' cores count, are looked up once a second.

#include "server/model.h"
#include "tendon/server.h"

struct td_server_process;

typedef struct td_server_listeners {
    td_server_metric_fn on_metric; // NULL: nobody
    void *metric_user;
    td_server_event_fn on_event; // NULL: nobody
    void *event_user;
} td_server_listeners;

typedef struct td_server_stream td_server_stream;

// Passes on what comes from now on. Borrows the process, whose events
// and entries are there. Owned by the caller. NOMEM and what a thread's start
// returns.
TD_NODISCARD td_err td_server_stream_open(struct td_server_process *process,
                                          const td_server_listeners *listeners,
                                          td_server_stream **ret_stream,
                                          td_errinfo *info);

// Others listen from now on. Blocks until a function that is being called has
// returned.
void td_server_stream_listen(td_server_stream *stream,
                             const td_server_listeners *listeners);

// Tells what is left and frees. Nothing may be recorded any more. Blocks until
// the functions have returned.
void td_server_stream_close(td_server_stream *stream);
TD_AUTO_FREE(td_server_stream, td_server_stream_close)

// For the server of this entry; borrowed while the stream is open.
td_server_tap td_server_stream_tap(td_server_stream *stream, size_t index);

#endif
