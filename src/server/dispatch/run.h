// SPDX-License-Identifier: Apache-2.0
#ifndef TD_SERVER_DISPATCH_RUN_H
#define TD_SERVER_DISPATCH_RUN_H

// From the device to the answer: batches are formed, run and answered.

#include "server/client/notify.h"
#include "server/client/pool.h"
#include "server/dispatch/device.h"
#include "server/dispatch/health.h"

typedef struct td_server_run td_server_run;

// Forms the batches that may start, to be started without the lock. NULL: none.
// With the device's lock held.
td_server_run *td_server_run_form_locked(td_server_device *device);
// What waited for whichever model of the device is dropped for another that
// came, and its client notified. With the device's lock held.
void td_server_run_overflowed_locked(td_server_device *device,
                                     td_server_request *request);
// Hands them to their engines. Any thread; never blocks.
void td_server_run_start(td_server_run *runs);
// Starts what time has made due. Loop's thread.
void td_server_run_look(td_server_device *device);

// The runs of one model: as many as its engine may have at a time.

// Borrows all of them; the context's core is set before anything runs. Owned by
// the caller. NOMEM.
TD_NODISCARD td_err td_server_run_new(td_server_context *ctx,
                                      td_server_device *device,
                                      td_server_pool *pool,
                                      td_server_notify *notify,
                                      td_server_health *health,
                                      td_server_runs **ret_runs);
// None runs any more, and the model is removed from the device.
void td_server_run_free(td_server_runs *runs);

// Whether any request of the model runs. With the device's lock held.
bool td_server_run_is_busy_locked(const td_server_runs *runs);
// Wakes the loop when the next batch of the model has ended. With the device's
// lock held.
void td_server_run_await_locked(td_server_runs *runs);

#endif
