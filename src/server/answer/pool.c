// SPDX-License-Identifier: Apache-2.0
// Requests: a pool for each server, and the line of those that ended without an
// answer, of which the loop tells their robots.
#include "engine/results.h"
#include "server/core/answer.h"
#include "server/shell.h"

#include <stdio.h>
#include <stdlib.h>

void td_server_request_line_up(td_server_line *line, td_server_request *request)
{
    request->next = NULL;
    if (line->first)
        line->last->next = request;
    else
        line->first = request;
    line->last = request;
}

// The pool grows to what all clients need at once, and stays.
td_server_request *td_server_request_new(td_server_model *server)
{
    pthread_mutex_lock(&server->device->lock);
    td_server_request *request = server->free_requests;
    if (request) server->free_requests = request->next;
    pthread_mutex_unlock(&server->device->lock);
    size_t cells =
        (size_t)server->spec->chunk_rows * server->spec->action_count;
    if (!request) {
        request = malloc(sizeof *request + cells * sizeof(float));
        if (!request) return NULL;
        request->results = (td_engine_results){0};
        request->outline = (td_wire_outline){0};
    }
    request->msg = NULL;
    request->prefix = NULL;
    request->whole = false;
    return request;
}

void td_server_request_free(td_server_request *request)
{
    td_engine_results_done(&request->results);
    td_wire_outline_done(&request->outline);
    free(request);
}

void td_server_request_release_locked(td_server_model *server,
                                      td_server_request *request)
{
    if (!request->prefix) return;
    td_engine_prefix *ended =
        td_server_core_release(server->core, request->peer->number,
                               td_clock_now_ns(&td_clock_monotonic));
    if (ended) server->engine->ops->drop(server->engine, ended);
    request->prefix = NULL;
}

static void give_back_message(td_server_request *request)
{
    if (request->msg) td_net_msg_free(request->msg);
    request->msg = NULL;
    td_wire_outline_trim(&request->outline);
}

void td_server_request_recycle_locked(td_server_model *server,
                                      td_server_request *request)
{
    td_server_request_release_locked(server, request);
    give_back_message(request);
    request->next = server->free_requests;
    server->free_requests = request;
}

void td_server_request_recycle(td_server_model *server,
                               td_server_request *request)
{
    pthread_mutex_lock(&server->device->lock);
    td_server_request_recycle_locked(server, request);
    pthread_mutex_unlock(&server->device->lock);
}

void td_server_request_drop_locked(td_server_model *server,
                                   const td_server_core_dropped *dropped)
{
    for (uint32_t i = 0; i < dropped->count; i++)
        td_server_request_recycle_locked(server, dropped->requests[i].payload);
    if (dropped->prefix)
        server->engine->ops->drop(server->engine, dropped->prefix);
}

void td_server_request_keep_locked(td_server_model *server,
                                   td_server_request *request)
{
    td_server_core_dropped dropped;
    td_server_request_release_locked(server, request);
    give_back_message(request);
    td_server_core_keep(server->core, request->peer->number,
                        &request->obs.ident, request, &dropped);
    td_server_request_drop_locked(server, &dropped);
}

void td_server_request_told_locked(td_server_model *server,
                                   td_server_request *request, td_err status,
                                   const char *why)
{
    td_server_request_release_locked(server, request);
    request->item = (td_engine_item){
        .obs = &request->obs, .status = status, .info = &request->why};
    if (why)
        (void)snprintf(request->why.text, sizeof request->why.text, "%s", why);
    td_server_request_line_up(&server->told, request);
    td_event_signal(&server->wake);
}

void td_server_request_put(td_server_peer *peer, td_wire_encoder *encoder,
                           const td_wire_action *action)
{
    td_errinfo info;
    td_err err = td_wire_action_encode(encoder, action, &info);
    if (err == TD_OK) {
        size_t count;
        const td_slice *parts = td_wire_encoder_parts(encoder, &count);
        err = td_net_put(peer->action, parts, count, NULL, NULL);
    }
    if (err == TD_OK) return;
    td_server_telemetry_count(peer->server, TD_SERVER_COUNT_PUTS_FAILED);
    td_server_stats_count(peer->server->stats, TD_SERVER_COUNT_SEND_ERRORS,
                          peer->number, 1);
}

static void tell(td_server_model *server, const td_server_request *request)
{
    td_server_peer *peer = request->peer;
    const td_server_timing timing = {0};
    td_wire_action action;
    td_server_answer(server->id, &request->item, server->spec->action_count,
                     &timing, 0, &action);
    pthread_mutex_lock(&server->device->lock);
    if (!peer->gone && !peer->dormant)
        td_server_core_add_superseded(server->core, peer->number, &action);
    pthread_mutex_unlock(&server->device->lock);
    td_server_request_put(peer, server->encoder, &action);
}

void td_server_request_tell(td_server_model *server)
{
    pthread_mutex_lock(&server->device->lock);
    td_server_request *request = server->told.first;
    server->told.first = NULL;
    pthread_mutex_unlock(&server->device->lock);
    while (request) {
        td_server_request *next = request->next;
        tell(server, request);
        td_server_request_recycle(server, request);
        request = next;
    }
}
