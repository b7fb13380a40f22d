// SPDX-License-Identifier: Apache-2.0
// Who is here.
//
// A client is one record (core/client.h), made when it first attaches. While it
// is ATTACHED it has a place in the core, by whose number it is found. When it
// sends nothing for too long its place and what was kept for it are given up;
// while its token says that it is alive its subscriptions stay, SILENT, so that
// a robot that had nothing to ask finds everything as it was: what it sends, or
// attaching, brings it back. When its token goes, when it says so, when it may
// no longer stay, or when the server ends, it has LEFT, and is closed as soon
// as nothing of it runs.
//
// Threads: queries and tokens come on threads of the transport, which leave
// them in queues; all else is the loop's. Nobody but the loop gives or takes a
// place, so the loop reads who has one without a lock; it changes a record
// under the device's lock, since the transport's threads and the engine's read
// it.
//
// End: shut() undeclares what brings new clients, let_all_go() closes those
// that are here, free() frees.
#include "server/intake/registry.h"

#include "base/clock.h"
#include "base/log.h"
#include "server/dispatch/run.h"
#include "server/intake/registry_internal.h"
#include "server/report/telemetry.h"
#include "wire/msgpack/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define QUERIES 1024
#define SIGHTINGS 4096
#define WATCH_NS TD_NS_PER_S // between declarations

// Its numbers start before anything is recorded for it, so within one hold of
// the lock. For want of memory it goes without.
td_err td_server_registry_enter(td_server_registry *registry,
                                const td_wire_attach *attach,
                                td_server_client *client, td_errinfo *info)
{
    const td_server_context *ctx = registry->ctx;
    int64_t now_ns = td_clock_monotonic_ns();
    td_server_core_dropped dropped;
    bool counted = true;
    pthread_mutex_lock(ctx->lock);
    bool was_here = client->presence == TD_SERVER_ATTACHED;
    (void)td_server_health_update_locked(registry->parts.health);
    td_err err = td_server_core_attach(ctx->core, now_ns, attach, client,
                                       &dropped, info);
    if (err == TD_OK && !was_here)
        counted = td_server_stats_enter(ctx->stats, client->number, client->id,
                                        now_ns) == TD_OK;
    td_server_pool_return_dropped_locked(registry->parts.pool, &dropped);
    pthread_mutex_unlock(ctx->lock);
    if (!counted) td_server_telemetry_dropped(ctx);
    return err;
}

uint64_t td_server_registry_boot(const td_server_registry *registry,
                                 const td_server_client *client)
{
    pthread_mutex_lock(registry->ctx->lock);
    uint64_t boot = client->boot;
    pthread_mutex_unlock(registry->ctx->lock);
    return boot;
}

bool td_server_registry_is_alive(const td_server_registry *registry,
                                 const td_server_client *client)
{
    return td_server_tokens_has(&registry->tokens, client->id,
                                td_server_registry_boot(registry, client));
}

static void report_left(const td_server_registry *registry,
                        const td_server_client *client)
{
    td_log_text(TD_LOG_INFO, "server: %s left", client->id);
    td_server_telemetry_event(registry->ctx, TD_SERVER_EVENT_LEFT, client->id,
                              "boot %llu", (unsigned long long)client->boot);
}

void td_server_registry_free_client(td_server_client *client)
{
    td_server_topics_close(client);
    free(client);
}

// What is said to it is said before it goes.
static void close_client(td_server_registry *registry, td_server_client *client)
{
    td_server_notify_send(registry->parts.notify);
    report_left(registry, client);
    td_server_registry_free_client(client);
}

// The core has given up its place already.
static void close_silent(td_server_registry *registry, td_server_client **at)
{
    td_server_client *client = *at;
    *at = client->next;
    close_client(registry, client);
}

// Whoever is not here, or came again with a newer start, has nothing to leave.
void td_server_registry_leave(td_server_registry *registry, td_wire_text id,
                              uint64_t boot)
{
    td_server_client **at = td_server_silent_find(registry, id);
    if (*at && td_server_registry_boot(registry, *at) == boot)
        close_silent(registry, at);
    td_server_client *client = td_server_core_find(registry->ctx->core, id);
    if (client && td_server_registry_boot(registry, client) == boot)
        client->leaving = true;
}

