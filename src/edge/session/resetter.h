// SPDX-License-Identifier: Apache-2.0
#ifndef TD_EDGE_SESSION_RESETTER_H
#define TD_EDGE_SESSION_RESETTER_H

// Begins the next episode of a robot, and tells the server. The message only
// makes it sooner: a server also learns of it from the next observation.

#include "edge/session/link.h"

typedef struct td_edge_resetter_config {
    td_net *net;
    const td_wire_route *route; // this and all else is borrowed
    const char *client;
    uint64_t boot;
    uint64_t generation; // of the robot's route
    const td_edge_core *core;
    td_edge_link *link;
} td_edge_resetter_config;

typedef struct td_edge_resetter td_edge_resetter;

// Declares the publisher of reset messages. Owned by the caller. NOMEM, and as
// td_net_publish().
TD_NODISCARD td_err td_edge_resetter_open(const td_edge_resetter_config *config,
                                          td_edge_resetter **ret_resetter,
                                          td_errinfo *info);

// Leaves the network; then frees. Nobody may be inside.
void td_edge_resetter_leave(td_edge_resetter *resetter);
void td_edge_resetter_close(td_edge_resetter *resetter);
TD_AUTO_FREE(td_edge_resetter, td_edge_resetter_close)

// As td_edge_reset() in edge.h.
TD_NODISCARD td_err td_edge_resetter_begin(td_edge_resetter *resetter,
                                           const char *reason,
                                           td_errinfo *info);

// Messages that could not be sent. Any thread.
uint64_t td_edge_resetter_failed(const td_edge_resetter *resetter);

#endif
