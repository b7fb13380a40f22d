// SPDX-License-Identifier: Apache-2.0
// What is asked on the status key: how the server is, whether it takes a
// client, that it lets one go.
#include "base/log.h"
#include "server/shell.h"
#include "wire/msgpack/text.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The fuller of its places and its device's time.
static float load_locked(const td_server_model *server, float places)
{
    double busy = td_server_dispatch_busy(server->device->dispatch,
                                          td_clock_now_ns(&td_clock_monotonic));
    return busy > (double)places ? (float)busy : places;
}

static void reply_status(td_server_model *server, td_net_request *query,
                         td_err attach, const char *reason, bool is_attach)
{
    td_wire_status *status = malloc(sizeof *status);
    if (!status) return;
    pthread_mutex_lock(&server->device->lock);
    (void)td_server_health_locked(server);
    td_server_core_status(server->core, status);
    status->load = load_locked(server, status->load);
    pthread_mutex_unlock(&server->device->lock);
    status->has_attach = is_attach;
    status->attached = attach == TD_OK;
    if (is_attach && attach != TD_OK)
        status->attach_reason = td_wire_text_of(reason);
    char key[TD_WIRE_MAX_KEY];
    td_errinfo info;
    td_err err = td_wire_status_encode(server->encoder, status, &info);
    if (err == TD_OK)
        err = td_wire_key(&server->route, NULL, "status", key, &info);
    if (err == TD_OK) {
        size_t count;
        const td_slice *parts = td_wire_encoder_parts(server->encoder, &count);
        err = td_net_reply(query, key, parts, count);
    }
    if (err != TD_OK)
        td_server_telemetry_count(server, TD_SERVER_COUNT_PUTS_FAILED);
    free(status);
}

// A client that the core took and the network did not.
static void forget(td_server_model *server, const td_wire_attach *attach)
{
    char id[TD_WIRE_MAX_NAME + 1] = {0};
    uint32_t number;
    td_server_core_dropped dropped;
    memcpy(id, attach->client.data, attach->client.size);
    pthread_mutex_lock(&server->device->lock);
    td_err err = td_server_core_detach(server->core, id, attach->boot, &number,
                                       &dropped);
    pthread_mutex_unlock(&server->device->lock);
    assert(err == TD_OK && dropped.count == 0); // it has sent nothing yet
    (void)err;
}

static td_err open_peer(td_server_model *server, uint32_t number,
                        const td_wire_attach *attach, td_errinfo *info)
{
    td_server_peer *peer = NULL;
    if (td_server_reception_wake(server, attach->client, number)) return TD_OK;
    char id[TD_WIRE_MAX_NAME + 1] = {0};
    memcpy(id, attach->client.data, attach->client.size);
    td_server_reception_show(server, number, id);
    td_err err = td_server_peer_open(server, number, attach, &peer, info);
    if (err != TD_OK) {
        td_server_stats_leave(server->stats, number);
        forget(server, attach);
        return err;
    }
    server->peers[number] = peer;
    td_log_text(TD_LOG_INFO, "server: %s attached (boot %llu)", peer->id,
                (unsigned long long)attach->boot);
    td_server_telemetry_event(server, TD_SERVER_EVENT_ATTACHED, peer->id,
                              "boot %llu", (unsigned long long)attach->boot);
    return TD_OK;
}

// Makes the client's declarations if it is new, or remembers its newer start.
static td_err take_client(td_server_model *server, uint32_t number,
                          const td_wire_attach *attach, td_errinfo *info)
{
    if (!server->peers[number]) TD_TRY(open_peer(server, number, attach, info));
    td_server_peer *peer = server->peers[number];
    pthread_mutex_lock(&server->device->lock);
    if (attach->boot > peer->boot) peer->boot = attach->boot;
    peer->route = attach->route;
    pthread_mutex_unlock(&server->device->lock);
    peer->leaving = false;
    return TD_OK;
}

