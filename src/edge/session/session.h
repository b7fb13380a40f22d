// SPDX-License-Identifier: Apache-2.0
#ifndef TD_EDGE_SESSION_SESSION_H
#define TD_EDGE_SESSION_SESSION_H

// A robot's session with its servers: finds one that fits, has it take the
// robot, watches over it, and looks for another when it is gone.

#include "edge/session/check.h"
#include "edge/session/link.h"
#include "edge/session/state.h"

typedef struct td_edge_session_config {
    td_net *net;
    const td_wire_route *route; // this and all else is borrowed
    const char *client;
    uint64_t boot;
    uint64_t generation; // of the robot's route
    td_edge_profile *profile;
    int64_t refused_for_ns; // by a server, before a start is given up
    int64_t watchdog_ns;    // without a chunk, before the server is asked again
    td_edge_link *link;
    // Called several times a second while the session runs, on its thread, and
    // once more when it ends (`last`).
    void (*report)(void *user, bool last);
    void *user;
} td_edge_session_config;

typedef struct td_edge_session td_edge_session;

// Shows the robot as alive and watches for servers. Owned by the caller. NOMEM,
// and as td_net_token() and td_net_watch().
TD_NODISCARD td_err td_edge_session_new(const td_edge_session_config *config,
                                        td_edge_session **ret_session,
                                        td_errinfo *info);

// As td_edge_run() and td_edge_stop().
TD_NODISCARD td_err td_edge_session_run(td_edge_session *session,
                                        td_errinfo *info);
void td_edge_session_stop(td_edge_session *session);

// Leaves the network; then frees. Not inside a callback; not while it runs.
// Block for running callbacks.
void td_edge_session_leave(td_edge_session *session);
void td_edge_session_free(td_edge_session *session);
TD_AUTO_FREE(td_edge_session, td_edge_session_free)

typedef struct td_edge_session_stats {
    td_edge_state state;
    uint64_t entered[TD_EDGE_STATE_COUNT]; // each state, how often
    uint64_t replies[TD_EDGE_REPLY_COUNT]; // of servers that were asked
} td_edge_session_stats;

// Any thread.
td_edge_session_stats td_edge_session_stats_get(const td_edge_session *session);

#endif
