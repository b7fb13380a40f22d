// SPDX-License-Identifier: Apache-2.0
#ifndef TD_SERVER_CLIENT_NOTIFY_H
#define TD_SERVER_CLIENT_NOTIFY_H

// What the loop says to the robots: why an observation has no answer, and kept
// chunks once more. The engine's thread puts all other answers (run.c).
//
// A request that ended without an answer waits in a list until the loop
// notifies its robot, since neither a transport's callback nor whoever holds
// the device's lock may put.

#include "server/client/pool.h"

typedef struct td_server_notify td_server_notify;

// Owned by the caller. NOMEM.
TD_NODISCARD td_err td_server_notify_new(const td_server_context *ctx,
                                         td_server_pool *pool,
                                         td_server_notify **ret_notify);
// Nothing is to be notified any more.
void td_server_notify_free(td_server_notify *notify);

// The request has ended without an answer: its robot will be notified. `why`
// NULL: as the engine said. With the device's lock held.
void td_server_notify_add_locked(td_server_notify *notify,
                                 td_server_request *request, td_err status,
                                 const char *why);
// Whether any is to be notified. With the device's lock held.
bool td_server_notify_has_any_locked(const td_server_notify *notify);

// Notifies all of them. Loop's thread; blocks in the network.
void td_server_notify_send(td_server_notify *notify);

// Puts one answer, with the client's superseded seqs. Loop's thread; blocks in
// the network.
void td_server_notify_put(td_server_notify *notify, td_server_client *client,
                          td_wire_action *action);

#endif
