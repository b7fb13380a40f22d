// SPDX-License-Identifier: Apache-2.0
#ifndef TD_SERVER_DISPATCH_HEALTH_H
#define TD_SERVER_DISPATCH_HEALTH_H

// Whether the engine is there, and what follows from it: the state that the
// server reports of itself, and that nobody waits for a model that is away.

#include "server/client/notify.h"

typedef struct td_server_health td_server_health;

// Owned by the caller. NOMEM.
TD_NODISCARD td_err td_server_health_new(const td_server_context *ctx,
                                         td_server_notify *notify,
                                         td_server_health **ret_health);
void td_server_health_free(td_server_health *health);

// The engine's health, which the core's state follows unless it drains or
// stops. With the device's lock held.
td_engine_health td_server_health_update_locked(td_server_health *health);

// CLOSED, with why, while the engine is not there or the server drains. Any
// thread.
TD_NODISCARD td_err td_server_health_check(const td_server_health *health,
                                           td_errinfo *info);

// Ends what waits, and what the engine keeps, if it is not there. With the
// device's lock held.
void td_server_health_give_up_locked(td_server_health *health);

// It drains: nothing more is taken. With the device's lock held.
void td_server_health_drain_locked(td_server_health *health);
// It ends. Loop's thread.
void td_server_health_stop(td_server_health *health);

// That it serves, if the engine is there already. Loop's thread.
void td_server_health_report_start(td_server_health *health);
// What the engine's health makes of the server, and of what waits. Loop's
// thread.
void td_server_health_look(td_server_health *health);

#endif