// A client's token came or went. The end of the client's present start is the
// end of the client.
static void take_sighting(td_server_registry *registry,
                          const td_server_sighting *seen)
{
    const td_server_token *token = &seen->token;
    td_wire_text id = td_wire_text_of(token->client);
    if (seen->alive) {
        if (td_server_tokens_add(&registry->tokens, token) != TD_OK)
            td_server_telemetry_dropped(registry->ctx);
        return;
    }
    td_server_tokens_remove(&registry->tokens, token);
    td_server_client **at = td_server_silent_find(registry, id);
    if (*at && !td_server_registry_is_alive(registry, *at))
        close_silent(registry, at);
    td_server_client *client = td_server_core_find(registry->ctx->core, id);
    if (client && !td_server_registry_is_alive(registry, client))
        client->leaving = true;
}

// Transport's thread.
static void on_query(void *user, td_net_request *request)
{
    td_server_registry *registry = user;
    if (td_queue_push(registry->queries, &request) == TD_OK) {
        td_event_signal(registry->ctx->wake);
        return;
    }
    td_server_telemetry_dropped(registry->ctx);
    td_net_request_free(request);
}

// Transport's thread.
static void on_alive(void *user, const char *key, bool alive)
{
    td_server_registry *registry = user;
    const td_server_context *ctx = registry->ctx;
    td_server_sighting sighting = {.alive = alive};
    if (td_server_token_parse(key, &sighting.token) != TD_OK) {
        td_server_telemetry_bad(ctx, TD_SERVER_COUNT_BAD_TOKENS, "bad token",
                                key);
        return;
    }
    if (td_queue_push(registry->sightings, &sighting) != TD_OK) {
        td_server_telemetry_dropped(ctx);
        atomic_store(&registry->blind, true);
    }
    td_event_signal(ctx->wake);
}

static td_err watch(td_server_registry *registry, td_errinfo *info)
{
    const td_server_context *ctx = registry->ctx;
    char key[TD_WIRE_MAX_KEY];
    char tokens[TD_WIRE_MAX_KEY + 2];
    TD_TRY(td_wire_key(&ctx->route, "*", "alive", key, info));
    (void)snprintf(tokens, sizeof tokens, "%s/*", key);
    return td_net_watch(ctx->net, tokens, on_alive, registry, &registry->watch,
                        info);
}

// Whoever is alive is seen once more. Who went unseen is not: of those who are
// attached their silence will tell, of those who are silent a recount.
static void watch_anew(td_server_registry *registry)
{
    td_server_sighting seen;
    td_errinfo info = {.text = ""};
    if (registry->watch) (void)td_net_undeclare(TD_TAKE(registry->watch));
    while (td_queue_pop(registry->sightings, &seen) == TD_OK)
        continue;
    registry->tokens.count = 0;
    registry->recounts = true;
    if (watch(registry, &info) == TD_OK) return;
    atomic_store(&registry->blind, true);
    td_log_text(TD_LOG_ERROR, "server: cannot watch the clients: %s",
                info.text);
}

static void recount(td_server_registry *registry)
{
    for (td_server_client **at = &registry->silent; *at;) {
        td_server_client *client = *at;
        if (!td_server_registry_is_alive(registry, client))
            close_silent(registry, at);
        if (*at == client) at = &client->next;
    }
    registry->recounts = false;
}

// Where there was no room for what was seen. It takes a while until all were
// seen again, and there may be more of them than there is room for.
static void keep_watching(td_server_registry *registry)
{
    int64_t now_ns = td_clock_monotonic_ns();
    if (now_ns - registry->watched_ns < WATCH_NS) return;
    if (atomic_exchange(&registry->blind, false)) {
        registry->watched_ns = now_ns;
        watch_anew(registry);
    } else if (registry->recounts) {
        recount(registry);
    }
}

// Who is alive before who asks: a client's token comes before its attach.
void td_server_registry_look_events(td_server_registry *registry)
{
    td_server_sighting seen;
    keep_watching(registry);
    while (td_queue_pop(registry->sightings, &seen) == TD_OK)
        take_sighting(registry, &seen);
    td_net_request *query;
    while (td_queue_pop(registry->queries, &query) == TD_OK) {
        td_server_attach_answer(registry, query);
        td_net_request_free(query);
    }
}

bool td_server_registry_detach(td_server_registry *registry,
                               td_server_client *client,
                               td_server_presence then)
{
    const td_server_context *ctx = registry->ctx;
    td_server_core_dropped dropped = {0};
    pthread_mutex_lock(ctx->lock);
    bool out = td_server_core_detach(ctx->core, client, client->boot,
                                     &dropped) == TD_OK;
    if (out)
        client->presence = then; // its callbacks may still come
    else
        td_server_run_await_locked(registry->parts.runs);
    td_server_pool_return_dropped_locked(registry->parts.pool, &dropped);
    pthread_mutex_unlock(ctx->lock);
    if (out) td_server_stats_leave(ctx->stats, client->number);
    return out;
}

