// SPDX-License-Identifier: Apache-2.0
#ifndef TD_SERVER_INTAKE_INTAKE_H
#define TD_SERVER_INTAKE_INTAKE_H

// From the network to the device: what clients send is decoded, checked, and
// waits or is refused. intake.c says what runs on which thread.

#include "server/client/notify.h"
#include "server/client/pool.h"
#include "server/client/topics.h"
#include "server/dispatch/device.h"
#include "server/dispatch/health.h"

typedef struct td_server_intake td_server_intake;

// Borrows all of them. Owned by the caller. NOMEM.
TD_NODISCARD td_err td_server_intake_new(const td_server_context *ctx,
                                         td_server_device *device,
                                         td_server_pool *pool,
                                         td_server_notify *notify,
                                         const td_server_health *health,
                                         td_server_intake **ret_intake);
// All clients are closed.
void td_server_intake_free(td_server_intake *intake);

// Opens the client's topics: what it sends comes here. After an error close
// them, too (td_server_topics_close). Loop's thread; blocks in the network.
TD_NODISCARD td_err td_server_intake_open_client(td_server_intake *intake,
                                                 td_server_client *client,
                                                 td_errinfo *info);

// Takes what the callbacks left in the client's inbox. Loop's thread.
void td_server_intake_read_inbox(td_server_intake *intake,
                                 td_server_client *client);
// Refuses it: the client has no place any more. Loop's thread.
void td_server_intake_refuse_inbox(td_server_intake *intake,
                                   td_server_client *client, td_err code,
                                   const char *text);

// When the loop will look at the clients' silence: it is woken if that must be
// earlier. With the device's lock held.
void td_server_intake_set_silence_locked(td_server_intake *intake,
                                         int64_t silence_ns);

#endif
