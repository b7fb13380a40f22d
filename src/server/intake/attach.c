// SPDX-License-Identifier: Apache-2.0
// What is asked on the status key: how the server is, whether it takes a
// client, that it lets one go.
//
// The loop answers each query here, one after the other. Without a payload it
// asks for the status. With one it names a server, and the others keep quiet:
// that server takes the client or says why not, in the same status.
//
// A client that is new gets a record, a place in the core and its topics, in
// this order, so that what it sends finds everything; if the network refuses
// it, the place is given back. One that is here keeps its place and its topics,
// and the core begins anew for a newer start; one that is only silent has its
// place back. While a token of an older start of the same client is alive, a
// newer one is refused: the same robot runs twice.
//
// The device's lock is taken for the core alone, never while the network is
// asked.
#include "base/clock.h"
#include "base/log.h"
#include "server/intake/registry_internal.h"
#include "server/report/telemetry.h"
#include "wire/msgpack/text.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

static void read_status(td_server_registry *registry, td_wire_status *status)
{
    const td_server_context *ctx = registry->ctx;
    pthread_mutex_lock(ctx->lock);
    (void)td_server_health_update_locked(registry->parts.health);
    td_server_core_status(ctx->core, status);
    // The fuller of its places and its device's time.
    double busy = td_server_device_load_locked(registry->parts.device);
    if (busy > (double)status->load) status->load = (float)busy;
    pthread_mutex_unlock(ctx->lock);
}

static void reply_status(td_server_registry *registry, td_net_request *query,
                         td_err attach, const char *reason, bool is_attach)
{
    const td_server_context *ctx = registry->ctx;
    td_wire_status *status = malloc(sizeof *status);
    if (!status) return;
    read_status(registry, status);
    status->has_attach = is_attach;
    status->attached = attach == TD_OK;
    if (is_attach && attach != TD_OK)
        status->attach_reason = td_wire_text_of(reason);
    char key[TD_WIRE_MAX_KEY];
    td_errinfo info;
    td_err err = td_wire_status_encode(registry->encoder, status, &info);
    if (err == TD_OK)
        err = td_wire_key(&ctx->route, NULL, "status", key, &info);
    if (err == TD_OK) {
        size_t count;
        const td_slice *parts =
            td_wire_encoder_parts(registry->encoder, &count);
        err = td_net_reply(query, key, parts, count);
    }
    if (err != TD_OK)
        td_server_telemetry_count(ctx, TD_SERVER_COUNT_PUTS_FAILED);
    free(status);
}

// A client that the core took and the network did not.
static void forget(td_server_registry *registry, td_server_client *client)
{
    const td_server_context *ctx = registry->ctx;
    td_server_core_dropped dropped;
    td_server_stats_leave(ctx->stats, client->number);
    pthread_mutex_lock(ctx->lock);
    td_err err =
        td_server_core_detach(ctx->core, client, client->boot, &dropped);
    pthread_mutex_unlock(ctx->lock);
    assert(err == TD_OK && dropped.count == 0); // it has sent nothing yet
    (void)err;
}

static td_err open_endpoint(td_server_registry *registry,
                            const td_wire_attach *attach,
                            td_server_client *client, td_errinfo *info)
{
    const td_server_context *ctx = registry->ctx;
    td_err err =
        td_server_intake_open_client(registry->parts.intake, client, info);
    if (err != TD_OK) {
        forget(registry, client);
        return err;
    }
    td_log_text(TD_LOG_INFO, "server: %s attached (boot %llu)", client->id,
                (unsigned long long)attach->boot);
    td_server_telemetry_event(ctx, TD_SERVER_EVENT_ATTACHED, client->id,
                              "boot %llu", (unsigned long long)attach->boot);
    return TD_OK;
}

// One that was not here.
static td_err take_new(td_server_registry *registry,
                       const td_wire_attach *attach, td_errinfo *info)
{
    td_server_client *client = calloc(1, sizeof *client);
    if (!client) return TD_ERR_NOMEM;
    (void)snprintf(client->id, sizeof client->id, "%.*s",
                   (int)attach->client.size, attach->client.data);
    td_err err = td_server_registry_enter(registry, attach, client, info);
    if (err == TD_OK) err = open_endpoint(registry, attach, client, info);
    if (err != TD_OK) td_server_registry_free_client(client);
    return err;
}

