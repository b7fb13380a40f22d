// SPDX-License-Identifier: Apache-2.0
// What is recorded of the edge: its cameras and its task, given to a recorder.
#include "base/log.h"
#include "edge/shell.h"

#include <stdlib.h>
#include <string.h>

static bool next_picture(void *camera, td_edge_arrival *ret_taken)
{
    return td_edge_camera_next(camera, ret_taken);
}

static void give_picture_back(void *camera, td_edge_frame *frame)
{
    td_edge_camera_give_back(camera, frame);
}

// A dataset needs a task, and has no room for the longest, which is cut between
// two characters.
static void tell_task(void *user, char ret_task[TD_DATASET_MAX_TASK])
{
    td_edge *edge = user;
    pthread_mutex_lock(&edge->lock);
    const char *task =
        edge->task[0] ? edge->task : edge->config.route.application;
    size_t size = strnlen(task, TD_DATASET_MAX_TASK);
    if (size == TD_DATASET_MAX_TASK) size--;
    while (size > 0 && ((unsigned char)task[size] & 0xc0) == 0x80)
        size--;
    memcpy(ret_task, task, size);
    ret_task[size] = 0;
    pthread_mutex_unlock(&edge->lock);
}

static td_edge_episode_writer_config writer_config(td_edge *edge)
{
    const td_edge_config *config = &edge->config;
    const td_edge_profile *profile = &config->profile;
    td_edge_episode_writer_config writer = {
        .states = config->core.policy_states ? config->core.policy_states
                                             : config->core.channels,
        .channels = config->core.channels,
        .period_ns = config->core.period_ns,
        .camera_count = profile->camera_count,
        .sink = config->record,
        .clock = &td_clock_monotonic,
    };
    for (uint32_t i = 0; i < profile->camera_count; i++) {
        const td_wire_camera *camera = &profile->cameras[i];
        writer.camera_names[i] = camera->name;
        writer.camera_period_ns[i] = config->camera_period_ns[i];
        writer.camera_bytes[i] = (size_t)camera->height * camera->width * 3;
        writer.cameras[i] = (td_edge_picture_source){
            edge->cameras[i], next_picture, give_picture_back};
    }
    return writer;
}

static td_err nothing_recorded(td_errinfo *info)
{
    return td_fail(info, TD_ERR_UNSUPPORTED, "nothing is recorded");
}

td_err td_edge_episode(td_edge *edge, td_edge_episode_command order,
                       td_errinfo *info)
{
    return edge->recorder
               ? td_edge_recorder_execute(edge->recorder, order, info)
               : nothing_recorded(info);
}

// An order of another program.
typedef struct remote {
    td_edge *edge;
    td_net_request *request;
} remote;

static void end_remote(remote *from)
{
    td_net_request_free(from->request);
    free(from);
}

// Recorder's thread.
static void reply(void *user, td_err err, const td_errinfo *why)
{
    remote *from = user;
    const char *text = why->text[0] ? why->text : td_err_text(err);
    if (err == TD_OK) text = TD_EDGE_EPISODE_OK;
    const td_slice answer = {text, strlen(text)};
    if (td_net_reply(from->request, from->edge->orders_key, &answer, 1) !=
        TD_OK)
        td_log_text(TD_LOG_WARN, "recording: who gave an order is gone");
    end_remote(from);
}

static void drop_order(td_edge *edge, td_net_request *request)
{
    uint64_t count = atomic_fetch_add(&edge->inbox_full, 1) + 1;
    if (td_log_is_due(count))
        td_log_text(TD_LOG_WARN,
                    "recording: no room for an order (%llu messages so far)",
                    (unsigned long long)count);
    td_net_request_free(request);
}

// Transport's thread. Where there is no room the asker hears nothing.
static void on_order(void *user, td_net_request *request)
{
    td_edge *edge = user;
    td_slice word = td_net_request_payload(request);
    td_edge_episode_command order =
        td_edge_episode_command_find(word.data, word.size);
    remote *from = malloc(sizeof *from);
    if (!from) {
        drop_order(edge, request);
        return;
    }
    *from = (remote){edge, request};
    if (td_edge_recorder_submit(edge->recorder, order, reply, from) == TD_OK)
        return;
    drop_order(edge, request);
    free(from);
}

static td_err listen(td_edge *edge, td_errinfo *info)
{
    const td_edge_config *config = &edge->config;
    TD_TRY(td_wire_key(&config->route, config->client, "episode",
                       edge->orders_key, info));
    return td_net_serve(edge->net, edge->orders_key, on_order, edge,
                        &edge->orders, info);
}

td_err td_edge_episode_open(td_edge *edge, td_errinfo *info)
{
    if (!edge->config.record.close) return TD_OK;
    const td_edge_recorder_config config = {
        .writer = writer_config(edge),
        .substeps = edge->config.core.substeps,
        .begin = edge->config.record_begin,
        .task = tell_task,
        .user = edge,
    };
    edge->config.record.close = NULL; // it is the recorder's now
    TD_TRY(td_edge_recorder_open(&config, &edge->recorder, info));
    return listen(edge, info);
}

void td_edge_episode_close(td_edge *edge)
{
    if (edge->orders) (void)td_net_undeclare(edge->orders);
    if (edge->recorder) td_edge_recorder_close(edge->recorder);
    if (edge->config.record.close)
        edge->config.record.close(edge->config.record.user);
}
