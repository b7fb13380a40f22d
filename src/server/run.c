// SPDX-License-Identifier: Apache-2.0
// The life of an observation in the server: decoded and checked (transport's
// thread, or the loop's out of the inbox), waiting in the core, run by the
// engine, answered (engine's thread), its request used again.
#include "base/log.h"
#include "server/answer.h"
#include "server/check.h"
#include "server/shell.h"

#include <stdlib.h>

// A request of the pool; it grows to what all clients need at once, and stays.
static td_server_request *request_new(td_server *server)
{
    pthread_mutex_lock(&server->lock);
    td_server_request *request = server->free_requests;
    if (request) server->free_requests = request->next_free;
    pthread_mutex_unlock(&server->lock);
    if (request) return request;
    size_t cells =
        (size_t)server->spec->chunk_rows * server->spec->action_count;
    return malloc(sizeof *request + cells * sizeof(float));
}

static void recycle_locked(td_server *server, td_server_request *request)
{
    if (request->msg) td_net_msg_free(request->msg);
    request->next_free = server->free_requests;
    server->free_requests = request;
}

void td_server_run_recycle(td_server *server, td_server_request *request)
{
    pthread_mutex_lock(&server->lock);
    recycle_locked(server, request);
    pthread_mutex_unlock(&server->lock);
}

static void put(td_server *server, td_server_peer *peer,
                td_wire_encoder *encoder, const td_wire_action *action)
{
    td_errinfo info;
    td_err err = td_wire_action_encode(encoder, action, &info);
    if (err == TD_OK) {
        size_t count;
        const td_slice *parts = td_wire_encoder_parts(encoder, &count);
        err = td_net_put(peer->action, parts, count, NULL, NULL);
    }
    if (err != TD_OK) atomic_fetch_add(&server->puts_failed, 1);
}

// A line for the first of its kind from this client, then for every power of
// two, so that a client that sends nothing else cannot fill the log.
static void complain(const td_server_peer *peer, uint64_t count,
                     const char *what, const char *text)
{
    if ((count & (count - 1)) != 0) return;
    td_log_text(TD_LOG_WARN, "server: %s: %s: %s (%llu so far)", peer->id, what,
                text, (unsigned long long)count);
}

// Ends an observation that goes no further: counted, said, and the robot told.
static void refuse(td_server *server, td_server_peer *peer,
                   td_server_outcome outcome, const td_wire_ident *ident,
                   td_err code, const char *text)
{
    pthread_mutex_lock(&server->lock);
    td_server_core_ended(server->core, peer->number, outcome, ident->seq);
    pthread_mutex_unlock(&server->lock);
    complain(peer, ++peer->told[outcome], td_server_outcome_name(outcome),
             text);
    td_wire_action action;
    td_server_answer_error(server->id, ident, code, text, &action);
    put(server, peer, server->encoder, &action);
}

static td_err decode(td_server_reader *reader, td_server_request *request,
                     td_errinfo *info)
{
    td_slice bytes;
    TD_TRY(td_net_msg_bytes(request->msg, &bytes));
    return td_wire_obs_decode(reader->decoder, bytes.data, bytes.size,
                              &request->obs, info);
}

static td_err check_client(const td_server_peer *peer, td_wire_text client,
                           td_errinfo *info)
{
    if (td_wire_text_is(client, peer->id)) return TD_OK;
    return td_fail(info, TD_ERR_MISMATCH,
                   "client_uuid: is \"%.*s\" on the key of \"%s\"",
                   (int)client.size, client.data, peer->id);
}

static td_err check(const td_server_peer *peer, td_server_reader *reader,
                    const td_wire_obs *obs, td_errinfo *info)
{
    const td_server *server = peer->server;
    TD_TRY(check_client(peer, obs->client, info));
    TD_TRY(td_server_core_fits(server->core, obs, info));
    return td_server_check_pictures(reader->pictures, server->spec, obs, info);
}

// Into the core, which may hand an older one back.
static td_server_outcome offer_locked(td_server_request *request)
{
    td_server_peer *peer = request->peer;
    td_server_core *core = peer->server->core;
    const td_wire_ident *ident = &request->obs.ident;
    if (peer->gone) {
        td_server_core_ended(core, peer->number, TD_SERVER_DEPARTED,
                             ident->seq);
        return TD_SERVER_DEPARTED;
    }
    td_sched_request displaced;
    if (ident->boot > peer->boot) peer->boot = ident->boot; // as the core does
    td_server_outcome outcome = td_server_core_observe(
        core, peer->number, request->arrived_ns, ident, request, &displaced);
    if (displaced.payload) recycle_locked(peer->server, displaced.payload);
    return outcome;
}

static void offer(td_server_request *request)
{
    td_server *server = request->peer->server;
    pthread_mutex_lock(&server->lock);
    if (offer_locked(request) != TD_SERVER_WAITING)
        recycle_locked(server, request);
    pthread_mutex_unlock(&server->lock);
}