// One that is here, if only silent, asks again or with a newer start.
static td_err take_client(td_server_registry *registry,
                          const td_wire_attach *attach, td_errinfo *info)
{
    td_server_client *client =
        td_server_core_find(registry->ctx->core, attach->client);
    td_server_client **silent = td_server_silent_find(registry, attach->client);
    if (client) {
        TD_TRY(td_server_registry_enter(registry, attach, client, info));
        client->leaving = false;
        return TD_OK;
    }
    if (!*silent) return take_new(registry, attach, info);
    TD_TRY(td_server_registry_enter(registry, attach, *silent, info));
    td_server_silent_came_back(registry, silent);
    return TD_OK;
}

// A start of the same client that is still alive keeps its place.
static td_err refuse_duplicate(td_server_registry *registry,
                               const td_wire_attach *attach, td_errinfo *info)
{
    const td_server_context *ctx = registry->ctx;
    for (size_t i = 0; i < registry->tokens.count; i++) {
        const td_server_token *token = &registry->tokens.list[i];
        if (token->boot >= attach->boot ||
            !td_wire_text_is(attach->client, token->client))
            continue;
        pthread_mutex_lock(ctx->lock);
        td_server_core_refused(ctx->core);
        pthread_mutex_unlock(ctx->lock);
        return td_fail(info, TD_ERR_DENIED,
                       "client %s is already running (boot %llu): stop it or "
                       "choose another client_uuid",
                       token->client, (unsigned long long)token->boot);
    }
    return TD_OK;
}

// Clients by their names; those that share a place share their lines.
static void log_refused(td_server_registry *registry, td_wire_text client,
                        const char *why)
{
    uint32_t place = 0;
    for (size_t i = 0; i < client.size; i++)
        place = place * 31 + (unsigned char)client.data[i];
    uint64_t count = ++registry->refusals[place % TD_SERVER_REGISTRY_REFUSALS];
    if (td_log_is_due(count))
        td_log_text(TD_LOG_WARN, "server: refused to attach: %s (%llu so far)",
                    why, (unsigned long long)count);
}

static td_err attach_client(td_server_registry *registry,
                            const td_wire_attach *attach, td_errinfo *info)
{
    td_err err = refuse_duplicate(registry, attach, info);
    if (err == TD_OK) err = take_client(registry, attach, info);
    if (err == TD_OK) return TD_OK;
    log_refused(registry, attach->client, info->text);
    char id[TD_WIRE_MAX_NAME + 1];
    (void)snprintf(id, sizeof id, "%.*s", (int)attach->client.size,
                   attach->client.data);
    td_server_telemetry_event(registry->ctx, TD_SERVER_EVENT_REFUSED, id, "%s",
                              info->text);
    return err;
}

// An id may be given twice by mistake; a start is only one.
static bool is_asked(const td_server_context *ctx, const td_wire_attach *attach)
{
    return td_wire_text_is(attach->server, ctx->id) &&
           (attach->server_boot == 0 || attach->server_boot == ctx->boot);
}

// A query without a payload asks for the status; one with a payload asks one
// server, by its id, to take a client or to let it go, and the others keep
// quiet.
void td_server_attach_answer(td_server_registry *registry,
                             td_net_request *query)
{
    const td_server_context *ctx = registry->ctx;
    td_slice payload = td_net_request_payload(query);
    td_errinfo info = {.text = ""};
    if (payload.size == 0) {
        reply_status(registry, query, TD_OK, NULL, false);
        return;
    }
    td_wire_attach attach;
    td_err err = td_wire_attach_decode(registry->decoder, payload.data,
                                       payload.size, &attach, &info);
    if (err != TD_OK) {
        td_server_telemetry_bad(ctx, TD_SERVER_COUNT_BAD_QUERIES, "bad attach",
                                info.text);
    } else if (!is_asked(ctx, &attach)) {
        return;
    } else if (attach.leave) {
        td_server_registry_leave(registry, attach.client, attach.boot);
    } else {
        err = attach_client(registry, &attach, &info);
    }
    reply_status(registry, query, err, info.text, true);
}
