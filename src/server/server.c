// SPDX-License-Identifier: Apache-2.0
// Shutdown: the status and liveliness declarations go first, so that nobody new
// comes, and no further batch is formed; then the engine's last batch is waited
// for; then each client's declarations go, and what still waited with them. The
// loop's thread does all of it before it returns; then everything is freed.
#include "server/server.h"

#include "base/log.h"
#include "server/shell.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define QUERIES 1024
#define SIGHTINGS 4096

static const td_net_qos metrics_qos = {.priority = TD_NET_DATA_LOW};

// Transport's thread.
static void on_query(void *user, td_net_request *request)
{
    td_server *server = user;
    if (td_queue_push(server->queries, &request) == TD_OK) {
        td_event_signal(&server->wake);
        return;
    }
    atomic_fetch_add(&server->events_dropped, 1);
    td_net_request_free(request);
}

// Transport's thread.
static void on_alive(void *user, const char *key, bool alive)
{
    td_server *server = user;
    td_server_sighting sighting = {.alive = alive};
    if (td_server_token_parse(key, &sighting.token) != TD_OK)
        atomic_fetch_add(&server->bad_tokens, 1);
    else if (td_queue_push(server->sightings, &sighting) != TD_OK)
        atomic_fetch_add(&server->events_dropped, 1);
    else
        td_event_signal(&server->wake);
}

static void reply_status(td_server *server, td_net_request *query,
                         td_err attach, const char *reason, bool is_attach)
{
    td_wire_status *status = malloc(sizeof *status);
    if (!status) return;
    pthread_mutex_lock(&server->lock);
    td_server_core_status(server->core, status);
    pthread_mutex_unlock(&server->lock);
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
    if (err != TD_OK) atomic_fetch_add(&server->puts_failed, 1);
    free(status);
}

static void drop_peer(td_server *server, uint32_t number)
{
    td_server_peer_close(server->peers[number]);
    server->peers[number] = NULL;
}

// A client that the core took and the network did not.
static void forget(td_server *server, const td_wire_attach *attach)
{
    char id[TD_WIRE_MAX_NAME + 1] = {0};
    uint32_t number;
    td_sched_request dropped;
    memcpy(id, attach->client.data, attach->client.size);
    pthread_mutex_lock(&server->lock);
    td_err err = td_server_core_detach(server->core, id, attach->boot, &number,
                                       &dropped);
    pthread_mutex_unlock(&server->lock);
    assert(err == TD_OK && !dropped.payload); // it has sent nothing yet
    (void)err;
}

static td_err open_peer(td_server *server, uint32_t number,
                        const td_wire_attach *attach, td_errinfo *info)
{
    td_server_peer *peer = NULL;
    td_err err = td_server_peer_open(server, number, attach, &peer, info);
    if (err != TD_OK) {
        forget(server, attach);
        return err;
    }
    server->peers[number] = peer;
    td_log_text(TD_LOG_INFO, "server: %s attached (boot %llu)", peer->id,
                (unsigned long long)attach->boot);
    return TD_OK;
}

// Makes the client's declarations if it is new, or remembers its newer start.
static td_err take_client(td_server *server, uint32_t number,
                          const td_wire_attach *attach, td_errinfo *info)
{
    if (!server->peers[number]) TD_TRY(open_peer(server, number, attach, info));
    td_server_peer *peer = server->peers[number];
    pthread_mutex_lock(&server->lock);
    if (attach->boot > peer->boot) peer->boot = attach->boot;
    pthread_mutex_unlock(&server->lock);
    peer->leaving = false;
    return TD_OK;
}

static void count_refused(td_server *server)
{
    pthread_mutex_lock(&server->lock);
    td_server_core_refused(server->core);
    pthread_mutex_unlock(&server->lock);
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
    td_sched_request dropped;
    pthread_mutex_lock(&server->lock);
    td_err err =
        td_server_core_attach(server->core, attach, ret_number, &dropped, info);
    pthread_mutex_unlock(&server->lock);
    if (err == TD_OK && dropped.payload)
        td_server_run_recycle(server, dropped.payload);
    return err;
}

static td_err attach_client(td_server *server, const td_wire_attach *attach,
                            td_errinfo *info)
{
    uint32_t number;
    td_err err = refuse_second(server, attach, info);
    if (err == TD_OK) err = attach_core(server, attach, &number, info);
    if (err == TD_OK) err = take_client(server, number, attach, info);
    if (err != TD_OK)
        td_log_text(TD_LOG_WARN, "server: refused to attach: %s", info->text);
    return err;
}

