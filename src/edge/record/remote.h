// SPDX-License-Identifier: Apache-2.0
#ifndef TD_EDGE_RECORD_REMOTE_H
#define TD_EDGE_RECORD_REMOTE_H

// Lets another program begin and end a recorder's episodes, by a query on the
// robot's key `episode` (docs/wire.md): `tendon robot --episode` is one.

#include "edge/record/recorder.h"
#include "net/net.h"

typedef struct td_edge_remote td_edge_remote;

// Answers queries until it is closed. Borrows the recorder, which closes after
// it. Owned by the caller. NOMEM, and as td_net_serve().
TD_NODISCARD td_err td_edge_remote_open(td_net *net, const td_wire_route *route,
                                        const char *client,
                                        td_edge_recorder *recorder,
                                        td_edge_remote **ret_remote,
                                        td_errinfo *info);

// Takes no more queries. Not inside a callback; blocks for running ones.
void td_edge_remote_leave(td_edge_remote *remote);

// After the recorder has closed, which replies to what it was asked.
void td_edge_remote_close(td_edge_remote *remote);
TD_AUTO_FREE(td_edge_remote, td_edge_remote_close)

// Queries that found no room. Any thread.
uint64_t td_edge_remote_full(const td_edge_remote *remote);

#endif
