// SPDX-License-Identifier: Apache-2.0
#ifndef TD_SERVER_INTAKE_REGISTRY_H
#define TD_SERVER_INTAKE_REGISTRY_H

// Who is here: clients attach and leave by queries on the status key, their
// liveliness tokens say who is alive, and their cadence who sends.
//
// Loop's thread only, where nothing else is said.

#include "server/client/notify.h"
#include "server/client/pool.h"
#include "server/dispatch/device.h"
#include "server/dispatch/health.h"
#include "server/intake/intake.h"

typedef struct td_server_registry td_server_registry;

// What it works with; all borrowed.
typedef struct td_server_registry_parts {
    const td_server_context *ctx;
    td_server_device *device;
    td_server_runs *runs;
    td_server_pool *pool;
    td_server_notify *notify;
    td_server_health *health;
    td_server_intake *intake;
} td_server_registry_parts;

// Declares the status key, the watch over tokens and the server's own token;
// queries and tokens are kept until the loop looks. Owned by the caller. Blocks
// in the network.
TD_NODISCARD td_err
td_server_registry_open(const td_server_registry_parts *parts,
                        td_server_registry **ret_registry, td_errinfo *info);

// Who came, asked or went.
void td_server_registry_look_events(td_server_registry *registry);
// What the clients left in their inboxes, and those that leave or may no longer
// stay.
void td_server_registry_look_clients(td_server_registry *registry);
// Who sends nothing any more, and who is about to. Returns when to look again.
int64_t td_server_registry_look_silence(td_server_registry *registry,
                                        int64_t now_ns);

// Who may stay has changed. With the device's lock held; any thread.
void td_server_registry_recheck_locked(td_server_registry *registry);

// Nobody new comes any more: undeclares everything, and answers who still asks.
void td_server_registry_shut(td_server_registry *registry);
// Lets all clients go, of which nothing runs any more.
void td_server_registry_let_all_go(td_server_registry *registry);
// After both, or if the model could not be opened.
void td_server_registry_free(td_server_registry *registry);

#endif