// Whose it must be when nothing but its seq can be read.
static td_wire_ident present_ident(td_server *server,
                                   const td_server_peer *peer, uint64_t seq)
{
    pthread_mutex_lock(&server->lock);
    td_wire_ident ident = td_server_core_present(server->core, peer->number);
    pthread_mutex_unlock(&server->lock);
    ident.seq = seq;
    return ident;
}

static void admit(td_server_request *request, uint64_t seq)
{
    td_server_peer *peer = request->peer;
    td_server *server = peer->server;
    td_errinfo info = {.text = "out of memory"};
    td_err err = decode(&server->reader, request, &info);
    if (err != TD_OK) {
        td_wire_ident ident = present_ident(server, peer, seq);
        refuse(server, peer, TD_SERVER_MALFORMED, &ident, err, info.text);
        td_server_run_recycle(server, request);
        return;
    }
    err = check(peer, &server->reader, &request->obs, &info);
    if (err != TD_OK) {
        refuse(server, peer, TD_SERVER_REFUSED, &request->obs.ident, err,
               info.text);
        td_server_run_recycle(server, request);
        return;
    }
    offer(request);
}

static td_err read_reset(td_server *server, const td_server_peer *peer,
                         td_net_msg *msg, td_wire_reset *ret_reset,
                         td_errinfo *info)
{
    td_slice bytes;
    TD_TRY(td_net_msg_bytes(msg, &bytes));
    TD_TRY(td_wire_reset_decode(server->reader.decoder, bytes.data, bytes.size,
                                ret_reset, info));
    return check_client(peer, ret_reset->client, info);
}

static void take_reset(td_server *server, td_server_peer *peer, td_net_msg *msg)
{
    td_wire_reset reset;
    td_errinfo info = {.text = "out of memory"};
    if (read_reset(server, peer, msg, &reset, &info) == TD_OK) {
        td_sched_request dropped;
        pthread_mutex_lock(&server->lock);
        td_server_core_reset(server->core, peer->number, &reset, &dropped);
        if (dropped.payload) recycle_locked(server, dropped.payload);
        pthread_mutex_unlock(&server->lock);
    } else {
        atomic_fetch_add(&server->bad_resets, 1);
        complain(peer, ++peer->bad_resets, "reset", info.text);
    }
    td_net_msg_free(msg);
}

static void count_skipped(td_server *server, const td_server_peer *peer,
                          const td_server_mail *taken)
{
    pthread_mutex_lock(&server->lock);
    // First, so that it is the named ones that are remembered.
    for (uint64_t i = 0; i < taken->skipped_untold; i++)
        td_server_core_ended(server->core, peer->number, TD_SERVER_SUPERSEDED,
                             0);
    for (uint32_t i = 0; i < taken->skipped_count; i++)
        td_server_core_ended(server->core, peer->number, TD_SERVER_SUPERSEDED,
                             taken->skipped[i]);
    for (uint64_t i = 0; i < taken->skipped_unnamed; i++)
        td_server_core_ended(server->core, peer->number, TD_SERVER_MALFORMED,
                             0);
    pthread_mutex_unlock(&server->lock);
}

void td_server_run_inbox(td_server *server, td_server_peer *peer)
{
    td_server_inbox *inbox = &peer->inbox;
    pthread_mutex_lock(&inbox->lock);
    td_server_mail taken = inbox->mail;
    inbox->mail = (td_server_mail){0};
    pthread_mutex_unlock(&inbox->lock);

    if (taken.reset) take_reset(server, peer, taken.reset);
    if (taken.skipped_count + taken.skipped_unnamed > 0)
        count_skipped(server, peer, &taken);
    if (!taken.msg) return;
    td_server_request *request = request_new(server);
    if (!request) {
        td_net_msg_free(taken.msg);
        atomic_fetch_add(&server->events_dropped, 1);
        return;
    }
    request->msg = taken.msg;
    request->peer = peer;
    request->arrived_ns = taken.arrived_ns;
    admit(request, taken.has_seq ? taken.seq : 0);
}

// The peer stays while its request runs, so it is put before it is done.
static void answer(td_server *server, td_server_request *request)
{
    td_server_peer *peer = request->peer;
    td_server_timing timing = {
        .queue_ns = request->started_ns - request->arrived_ns,
        .service_ns = server->batch.service_ns,
    };
    td_wire_action action;
    td_server_answer(server->id, &request->item, server->spec->action_count,
                     &timing, ++server->chunk_id, &action);
    pthread_mutex_lock(&server->lock);
    action.superseded_count = td_server_core_superseded(
        server->core, peer->number, action.superseded);
    pthread_mutex_unlock(&server->lock);
    put(server, peer, server->answer_encoder, &action);

    pthread_mutex_lock(&server->lock);
    td_server_core_done(server->core, peer->number,
                        request->item.status == TD_OK ? TD_SERVER_ANSWERED
                                                      : TD_SERVER_FAILED);
    recycle_locked(server, request);
    pthread_mutex_unlock(&server->lock);
}

