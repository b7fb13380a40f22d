// SPDX-License-Identifier: Apache-2.0
// A client's end of the network: one topic for answers, two that it sends on.
//
// Opened when it attaches and closed when it leaves, both by the loop, which
// may block in the network. The answers' publisher is declared first, so that
// nothing can arrive that could not be answered. Closing goes the other way:
// when both subscriptions are gone no callback runs any more, so what is left
// in the inbox can be counted and the record freed.
//
// Putting is for whoever sees to it that the client stays: the engine's thread
// while a request of it runs, the loop always. Each has an encoder of its own,
// so no lock is needed here.
#include "server/client/topics.h"

#include "server/report/telemetry.h"

#include <stdlib.h>

static const td_net_qos action_qos = {
    .priority = TD_NET_INTERACTIVE_HIGH,
    .reliable = true,
    .express = true,
};

static td_err declare(td_server_client *client,
                      const td_server_topics_calls *calls, td_errinfo *info)
{
    td_server_topics *topics = client->topics;
    const td_server_context *ctx = topics->ctx;
    char key[TD_WIRE_MAX_KEY];
    TD_TRY(td_wire_key(&ctx->route, client->id, "action", key, info));
    TD_TRY(td_net_publish(ctx->net, key, &action_qos, &topics->action, info));
    TD_TRY(td_wire_key(&ctx->route, client->id, "reset", key, info));
    TD_TRY(td_net_subscribe(ctx->net, key, calls->on_reset, client,
                            &topics->reset, info));
    TD_TRY(td_wire_key(&ctx->route, client->id, "obs", key, info));
    return td_net_subscribe(ctx->net, key, calls->on_obs, client, &topics->obs,
                            info);
}

// What came after the loop's last look goes with the client.
static void count_unread(const td_server_topics *topics)
{
    const td_server_context *ctx = topics->ctx;
    uint64_t unread = td_server_inbox_count(&topics->inbox);
    pthread_mutex_lock(ctx->lock);
    for (; unread > 0; unread--)
        td_server_core_stray(ctx->core, TD_SERVER_DEPARTED);
    pthread_mutex_unlock(ctx->lock);
    if (topics->inbox.mail.reset)
        td_server_telemetry_count(ctx, TD_SERVER_COUNT_RESETS_UNREAD);
}

void td_server_topics_close(td_server_client *client)
{
    td_server_topics *topics = client->topics;
    if (!topics) return;
    if (topics->obs) (void)td_net_undeclare(topics->obs);
    if (topics->reset) (void)td_net_undeclare(topics->reset);
    count_unread(topics);
    if (topics->action) td_net_unpublish(topics->action);
    td_server_inbox_done(&topics->inbox);
    free(topics);
    client->topics = NULL;
}

td_err td_server_topics_open(const td_server_context *ctx,
                             td_server_client *client,
                             const td_server_topics_calls *calls,
                             td_errinfo *info)
{
    td_server_topics *topics = calloc(1, sizeof *topics);
    if (!topics) return TD_ERR_NOMEM;
    topics->ctx = ctx;
    topics->intake = calls->intake;
    td_server_inbox_init(&topics->inbox, client->every);
    client->topics = topics;
    return declare(client, calls, info);
}

void td_server_topics_put(const td_server_client *client,
                          td_wire_encoder *encoder,
                          const td_wire_action *action)
{
    const td_server_context *ctx = client->topics->ctx;
    td_errinfo info;
    td_err err = td_wire_action_encode(encoder, action, &info);
    if (err == TD_OK) {
        size_t count;
        const td_slice *parts = td_wire_encoder_parts(encoder, &count);
        err = td_net_put(client->topics->action, parts, count, NULL, NULL);
    }
    if (err == TD_OK) return;
    td_server_telemetry_count(ctx, TD_SERVER_COUNT_PUTS_FAILED);
    td_server_stats_count(ctx->stats, TD_SERVER_COUNT_SEND_ERRORS,
                          client->number, 1);
}
