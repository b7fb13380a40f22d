// SPDX-License-Identifier: Apache-2.0
// What the loop puts: why an observation has no answer.
//
// Whoever ends a request without an answer holds the device's lock, or is a
// callback of the transport, and may not put. So the request goes into a list,
// with its status and the reason in its own record, and the loop is woken; it
// takes the whole list in one hold, then encodes and puts without a lock, and
// gives each request back. A client stays until its requests have ended, and
// the loop, which alone closes clients, sends what is listed before it does.
//
// Seqs that will never be answered are named in whatever goes to a client next,
// so a notice carries them as an answer does.
//
// The encoder is the loop's own; the list is guarded by the device's lock.
#include "server/client/notify.h"

#include "server/client/topics.h"
#include "server/core/answer.h"

#include <stdio.h>
#include <stdlib.h>

struct td_server_notify {
    const td_server_context *ctx;
    td_server_pool *pool;
    td_wire_encoder *encoder;    // the loop's
    td_server_request_list list; // guarded by the device's lock
};

td_err td_server_notify_new(const td_server_context *ctx, td_server_pool *pool,
                            td_server_notify **ret_notify)
{
    td_server_notify *notify = calloc(1, sizeof *notify);
    if (!notify) return TD_ERR_NOMEM;
    notify->ctx = ctx;
    notify->pool = pool;
    td_err err = td_wire_encoder_new(&notify->encoder);
    if (err != TD_OK) {
        free(notify);
        return err;
    }
    *ret_notify = notify;
    return TD_OK;
}

void td_server_notify_free(td_server_notify *notify)
{
    td_wire_encoder_free(notify->encoder);
    free(notify);
}

void td_server_notify_add_locked(td_server_notify *notify,
                                 td_server_request *request, td_err status,
                                 const char *why)
{
    td_server_pool_release_locked(notify->pool, request);
    request->item = (td_engine_item){
        .obs = &request->obs, .status = status, .info = &request->why};
    if (why)
        (void)snprintf(request->why.text, sizeof request->why.text, "%s", why);
    td_server_request_append(&notify->list, request);
    td_event_signal(notify->ctx->wake);
}

bool td_server_notify_has_any_locked(const td_server_notify *notify)
{
    return notify->list.first != NULL;
}

void td_server_notify_put(td_server_notify *notify, td_server_client *client,
                          td_wire_action *action)
{
    pthread_mutex_lock(notify->ctx->lock);
    if (client->presence == TD_SERVER_ATTACHED)
        td_server_core_add_superseded(client, action);
    pthread_mutex_unlock(notify->ctx->lock);
    td_server_topics_put(client, notify->encoder, action);
}

static void send_one(td_server_notify *notify, const td_server_request *request)
{
    const td_server_context *ctx = notify->ctx;
    const td_server_timing timing = {0};
    td_wire_action action;
    td_server_answer(ctx->id, &request->item, ctx->spec->action_count, &timing,
                     0, &action);
    td_server_notify_put(notify, request->client, &action);
}

void td_server_notify_send(td_server_notify *notify)
{
    pthread_mutex_lock(notify->ctx->lock);
    td_server_request *request = notify->list.first;
    notify->list.first = NULL;
    pthread_mutex_unlock(notify->ctx->lock);
    while (request) {
        td_server_request *next = request->next;
        send_one(notify, request);
        td_server_pool_return(notify->pool, request);
        request = next;
    }
}