static void count_refused(td_server_model *server)
{
    pthread_mutex_lock(&server->device->lock);
    td_server_core_refused(server->core);
    pthread_mutex_unlock(&server->device->lock);
}

// A start of the same client that is still alive keeps its place.
static td_err refuse_second(td_server_model *server,
                            const td_wire_attach *attach, td_errinfo *info)
{
    for (size_t i = 0; i < server->tokens.count; i++) {
        const td_server_token *token = &server->tokens.list[i];
        if (token->boot >= attach->boot ||
            !td_wire_text_is(attach->client, token->client))
            continue;
        count_refused(server);
        return td_fail(info, TD_ERR_DENIED,
                       "client %s is already running (boot %llu): stop it or "
                       "choose another client_uuid",
                       token->client, (unsigned long long)token->boot);
    }
    return TD_OK;
}

td_err td_server_query_attach(td_server_model *server,
                              const td_wire_attach *attach,
                              uint32_t *ret_number, td_errinfo *info)
{
    td_server_core_dropped dropped;
    pthread_mutex_lock(&server->device->lock);
    (void)td_server_health_locked(server);
    td_err err = td_server_core_attach(server->core,
                                       td_clock_now_ns(&td_clock_monotonic),
                                       attach, ret_number, &dropped, info);
    td_server_request_drop_locked(server, &dropped);
    pthread_mutex_unlock(&server->device->lock);
    return err;
}

// Clients by their names; those that share a place share their lines.
static void say_refused(td_server_model *server, td_wire_text client,
                        const char *why)
{
    uint32_t place = 0;
    for (size_t i = 0; i < client.size; i++)
        place = place * 31 + (unsigned char)client.data[i];
    uint64_t count = ++server->refusals[place % TD_SERVER_REFUSALS];
    if (td_log_is_due(count))
        td_log_text(TD_LOG_WARN, "server: refused to attach: %s (%llu so far)",
                    why, (unsigned long long)count);
}

static td_err attach_client(td_server_model *server,
                            const td_wire_attach *attach, td_errinfo *info)
{
    uint32_t number;
    td_err err = refuse_second(server, attach, info);
    if (err == TD_OK)
        err = td_server_query_attach(server, attach, &number, info);
    if (err == TD_OK) err = take_client(server, number, attach, info);
    if (err == TD_OK) return TD_OK;
    say_refused(server, attach->client, info->text);
    char id[TD_WIRE_MAX_NAME + 1];
    (void)snprintf(id, sizeof id, "%.*s", (int)attach->client.size,
                   attach->client.data);
    td_server_telemetry_event(server, TD_SERVER_EVENT_REFUSED, id, "%s",
                              info->text);
    return err;
}

// An id may be given twice by mistake; a start is only one.
static bool is_asked(const td_server_model *server,
                     const td_wire_attach *attach)
{
    return td_wire_text_is(attach->server, server->id) &&
           (attach->server_boot == 0 || attach->server_boot == server->boot);
}

// A query without a payload asks for the status; one with a payload asks one
// server, by its id, to take a client or to let it go, and the others keep
// quiet.
void td_server_query_take(td_server_model *server, td_net_request *query)
{
    td_slice payload = td_net_request_payload(query);
    td_errinfo info = {.text = ""};
    if (payload.size == 0) {
        reply_status(server, query, TD_OK, NULL, false);
        return;
    }
    td_wire_attach attach;
    td_err err = td_wire_attach_decode(server->decoder, payload.data,
                                       payload.size, &attach, &info);
    if (err != TD_OK) {
        td_server_telemetry_bad(server, TD_SERVER_COUNT_BAD_QUERIES,
                                "bad attach", info.text);
    } else if (!is_asked(server, &attach)) {
        return;
    } else if (attach.leave) {
        td_server_reception_leave(server, attach.client, attach.boot);
    } else {
        err = attach_client(server, &attach, &info);
    }
    reply_status(server, query, err, info.text, true);
}
