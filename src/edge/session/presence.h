// SPDX-License-Identifier: Apache-2.0
#ifndef TD_EDGE_SESSION_PRESENCE_H
#define TD_EDGE_SESSION_PRESENCE_H

// Who is there: shows one client as alive, and watches the tokens of the
// servers of its model.

#include "base/sync/event.h"
#include "edge/session/finder.h"

typedef struct td_edge_presence td_edge_presence;

// Declares and watches, under the same names as a finder. `wake` is signalled
// when either of the two below may have changed; borrowed. Owned by the caller.
TD_NODISCARD td_err td_edge_presence_open(const td_edge_finder_config *config,
                                          td_event *wake,
                                          td_edge_presence **ret_presence,
                                          td_errinfo *info);

// Not inside a callback; blocks for running ones.
void td_edge_presence_close(td_edge_presence *presence);

// From now on this server counts, and is there. Never blocks.
void td_edge_presence_follow(td_edge_presence *presence,
                             const td_edge_server *server);

// Whether its token has gone. Any thread; never blocks.
bool td_edge_presence_is_lost(const td_edge_presence *presence);

// Whether the token of any server has come since the last call. Never blocks.
bool td_edge_presence_has_appeared(td_edge_presence *presence);

#endif
