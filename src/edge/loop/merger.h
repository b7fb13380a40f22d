// SPDX-License-Identifier: Apache-2.0
#ifndef TD_EDGE_LOOP_MERGER_H
#define TD_EDGE_LOOP_MERGER_H

// Receives answers: a thread of its own decodes them and has the core join
// them with what the robot is playing.

#include "base/hist.h"
#include "edge/report/trace.h"
#include "edge/session/link.h"

typedef struct td_edge_merger_config {
    td_net *net;
    const td_wire_route *route; // this and all else is borrowed
    const char *client;
    td_edge_link *link;
    td_edge_trace *trace; // NULL: none
} td_edge_merger_config;

typedef struct td_edge_merger td_edge_merger;

// Subscribes to the robot's answers; the thread starts later. Owned by the
// caller. NOMEM, and as td_net_subscribe() and td_thread_start().
TD_NODISCARD td_err td_edge_merger_new(const td_edge_merger_config *config,
                                       td_edge_merger **ret_merger,
                                       td_errinfo *info);
TD_NODISCARD td_err td_edge_merger_start(td_edge_merger *merger,
                                         td_errinfo *info);

// Tells the thread to end. Never blocks.
void td_edge_merger_stop(td_edge_merger *merger);

// Leaves the network. Not inside a callback; blocks for running ones.
void td_edge_merger_leave(td_edge_merger *merger);

// Waits for the thread until `until_ns` at most: the user's aggregation may
// never return. False: it has not. Blocks.
TD_NODISCARD bool td_edge_merger_end(td_edge_merger *merger, int64_t until_ns);

// After the thread has ended.
void td_edge_merger_free(td_edge_merger *merger);
TD_AUTO_FREE(td_edge_merger, td_edge_merger_free)

typedef struct td_edge_merger_stats {
    uint64_t full;               // answers that found no room or memory
    const td_hist *transport_ns; // put -> callback; borrowed, as the next
    const td_hist *installed_ns; // capture -> installed
} td_edge_merger_stats;

// Any thread.
td_edge_merger_stats td_edge_merger_stats_get(const td_edge_merger *merger);

#endif
