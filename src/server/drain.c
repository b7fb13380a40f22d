// SPDX-License-Identifier: Apache-2.0
#include "server/shell.h"

#include <assert.h>

void td_server_model_drain(td_server_model *server)
{
    td_server_device *device = server->device;
    pthread_mutex_lock(&device->lock);
    atomic_store(&server->draining, true);
    td_server_core_set_state(server->core, TD_WIRE_DRAINING);
    td_server_model_settings how = server->how;
    how.batch.wait = TD_SCHED_WAIT_NONE;
    td_err err = td_server_dispatch_set(device->dispatch, server->model,
                                        server->spec, &how);
    assert(err == TD_OK); // as it was, but for the wait
    (void)err;
    if (device->keeper) td_event_signal(&device->keeper->wake);
    pthread_mutex_unlock(&device->lock);
    td_server_telemetry_event(server, TD_SERVER_EVENT_STATE, NULL, "draining");
}

bool td_server_model_drained(td_server_model *server)
{
    pthread_mutex_lock(&server->device->lock);
    bool drained = server->busy == 0 && !server->told.first &&
                   td_server_core_waiting(server->core) == 0;
    pthread_mutex_unlock(&server->device->lock);
    return drained;
}
