// SPDX-License-Identifier: Apache-2.0
// What a server shows of itself: numbers and events, over HTTP and to functions
// of a program that runs the server.
//
// It opens before the models do, so that who watches sees them load. A model is
// shown as soon as it has numbers; until then its place is empty. Events are
// kept once and read by all who listen.
//
// `shown_lock` guards the list of models that numbers.c and stream.c read, and
// is held while they read one, so that no model goes away meanwhile. The admin
// page has a lock of its own.
//
// End: the stream first, which waits for a function that runs, then the page,
// then the events that both read.
#include "base/log.h"
#include "server/process/process.h"

#include <string.h>

static void describe(const td_config_manifest *manifest, td_server_about *about)
{
    for (size_t i = 0; i < manifest->model_count; i++) {
        const td_config_model *model = &manifest->models[i];
        about[i] = (td_server_about){
            .server = model->server_id,
            .model = model->model_id,
            .version = model->model_version,
            .application = model->application_tag,
            .device = model->device,
        };
    }
}

static td_err open_admin(td_server_process *process, td_errinfo *info)
{
    const td_config_admin *admin = &process->manifest->admin;
    if (admin->port == 0) return TD_OK;
    const td_server_admin_config config = {
        .address = admin->address,
        .port = (uint16_t)admin->port,
        .models = process->about,
        .model_count = process->manifest->model_count,
        .events = process->events,
    };
    td_err err = td_server_admin_open(&config, &process->admin, info);
    if (err == TD_ERR_EXISTS) return TD_ERR_BUSY; // it is no server of ours
    if (err != TD_OK) return err;
    bool colons = strchr(admin->address, ':');
    td_log_text(TD_LOG_INFO, "serve: numbers at http://%s%s%s:%u",
                colons ? "[" : "", admin->address, colons ? "]" : "",
                td_server_admin_port(process->admin));
    return TD_OK;
}

td_err td_server_process_expose(td_server_process *process, td_errinfo *info)
{
    const td_server_listeners *listeners = &process->extras->listeners;
    TD_TRY(td_server_events_new(&process->events));
    describe(process->manifest, process->about);
    TD_TRY(open_admin(process, info));
    if (!listeners->on_metric && !listeners->on_event &&
        !process->extras->listens_later)
        return TD_OK;
    return td_server_stream_open(process, listeners, &process->stream, info);
}

void td_server_process_show_model(td_server_process *process, size_t index,
                                  td_server_model *model)
{
    if (process->admin) td_server_admin_show(process->admin, index, model);
    pthread_mutex_lock(&process->shown_lock);
    process->shown[index] = model;
    pthread_mutex_unlock(&process->shown_lock);
}

void td_server_process_unexpose(td_server_process *process)
{
    if (process->stream) td_server_stream_close(process->stream);
    if (process->admin) td_server_admin_close(process->admin);
    if (process->events) td_server_events_free(process->events);
}
