// SPDX-License-Identifier: Apache-2.0
// Who is here: clients attach and leave by queries on the status key, their
// liveliness tokens say who is alive, and their cadence who sends.
//
// A client that sends nothing for too long is gone: its place and what was kept
// for it are given up. While its token says that it lives its subscription
// stays, so that a robot that had nothing to ask finds everything as it was.
#include "base/log.h"
#include "server/shell.h"
#include "wire/text.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void reply_status(td_server *server, td_net_request *query,
                         td_err attach, const char *reason, bool is_attach)
{
    td_wire_status *status = malloc(sizeof *status);
    if (!status) return;
    pthread_mutex_lock(&server->device->lock);
    (void)td_server_run_health_locked(server);
    td_server_core_status(server->core, status);
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
static void forget(td_server *server, const td_wire_attach *attach)
{
    char id[TD_WIRE_MAX_NAME + 1] = {0};
    uint32_t number;
    td_server_dropped dropped;
    memcpy(id, attach->client.data, attach->client.size);
    pthread_mutex_lock(&server->device->lock);
    td_err err = td_server_core_detach(server->core, id, attach->boot, &number,
                                       &dropped);
    pthread_mutex_unlock(&server->device->lock);
    assert(err == TD_OK && dropped.count == 0); // it has sent nothing yet
    (void)err;
}

// The place in the list of one that sleeps, by its name; else of its end.
static td_server_peer **find_dormant(td_server *server, td_wire_text id)
{
    td_server_peer **at = &server->dormant;
    while (*at && !td_wire_text_is(id, (*at)->id))
        at = &(*at)->next;
    return at;
}

// Its numbers start, before anything is recorded for it. For want of memory it
// goes without.
static void show(td_server *server, uint32_t number, const char *id)
{
    if (td_server_stats_enter(server->stats, number, id,
                              td_clock_now_ns(&td_clock_monotonic)) != TD_OK)
        td_server_telemetry_dropped(server);
}

// Back into its place, under the number that the core has given it.
static void wake_up(td_server *server, td_server_peer **at, uint32_t number)
{
    td_server_peer *peer = *at;
    *at = peer->next;
    show(server, number, peer->id);
    pthread_mutex_lock(&server->device->lock);
    peer->number = number;
    peer->dormant = false;
    pthread_mutex_unlock(&server->device->lock);
    server->peers[number] = peer;
    td_log_text(TD_LOG_INFO, "server: %s is back", peer->id);
    td_server_telemetry_event(server, TD_SERVER_EVENT_ATTACHED, peer->id,
                              "sends again");
}

static td_err open_peer(td_server *server, uint32_t number,
                        const td_wire_attach *attach, td_errinfo *info)
{
    td_server_peer *peer = NULL;
    td_server_peer **at = find_dormant(server, attach->client);
    if (*at) {
        wake_up(server, at, number);
        return TD_OK;
    }
    char id[TD_WIRE_MAX_NAME + 1] = {0};
    memcpy(id, attach->client.data, attach->client.size);
    show(server, number, id);
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
static td_err take_client(td_server *server, uint32_t number,
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

static void count_refused(td_server *server)
{
    pthread_mutex_lock(&server->device->lock);
    td_server_core_refused(server->core);
    pthread_mutex_unlock(&server->device->lock);
}

// A start of the same client that is still alive keeps its place.
static td_err refuse_second(td_server *server, const td_wire_attach *attach,
                            td_errinfo *info)
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

static td_err attach_core(td_server *server, const td_wire_attach *attach,
                          uint32_t *ret_number, td_errinfo *info)
{
    td_server_dropped dropped;
    pthread_mutex_lock(&server->device->lock);
    (void)td_server_run_health_locked(server);
    td_err err = td_server_core_attach(server->core,
                                       td_clock_now_ns(&td_clock_monotonic),
                                       attach, ret_number, &dropped, info);
    td_server_request_drop_locked(server, &dropped);
    pthread_mutex_unlock(&server->device->lock);
    return err;
}

static td_err attach_client(td_server *server, const td_wire_attach *attach,
                            td_errinfo *info)
{
    uint32_t number;
    td_err err = refuse_second(server, attach, info);
    if (err == TD_OK) err = attach_core(server, attach, &number, info);
    if (err == TD_OK) err = take_client(server, number, attach, info);
    if (err == TD_OK) return TD_OK;
    td_log_text(TD_LOG_WARN, "server: refused to attach: %s", info->text);
    char id[TD_WIRE_MAX_NAME + 1];
    (void)snprintf(id, sizeof id, "%.*s", (int)attach->client.size,
                   attach->client.data);
    td_server_telemetry_event(server, TD_SERVER_EVENT_REFUSED, id, "%s",
                              info->text);
    return err;
}

static uint64_t boot_of(td_server_peer *peer)
{
    pthread_mutex_lock(&peer->server->device->lock);
    uint64_t boot = peer->boot;
    pthread_mutex_unlock(&peer->server->device->lock);
    return boot;
}

// Whoever is not here, or came again with a newer start, has nothing to leave.
static void leave_client(td_server *server, const td_wire_attach *attach)
{
    for (uint32_t i = 0; i < server->capacity; i++) {
        td_server_peer *peer = server->peers[i];
        if (peer && td_wire_text_is(attach->client, peer->id) &&
            boot_of(peer) == attach->boot)
            peer->leaving = true;
    }
}

// An id may be given twice by mistake; a start is only one.
static bool is_asked(const td_server *server, const td_wire_attach *attach)
{
    return td_wire_text_is(attach->server, server->id) &&
           (attach->server_boot == 0 || attach->server_boot == server->boot);
}

// A query without a payload asks for the status; one with a payload asks one
// server, by its id, to take a client or to let it go, and the others keep
// quiet.
static void take_query(td_server *server, td_net_request *query)
{
    td_slice payload = td_net_request_payload(query);
    td_errinfo info = {.text = ""};
    if (payload.size == 0) {
        reply_status(server, query, TD_OK, NULL, false);
        return;
    }
    td_wire_attach attach;
    td_err err = td_wire_attach_decode(server->reader.decoder, payload.data,
                                       payload.size, &attach, &info);
    if (err != TD_OK) {
        td_server_telemetry_count(server, TD_SERVER_COUNT_BAD_QUERIES);
        td_log_text(TD_LOG_WARN, "server: bad attach: %s", info.text);
    } else if (!is_asked(server, &attach)) {
        return;
    } else if (attach.leave) {
        leave_client(server, &attach);
    } else {
        err = attach_client(server, &attach, &info);
    }
    reply_status(server, query, err, info.text, true);
}

// Whether the start that the peer belongs to is said to be alive.
static bool is_alive(const td_server *server, td_server_peer *peer)
{
    return td_server_tokens_has(&server->tokens, peer->id, boot_of(peer));
}

static void say_left(const td_server_peer *peer)
{
    td_log_text(TD_LOG_INFO, "server: %s left", peer->id);
    td_server_telemetry_event(peer->server, TD_SERVER_EVENT_LEFT, peer->id,
                              "boot %llu", (unsigned long long)peer->boot);
}

// One that sleeps and died: the core has forgotten it already.
static void bury(td_server *server, const char *client)
{
    td_server_peer **at = find_dormant(server, td_wire_text_of(client));
    td_server_peer *peer = *at;
    if (!peer || is_alive(server, peer)) return;
    *at = peer->next;
    say_left(peer);
    td_server_peer_close(peer);
}

// A client's token came or went. The end of the client's present start is the
// end of the client.
static void take_sighting(td_server *server, const td_server_sighting *seen)
{
    const td_server_token *token = &seen->token;
    if (seen->alive) {
        if (td_server_tokens_add(&server->tokens, token) != TD_OK)
            td_server_telemetry_dropped(server);
        return;
    }
    td_server_tokens_remove(&server->tokens, token);
    bury(server, token->client);
    for (uint32_t i = 0; i < server->capacity; i++) {
        td_server_peer *peer = server->peers[i];
        if (peer && strcmp(peer->id, token->client) == 0 &&
            !is_alive(server, peer))
            peer->leaving = true;
    }
}

// Who is alive before who asks: a client's token comes before its attach.
void td_server_reception_events(td_server *server)
{
    td_server_sighting seen;
    while (td_queue_pop(server->sightings, &seen) == TD_OK)
        take_sighting(server, &seen);
    td_net_request *query;
    while (td_queue_pop(server->queries, &query) == TD_OK) {
        take_query(server, query);
        td_net_request_free(query);
    }
}

// Out of the core. False: its last request still runs, and the engine's thread
// wakes the loop when that is done.
static bool detach(td_server *server, td_server_peer *peer, bool sleeps)
{
    uint32_t number;
    td_server_dropped dropped = {0};
    pthread_mutex_lock(&server->device->lock);
    td_err err = td_server_core_detach(server->core, peer->id, peer->boot,
                                       &number, &dropped);
    bool out = err != TD_ERR_BUSY;
    if (!out) server->awaited = true;
    if (out && sleeps) peer->dormant = true;
    if (out && !sleeps) peer->gone = true; // its callbacks may still come
    td_server_request_drop_locked(server, &dropped);
    pthread_mutex_unlock(&server->device->lock);
    return out;
}

static void let_go(td_server *server, td_server_peer *peer)
{
    if (!detach(server, peer, false)) return;
    td_server_request_tell(server); // what is said of it is said before it goes
    td_server_stats_leave(server->stats, peer->number);
    say_left(peer);
    server->peers[peer->number] = NULL;
    td_server_peer_close(peer);
}

// Silent for too long. If it lives it may be without anything to ask.
static void put_to_sleep(td_server *server, uint32_t number)
{
    td_server_peer *peer = server->peers[number];
    int64_t gone_ns =
        td_server_device_cadence(server->device, server->engine).gone_ns;
    double gone_s = (double)gone_ns / TD_NS_PER_S;
    td_log_text(TD_LOG_INFO, "server: %s is gone: silent for %.0f s", peer->id,
                gone_s);
    td_server_telemetry_event(server, TD_SERVER_EVENT_GONE, peer->id,
                              "silent for %.0f s", gone_s);
    if (!is_alive(server, peer) || !detach(server, peer, true)) {
        peer->leaving = true;
        return;
    }
    td_server_stats_leave(server->stats, number);
    server->peers[number] = NULL;
    peer->next = server->dormant;
    server->dormant = peer;
}

// The core's events, one a call. False: none.
static bool take_event(td_server *server, int64_t now_ns,
                       td_sched_cadence_event *ret_event)
{
    pthread_mutex_lock(&server->device->lock);
    bool any = td_server_core_cadence(server->core, now_ns, ret_event);
    server->planned_ns = td_server_core_wake_ns(server->core);
    pthread_mutex_unlock(&server->device->lock);
    return any;
}

int64_t td_server_reception_silence(td_server *server, int64_t now_ns)
{
    td_sched_cadence_event event;
    while (take_event(server, now_ns, &event)) {
        if (event.kind == TD_SCHED_CADENCE_GONE)
            put_to_sleep(server, event.client);
        else if (server->engine->ops->warm)
            server->engine->ops->warm(server->engine);
    }
    return server->planned_ns;
}

static bool has_mail(td_server_peer *peer)
{
    pthread_mutex_lock(&peer->inbox.lock);
    const td_server_mail *mail = &peer->inbox.mail;
    bool any = mail->msg || mail->reset;
    pthread_mutex_unlock(&peer->inbox.lock);
    return any;
}

// It sends again: it has its place back, if there still is one.
static void revive(td_server *server, td_server_peer **at)
{
    td_server_peer *peer = *at;
    const td_wire_attach attach = {.client = td_wire_text_of(peer->id),
                                   .boot = boot_of(peer),
                                   .route = peer->route};
    uint32_t number;
    td_errinfo info = {.text = ""};
    td_err err = attach_core(server, &attach, &number, &info);
    if (err == TD_OK)
        wake_up(server, at, number);
    else
        td_server_arrive_refused(server, peer, err, info.text);
}

static void look_after_dormant(td_server *server)
{
    for (td_server_peer **at = &server->dormant; *at;) {
        td_server_peer *peer = *at;
        if (has_mail(peer)) revive(server, at);
        if (*at == peer) at = &peer->next;
    }
}

// Whether the client may stay, where td_server_use() has changed who may.
static bool may_stay(td_server *server, uint32_t number, bool changed)
{
    if (!changed) return true;
    pthread_mutex_lock(&server->device->lock);
    bool allowed = td_server_core_allows(server->core, number);
    pthread_mutex_unlock(&server->device->lock);
    return allowed;
}

static bool take_change(td_server *server)
{
    pthread_mutex_lock(&server->device->lock);
    bool changed = server->changed;
    server->changed = false;
    pthread_mutex_unlock(&server->device->lock);
    return changed;
}

void td_server_reception_look(td_server *server)
{
    bool changed = take_change(server);
    look_after_dormant(server);
    for (uint32_t i = 0; i < server->capacity; i++) {
        td_server_peer *peer = server->peers[i];
        if (!peer) continue;
        td_server_arrive_inbox(server, peer);
        if (!may_stay(server, i, changed)) peer->leaving = true;
        if (peer->leaving) let_go(server, peer);
    }
}

void td_server_reception_close(td_server *server)
{
    for (uint32_t i = 0; i < server->capacity; i++)
        if (server->peers[i]) let_go(server, server->peers[i]);
    while (server->dormant) {
        td_server_peer *peer = server->dormant;
        server->dormant = peer->next;
        td_server_peer_close(peer);
    }
}