static td_server_request *request_of(td_engine_item *item)
{
    return (td_server_request *)((char *)item -
                                 offsetof(td_server_request, item));
}

static void prepare(td_server *server, td_server_request *request,
                    int64_t now_ns)
{
    const td_wire_ident *ident = &request->obs.ident;
    request->started_ns = now_ns;
    td_hist_record(&server->queue_ns, now_ns - request->arrived_ns);
    request->item = (td_engine_item){
        .obs = &request->obs,
        .seed = td_engine_seed(request->obs.client, ident->episode, ident->seq),
        .actions = request->actions,
        .status = TD_ERR_INTERNAL,
    };
}

// Takes what waits, if anything does, as the batch that runs.
static bool form_batch_locked(td_server *server)
{
    uint32_t clients[TD_ENGINE_MAX_BATCH];
    td_sched_request requests[TD_ENGINE_MAX_BATCH];
    int64_t now_ns = td_clock_now_ns(&td_clock_monotonic);
    uint32_t count = 0;
    if (!atomic_load(&server->stop))
        count = td_server_core_next(server->core, server->spec->max_batch,
                                    clients, requests);
    server->running = count > 0;
    if (count == 0) return false;
    for (uint32_t i = 0; i < count; i++) {
        td_server_request *request = requests[i].payload;
        prepare(server, request, now_ns);
        server->batch.items[i] = &request->item;
    }
    server->batch.count = count;
    server->batch.service_ns = 0;
    return true;
}

static void answer_batch(td_server *server)
{
    for (uint32_t i = 0; i < server->batch.count; i++)
        answer(server, request_of(server->batch.items[i]));
}

// After a batch: forms the next. Without one `running` is false and the server
// may be freed as soon as the lock is let go, so nothing may follow.
static bool form_next(td_server *server)
{
    pthread_mutex_lock(&server->lock);
    bool more = form_batch_locked(server);
    if (server->awaited || atomic_load(&server->stop))
        td_event_signal(&server->wake);
    server->awaited = false;
    pthread_mutex_unlock(&server->lock);
    return more;
}

static void on_done(void *user, td_engine_batch *batch);

static td_err submit(td_server *server)
{
    td_err err = server->engine->ops->submit(server->engine, &server->batch,
                                             on_done, server);
    if (err != TD_OK)
        td_log_text(TD_LOG_ERROR, "server: engine %s refused a batch of %u: %s",
                    server->engine->ops->name, server->batch.count,
                    td_err_text(err));
    return err;
}

// Until the engine has one, or nothing waits.
static void run(td_server *server)
{
    while (submit(server) != TD_OK) {
        answer_batch(server);
        if (!form_next(server)) return;
    }
}

// Engine's thread.
static void on_done(void *user, td_engine_batch *batch)
{
    td_server *server = user;
    td_hist_record(&server->service_ns, batch->service_ns);
    answer_batch(server);
    if (form_next(server)) run(server);
}

static bool form_if_idle(td_server *server)
{
    pthread_mutex_lock(&server->lock);
    bool formed = !server->running && form_batch_locked(server);
    pthread_mutex_unlock(&server->lock);
    return formed;
}

void td_server_run_next(td_server *server)
{
    if (form_if_idle(server)) run(server);
}

void td_server_run_refused(td_server *server)
{
    if (!atomic_exchange(&server->refused, false)) return;
    answer_batch(server);
    if (form_next(server)) run(server);
}

static td_err read_arrival(td_server *server, td_server_request *request)
{
    td_server_reader *reader = &server->arrival_reader;
    pthread_mutex_lock(&server->arrival_lock);
    td_err err = decode(reader, request, NULL);
    if (err == TD_OK) err = check(request->peer, reader, &request->obs, NULL);
    pthread_mutex_unlock(&server->arrival_lock);
    return err;
}

bool td_server_run_arrival(td_server_peer *peer, td_net_msg *msg,
                           int64_t arrived_ns)
{
    td_server *server = peer->server;
    td_server_request *request = request_new(server);
    if (!request) return false;
    request->msg = msg;
    request->peer = peer;
    request->arrived_ns = arrived_ns;
    if (read_arrival(server, request) != TD_OK) {
        request->msg = NULL; // stays the caller's
        td_server_run_recycle(server, request);
        return false;
    }
    offer(request);
    if (form_if_idle(server) && submit(server) != TD_OK) {
        atomic_store(&server->refused, true);
        td_event_signal(&server->wake);
    }
    return true;
}
