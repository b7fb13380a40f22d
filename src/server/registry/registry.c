// SPDX-License-Identifier: Apache-2.0
// Who is here: clients attach and leave by queries (query.c), their liveliness
// tokens say who is alive, and their cadence who sends.
//
// A client that sends nothing for too long is gone: its place and what was kept
// for it are given up. While its token says that it lives its subscription
// stays, so that a robot that had nothing to ask finds everything as it was.
#include "base/log.h"
#include "server/shell.h"
#include "wire/msgpack/text.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WATCH_NS TD_NS_PER_S // between declarations

// The place in the list of one that sleeps, by its name; else of its end.
static td_server_peer **find_dormant(td_server_model *server, td_wire_text id)
{
    td_server_peer **at = &server->dormant;
    while (*at && !td_wire_text_is(id, (*at)->id))
        at = &(*at)->next;
    return at;
}

// Its numbers start, before anything is recorded for it. For want of memory it
// goes without.
void td_server_reception_show(td_server_model *server, uint32_t number,
                              const char *id)
{
    if (td_server_stats_enter(server->stats, number, id,
                              td_clock_now_ns(&td_clock_monotonic)) != TD_OK)
        td_server_telemetry_dropped(server);
}

// Back into its place, under the number that the core has given it.
static void wake_up(td_server_model *server, td_server_peer **at,
                    uint32_t number)
{
    td_server_peer *peer = *at;
    *at = peer->next;
    td_server_reception_show(server, number, peer->id);
    pthread_mutex_lock(&server->device->lock);
    peer->number = number;
    peer->dormant = false;
    pthread_mutex_unlock(&server->device->lock);
    server->peers[number] = peer;
    td_log_text(TD_LOG_INFO, "server: %s is back", peer->id);
    td_server_telemetry_event(server, TD_SERVER_EVENT_ATTACHED, peer->id,
                              "sends again");
}

bool td_server_reception_wake(td_server_model *server, td_wire_text id,
                              uint32_t number)
{
    td_server_peer **at = find_dormant(server, id);
    if (!*at) return false;
    wake_up(server, at, number);
    return true;
}

static uint64_t boot_of(td_server_peer *peer)
{
    pthread_mutex_lock(&peer->server->device->lock);
    uint64_t boot = peer->boot;
    pthread_mutex_unlock(&peer->server->device->lock);
    return boot;
}

// Whether the start that the peer belongs to is said to be alive.
static bool is_alive(const td_server_model *server, td_server_peer *peer)
{
    return td_server_tokens_has(&server->tokens, peer->id, boot_of(peer));
}

static void say_left(const td_server_peer *peer)
{
    td_log_text(TD_LOG_INFO, "server: %s left", peer->id);
    td_server_telemetry_event(peer->server, TD_SERVER_EVENT_LEFT, peer->id,
                              "boot %llu", (unsigned long long)peer->boot);
}

// One that sleeps: the core has forgotten it already.
static void bury(td_server_peer **at)
{
    td_server_peer *peer = *at;
    *at = peer->next;
    say_left(peer);
    td_server_peer_close(peer);
}

// Whoever is not here, or came again with a newer start, has nothing to leave.
void td_server_reception_leave(td_server_model *server, td_wire_text id,
                               uint64_t boot)
{
    td_server_peer **at = find_dormant(server, id);
    if (*at && boot_of(*at) == boot) bury(at);
    for (uint32_t i = 0; i < server->capacity; i++) {
        td_server_peer *peer = server->peers[i];
        if (peer && td_wire_text_is(id, peer->id) && boot_of(peer) == boot)
            peer->leaving = true;
    }
}

// A client's token came or went. The end of the client's present start is the
// end of the client.
static void take_sighting(td_server_model *server,
                          const td_server_sighting *seen)
{
    const td_server_token *token = &seen->token;
    if (seen->alive) {
        if (td_server_tokens_add(&server->tokens, token) != TD_OK)
            td_server_telemetry_dropped(server);
        return;
    }
    td_server_tokens_remove(&server->tokens, token);
    td_server_peer **at = find_dormant(server, td_wire_text_of(token->client));
    if (*at && !is_alive(server, *at)) bury(at);
    for (uint32_t i = 0; i < server->capacity; i++) {
        td_server_peer *peer = server->peers[i];
        if (peer && strcmp(peer->id, token->client) == 0 &&
            !is_alive(server, peer))
            peer->leaving = true;
    }
}

// Transport's thread.
static void on_alive(void *user, const char *key, bool alive)
{
    td_server_model *server = user;
    td_server_sighting sighting = {.alive = alive};
    if (td_server_token_parse(key, &sighting.token) != TD_OK) {
        td_server_telemetry_bad(server, TD_SERVER_COUNT_BAD_TOKENS, "bad token",
                                key);
        return;
    }
    if (td_queue_push(server->sightings, &sighting) != TD_OK) {
        td_server_telemetry_dropped(server);
        atomic_store(&server->blind, true);
    }
    td_event_signal(&server->wake);
}

td_err td_server_reception_watch(td_server_model *server, td_errinfo *info)
{
    char key[TD_WIRE_MAX_KEY];
    char tokens[TD_WIRE_MAX_KEY + 2];
    TD_TRY(td_wire_key(&server->route, "*", "alive", key, info));
    (void)snprintf(tokens, sizeof tokens, "%s/*", key);
    return td_net_watch(server->net, tokens, on_alive, server, &server->watch,
                        info);
}