static uint64_t boot_of(td_server_peer *peer)
{
    pthread_mutex_lock(&peer->server->lock);
    uint64_t boot = peer->boot;
    pthread_mutex_unlock(&peer->server->lock);
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
        atomic_fetch_add(&server->bad_queries, 1);
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

// A client's token came or went. The end of the client's present start is the
// end of the client.
static void take_sighting(td_server *server, const td_server_sighting *seen)
{
    const td_server_token *token = &seen->token;
    if (seen->alive) {
        if (td_server_tokens_add(&server->tokens, token) != TD_OK)
            atomic_fetch_add(&server->events_dropped, 1);
        return;
    }
    td_server_tokens_remove(&server->tokens, token);
    for (uint32_t i = 0; i < server->capacity; i++) {
        td_server_peer *peer = server->peers[i];
        if (peer && strcmp(peer->id, token->client) == 0 &&
            !td_server_tokens_has(&server->tokens, peer->id, boot_of(peer)))
            peer->leaving = true;
    }
}

static void let_go(td_server *server, td_server_peer *peer)
{
    uint32_t number;
    td_sched_request dropped = {0};
    pthread_mutex_lock(&server->lock);
    td_err err = td_server_core_detach(server->core, peer->id, peer->boot,
                                       &number, &dropped);
    if (err == TD_ERR_BUSY)
        server->awaited = true;
    else
        peer->gone = true; // its callbacks may still come
    pthread_mutex_unlock(&server->lock);
    if (err == TD_ERR_BUSY) return; // the engine's thread wakes us when done
    if (dropped.payload) td_server_run_recycle(server, dropped.payload);
    td_log_text(TD_LOG_INFO, "server: %s left", peer->id);
    drop_peer(server, peer->number);
}

// Who is alive before who asks: a client's token comes before its attach.
static void take_events(td_server *server)
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

static void look_after_peers(td_server *server)
{
    for (uint32_t i = 0; i < server->capacity; i++) {
        td_server_peer *peer = server->peers[i];
        if (!peer) continue;
        td_server_run_inbox(server, peer);
        if (peer->leaving) let_go(server, peer);
    }
}

static bool is_running(td_server *server)
{
    pthread_mutex_lock(&server->lock);
    bool running = server->running;
    pthread_mutex_unlock(&server->lock);
    return running;
}

static void shut_down(td_server *server)
{
    pthread_mutex_lock(&server->lock);
    td_server_core_set_state(server->core, TD_WIRE_DRAINING);
    pthread_mutex_unlock(&server->lock);
    (void)td_net_undeclare(server->status);
    (void)td_net_undeclare(server->watch);
    (void)td_net_undeclare(server->token);
    take_events(server); // whoever still asks is told that it drains
    while (is_running(server)) {
        td_server_run_refused(server);
        (void)td_event_wait_until(&server->wake, INT64_MAX);
    }
    for (uint32_t i = 0; i < server->capacity; i++)
        if (server->peers[i]) let_go(server, server->peers[i]);
    if (server->metrics) td_net_unpublish(server->metrics);
}

static void loop(void *user)
{
    td_server *server = user;
    int64_t next_ns = server->metrics
                          ? server->opened_ns + server->metrics_period_ns
                          : INT64_MAX;
    while (!atomic_load(&server->stop)) {
        (void)td_event_wait_until(&server->wake, next_ns);
        take_events(server);
        look_after_peers(server);
        td_server_run_refused(server);
        td_server_run_next(server);
        int64_t now_ns = td_clock_now_ns(&td_clock_monotonic);
        if (now_ns < next_ns) continue;
        td_server_telemetry_put(server, now_ns);
        next_ns = now_ns + server->metrics_period_ns;
    }
    shut_down(server);
}

static td_err make_reader(td_server_reader *reader)
{
    TD_TRY(td_wire_decoder_new(&reader->decoder));
    return td_engine_picture_reader_new(&reader->pictures);
}

static void free_reader(td_server_reader *reader)
{
    if (reader->decoder) td_wire_decoder_free(reader->decoder);
    if (reader->pictures) td_engine_picture_reader_free(reader->pictures);
}

static td_err make(td_server *server, const td_server_config *config)
{
    td_event_init(&server->wake);
    td_hist_init(&server->queue_ns);
    td_hist_init(&server->service_ns);
    TD_TRY(td_queue_new(QUERIES, sizeof(td_net_request *), &server->queries));
    TD_TRY(td_queue_new(SIGHTINGS, sizeof(td_server_sighting),
                        &server->sightings));
    TD_TRY(make_reader(&server->reader));
    TD_TRY(make_reader(&server->arrival_reader));
    TD_TRY(td_wire_encoder_new(&server->encoder));
    TD_TRY(td_wire_encoder_new(&server->answer_encoder));
    server->peers = calloc(server->capacity, sizeof *server->peers);
    if (!server->peers) return TD_ERR_NOMEM;
    TD_TRY(td_server_core_new(&config->settings, server->spec, &server->core));
    td_server_core_set_state(server->core, TD_WIRE_READY);
    return TD_OK;
}

static td_err declare(td_server *server, const td_server_config *config,
                      td_errinfo *info)
{
    char key[TD_WIRE_MAX_KEY];
    char token[TD_WIRE_MAX_KEY + 2 * TD_WIRE_MAX_NAME];
    if (config->metrics_period_ns > 0) {
        TD_TRY(td_wire_key(&server->route, NULL, "metrics", key, info));
        TD_TRY(td_net_publish(server->net, key, &metrics_qos, &server->metrics,
                              info));
    }
    TD_TRY(td_wire_key(&server->route, "*", "alive", key, info));
    (void)snprintf(token, sizeof token, "%s/*", key);
    TD_TRY(td_net_watch(server->net, token, on_alive, server, &server->watch,
                        info));
    TD_TRY(td_wire_key(&server->route, NULL, "status", key, info));
    TD_TRY(td_net_serve(server->net, key, on_query, server, &server->status,
                        info));
    (void)snprintf(token, sizeof token, "%s/alive/%s/%llu", key, server->id,
                   (unsigned long long)server->boot);
    return td_net_token(server->net, token, &server->token, info);
}

static void free_requests(td_server_request *request)
{
    while (request) {
        td_server_request *next = request->next_free;
        free(request);
        request = next;
    }
}

// Frees what was made; nothing declared is left.
static void unmake(td_server *server)
{
    td_net_request *query;
    while (server->queries && td_queue_pop(server->queries, &query) == TD_OK)
        td_net_request_free(query);
    if (server->core) td_server_core_free(server->core);
    free_requests(server->free_requests);
    if (server->answer_encoder) td_wire_encoder_free(server->answer_encoder);
    if (server->encoder) td_wire_encoder_free(server->encoder);
    free_reader(&server->arrival_reader);
    free_reader(&server->reader);
    if (server->sightings) td_queue_free(server->sightings);
    if (server->queries) td_queue_free(server->queries);
    free(server->tokens.list);
    pthread_mutex_destroy(&server->arrival_lock);
    pthread_mutex_destroy(&server->lock);
    free(server->peers);
    free(server);
}

static void undeclare(td_server *server)
{
    if (server->status) (void)td_net_undeclare(server->status);
    if (server->watch) (void)td_net_undeclare(server->watch);
    if (server->token) (void)td_net_undeclare(server->token);
    if (server->metrics) td_net_unpublish(server->metrics);
}

static td_err start(td_server *server, const td_server_config *config,
                    td_errinfo *info)
{
    TD_TRY(make(server, config));
    TD_TRY(declare(server, config, info));
    td_thread_config thread = {.name = "td-server", .cpu = -1};
    return td_thread_start(&thread, loop, server, &server->thread, info);
}

td_err td_server_open(td_net *net, td_engine *engine,
                      const td_server_config *config, td_server **ret_server,
                      td_errinfo *info)
{
    td_server *server = calloc(1, sizeof *server);
    if (!server) return TD_ERR_NOMEM;
    server->net = net;
    server->engine = engine;
    server->spec = engine->ops->spec(engine);
    server->route = config->route;
    server->id = config->settings.server_id;
    server->boot = config->settings.boot;
    server->capacity = config->settings.capacity;
    server->metrics_period_ns = config->metrics_period_ns;
    server->opened_ns = td_clock_now_ns(&td_clock_monotonic);
    pthread_mutex_init(&server->lock, NULL);
    pthread_mutex_init(&server->arrival_lock, NULL);
    td_err err = start(server, config, info);
    if (err != TD_OK) {
        undeclare(server);
        unmake(server);
        return err;
    }
    *ret_server = server;
    return TD_OK;
}

void td_server_close(td_server *server)
{
    atomic_store(&server->stop, true);
    td_event_signal(&server->wake);
    td_thread_join(server->thread);
    unmake(server);
}

td_err td_server_use(td_server *server, const td_server_settings *settings,
                     const td_server_model_settings *model)
{
    if (model->batch.wait >= TD_SCHED_WAIT_COUNT || model->batch.wait_ns < 0)
        return TD_ERR_INVALID;
    pthread_mutex_lock(&server->lock);
    td_server_core_use(server->core, settings);
    pthread_mutex_unlock(&server->lock);
    return TD_OK;
}

void td_server_report_get(td_server *server, td_server_report *ret_report)
{
    pthread_mutex_lock(&server->lock);
    td_server_core_counts(server->core, &ret_report->counts);
    ret_report->clients = td_server_core_clients(server->core);
    pthread_mutex_unlock(&server->lock);
    ret_report->events_dropped = atomic_load(&server->events_dropped);
    ret_report->puts_failed = atomic_load(&server->puts_failed);
}
