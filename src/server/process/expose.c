// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"
#include "server/process/process.h"

#include <string.h>

static void describe(const td_config_manifest *manifest, td_server_about *about)
{
    for (size_t i = 0; i < manifest->model_count; i++) {
        const td_config_model *server = &manifest->models[i];
        about[i] = (td_server_about){
            .server = server->server_id,
            .model = server->model_id,
            .version = server->model_version,
            .application = server->application_tag,
            .device = server->device,
        };
    }
}

static td_err open_admin(td_server_process *house, td_errinfo *info)
{
    const td_config_admin *admin = &house->manifest->admin;
    if (admin->port == 0) return TD_OK;
    const td_server_admin_config config = {
        .address = admin->address,
        .port = (uint16_t)admin->port,
        .models = house->about,
        .model_count = house->manifest->model_count,
        .events = house->events,
    };
    td_err err = td_server_admin_open(&config, &house->admin, info);
    if (err == TD_ERR_EXISTS) return TD_ERR_BUSY; // it is no server of ours
    if (err != TD_OK) return err;
    bool colons = strchr(admin->address, ':');
    td_log_text(TD_LOG_INFO, "serve: numbers at http://%s%s%s:%u",
                colons ? "[" : "", admin->address, colons ? "]" : "",
                td_server_admin_port(house->admin));
    return TD_OK;
}

td_err td_server_process_expose(td_server_process *house, td_errinfo *info)
{
    const td_server_listeners *listeners = &house->extras->listeners;
    TD_TRY(td_server_events_new(&house->events));
    describe(house->manifest, house->about);
    TD_TRY(open_admin(house, info));
    if (!listeners->on_metric && !listeners->on_event) return TD_OK;
    return td_server_stream_open(house, listeners, &house->stream, info);
}

void td_server_process_show_model(td_server_process *house, size_t index,
                                  td_server_model *server)
{
    if (house->admin) td_server_admin_show(house->admin, index, server);
    pthread_mutex_lock(&house->shown_lock);
    house->shown[index] = server;
    pthread_mutex_unlock(&house->shown_lock);
}

void td_server_process_unexpose(td_server_process *house)
{
    if (house->stream) td_server_stream_close(house->stream);
    if (house->admin) td_server_admin_close(house->admin);
    if (house->events) td_server_events_free(house->events);
}