// Whoever is alive is told of once more. Who went unseen is not: of those who
// are attached their silence will tell, of those who sleep a recount.
static void watch_anew(td_server_model *server)
{
    td_server_sighting seen;
    td_errinfo info = {.text = ""};
    if (server->watch) (void)td_net_undeclare(TD_TAKE(server->watch));
    while (td_queue_pop(server->sightings, &seen) == TD_OK)
        continue;
    server->tokens.count = 0;
    server->recounts = true;
    if (td_server_reception_watch(server, &info) == TD_OK) return;
    atomic_store(&server->blind, true);
    td_log_text(TD_LOG_ERROR, "server: cannot watch the clients: %s",
                info.text);
}

static void recount(td_server_model *server)
{
    for (td_server_peer **at = &server->dormant; *at;) {
        td_server_peer *peer = *at;
        if (!is_alive(server, peer)) bury(at);
        if (*at == peer) at = &peer->next;
    }
    server->recounts = false;
}

// Where there was no room for what was seen. It takes a while until all were
// told of, and there may be more of them than there is room for.
static void keep_watching(td_server_model *server)
{
    int64_t now_ns = td_clock_now_ns(&td_clock_monotonic);
    if (now_ns - server->watched_ns < WATCH_NS) return;
    if (atomic_exchange(&server->blind, false)) {
        server->watched_ns = now_ns;
        watch_anew(server);
    } else if (server->recounts) {
        recount(server);
    }
}

// Who is alive before who asks: a client's token comes before its attach.
void td_server_reception_events(td_server_model *server)
{
    td_server_sighting seen;
    keep_watching(server);
    while (td_queue_pop(server->sightings, &seen) == TD_OK)
        take_sighting(server, &seen);
    td_net_request *query;
    while (td_queue_pop(server->queries, &query) == TD_OK) {
        td_server_query_take(server, query);
        td_net_request_free(query);
    }
}

// Out of the core. False: its last request still runs, and the engine's thread
// wakes the loop when that is done.
static bool detach(td_server_model *server, td_server_peer *peer, bool sleeps)
{
    uint32_t number;
    td_server_core_dropped dropped = {0};
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

static void let_go(td_server_model *server, td_server_peer *peer)
{
    if (!detach(server, peer, false)) return;
    td_server_request_tell(server); // what is said of it is said before it goes
    td_server_stats_leave(server->stats, peer->number);
    say_left(peer);
    server->peers[peer->number] = NULL;
    td_server_peer_close(peer);
}

// Silent for too long. If it lives it may be without anything to ask.
static void put_to_sleep(td_server_model *server, uint32_t number)
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
static bool take_event(td_server_model *server, int64_t now_ns,
                       td_sched_cadence_event *ret_event)
{
    pthread_mutex_lock(&server->device->lock);
    bool any = td_server_core_cadence(server->core, now_ns, ret_event);
    server->planned_ns = td_server_core_wake_ns(server->core);
    pthread_mutex_unlock(&server->device->lock);
    return any;
}

int64_t td_server_reception_silence(td_server_model *server, int64_t now_ns)
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
static void revive(td_server_model *server, td_server_peer **at)
{
    td_server_peer *peer = *at;
    const td_wire_attach attach = {.client = td_wire_text_of(peer->id),
                                   .boot = boot_of(peer),
                                   .route = peer->route};
    uint32_t number;
    td_errinfo info = {.text = ""};
    td_err err = td_server_query_attach(server, &attach, &number, &info);
    if (err == TD_OK)
        wake_up(server, at, number);
    else
        td_server_arrive_refused(server, peer, err, info.text);
}

static void look_after_dormant(td_server_model *server)
{
    for (td_server_peer **at = &server->dormant; *at;) {
        td_server_peer *peer = *at;
        if (has_mail(peer)) revive(server, at);
        if (*at == peer) at = &peer->next;
    }
}

// Whether the client may stay, where td_server_model_use() has changed who may.
static bool may_stay(td_server_model *server, uint32_t number, bool changed)
{
    if (!changed) return true;
    pthread_mutex_lock(&server->device->lock);
    bool allowed = td_server_core_allows(server->core, number);
    pthread_mutex_unlock(&server->device->lock);
    return allowed;
}

static void turn_away(td_server_peer *peer)
{
    td_log_text(TD_LOG_INFO, "server: %s is no longer in the manifest",
                peer->id);
    peer->leaving = true;
}

static bool take_change(td_server_model *server)
{
    pthread_mutex_lock(&server->device->lock);
    bool changed = server->changed;
    server->changed = false;
    pthread_mutex_unlock(&server->device->lock);
    return changed;
}

void td_server_reception_look(td_server_model *server)
{
    bool changed = take_change(server);
    look_after_dormant(server);
    for (uint32_t i = 0; i < server->capacity; i++) {
        td_server_peer *peer = server->peers[i];
        if (!peer) continue;
        td_server_arrive_inbox(server, peer);
        if (!may_stay(server, i, changed)) turn_away(peer);
        if (peer->leaving) let_go(server, peer);
    }
}

void td_server_reception_close(td_server_model *server)
{
    for (uint32_t i = 0; i < server->capacity; i++)
        if (server->peers[i]) let_go(server, server->peers[i]);
    while (server->dormant) {
        td_server_peer *peer = server->dormant;
        server->dormant = peer->next;
        td_server_peer_close(peer);
    }
}