static void let_go(td_server_registry *registry, td_server_client *client)
{
    if (td_server_registry_detach(registry, client, TD_SERVER_LEFT))
        close_client(registry, client);
}

void td_server_registry_recheck_locked(td_server_registry *registry)
{
    registry->changed = true;
}

static bool take_change(td_server_registry *registry)
{
    pthread_mutex_lock(registry->ctx->lock);
    bool changed = registry->changed;
    registry->changed = false;
    pthread_mutex_unlock(registry->ctx->lock);
    return changed;
}

// Where td_server_model_use() has changed who may stay.
static void check_allowed(const td_server_registry *registry,
                          td_server_client *client)
{
    const td_server_context *ctx = registry->ctx;
    pthread_mutex_lock(ctx->lock);
    bool allowed = td_server_core_allows(ctx->core, client);
    pthread_mutex_unlock(ctx->lock);
    if (allowed) return;
    td_log_text(TD_LOG_INFO, "server: %s is no longer in the manifest",
                client->id);
    client->leaving = true;
}

void td_server_registry_look_clients(td_server_registry *registry)
{
    const td_server_context *ctx = registry->ctx;
    bool changed = take_change(registry);
    td_server_silent_look(registry);
    for (uint32_t i = 0; i < ctx->capacity; i++) {
        td_server_client *client = td_server_core_at(ctx->core, i);
        if (!client) continue;
        td_server_intake_read_inbox(registry->parts.intake, client);
        if (changed) check_allowed(registry, client);
        if (client->leaving) let_go(registry, client);
    }
}

static void undeclare(td_server_registry *registry)
{
    if (registry->status) (void)td_net_undeclare(TD_TAKE(registry->status));
    if (registry->watch) (void)td_net_undeclare(TD_TAKE(registry->watch));
    if (registry->token) (void)td_net_undeclare(TD_TAKE(registry->token));
}

void td_server_registry_shut(td_server_registry *registry)
{
    undeclare(registry);
    td_server_registry_look_events(registry);
}

void td_server_registry_let_all_go(td_server_registry *registry)
{
    const td_server_context *ctx = registry->ctx;
    for (uint32_t i = 0; i < ctx->capacity; i++) {
        td_server_client *client = td_server_core_at(ctx->core, i);
        if (client) let_go(registry, client);
    }
    while (registry->silent) {
        td_server_client *client = registry->silent;
        registry->silent = client->next;
        td_server_registry_free_client(client);
    }
}

static td_err declare(td_server_registry *registry, td_errinfo *info)
{
    const td_server_context *ctx = registry->ctx;
    char key[TD_WIRE_MAX_KEY];
    char token[TD_WIRE_MAX_KEY + 2 * TD_WIRE_MAX_NAME];
    TD_TRY(td_queue_new(QUERIES, sizeof(td_net_request *), &registry->queries));
    TD_TRY(td_queue_new(SIGHTINGS, sizeof(td_server_sighting),
                        &registry->sightings));
    TD_TRY(td_wire_decoder_new(&registry->decoder));
    TD_TRY(td_wire_encoder_new(&registry->encoder));
    TD_TRY(watch(registry, info));
    TD_TRY(td_wire_key(&ctx->route, NULL, "status", key, info));
    TD_TRY(td_net_serve(ctx->net, key, on_query, registry, &registry->status,
                        info));
    (void)snprintf(token, sizeof token, "%s/alive/%s/%llu", key, ctx->id,
                   (unsigned long long)ctx->boot);
    return td_net_token(ctx->net, token, &registry->token, info);
}

td_err td_server_registry_open(const td_server_registry_parts *parts,
                               td_server_registry **ret_registry,
                               td_errinfo *info)
{
    td_server_registry *registry = calloc(1, sizeof *registry);
    if (!registry) return TD_ERR_NOMEM;
    registry->parts = *parts;
    registry->ctx = parts->ctx;
    td_err err = declare(registry, info);
    if (err != TD_OK) {
        td_server_registry_free(registry);
        return err;
    }
    *ret_registry = registry;
    return TD_OK;
}

void td_server_registry_free(td_server_registry *registry)
{
    td_net_request *query;
    undeclare(registry);
    while (registry->queries &&
           td_queue_pop(registry->queries, &query) == TD_OK)
        td_net_request_free(query);
    if (registry->queries) td_queue_free(registry->queries);
    if (registry->sightings) td_queue_free(registry->sightings);
    if (registry->decoder) td_wire_decoder_free(registry->decoder);
    if (registry->encoder) td_wire_encoder_free(registry->encoder);
    free(registry->tokens.list);
    free(registry);
}
