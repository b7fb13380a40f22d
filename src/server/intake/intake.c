// SPDX-License-Identifier: Apache-2.0
// From the network to the device: an observation is decoded and checked, on the
// transport's thread or by the loop out of the inbox, and waits in the core.
#include "base/log.h"
#include "server/core/answer.h"
#include "server/core/check.h"
#include "server/shell.h"

#include <stdlib.h>

// Of this kind, from this client.
static void complain(const td_server_peer *peer, uint64_t count,
                     const char *what, const char *text)
{
    if (!td_log_is_due(count)) return;
    td_log_text(TD_LOG_WARN, "server: %s: %s: %s (%llu so far)", peer->id, what,
                text, (unsigned long long)count);
}

// Counts one that goes no further. The number of a peer that has no place in
// the core may be somebody else's by now.
static void end_locked(const td_server_peer *peer, td_server_outcome outcome,
                       uint64_t seq)
{
    td_server_core *core = peer->server->core;
    if (peer->gone || peer->dormant)
        td_server_core_stray(core, outcome);
    else
        td_server_core_ended(core, peer->number, outcome, seq);
}

// Ends an observation that goes no further: counted, said, and the robot told.
static void refuse(td_server_model *server, td_server_peer *peer,
                   td_server_outcome outcome, const td_wire_ident *ident,
                   td_err code, const char *text)
{
    td_wire_action action;
    td_server_answer_error(server->id, ident, code, text, &action);
    pthread_mutex_lock(&server->device->lock);
    end_locked(peer, outcome, ident->seq);
    if (!peer->dormant)
        td_server_core_add_superseded(server->core, peer->number, &action);
    pthread_mutex_unlock(&server->device->lock);
    complain(peer, ++peer->told[outcome], td_server_outcome_name(outcome),
             text);
    td_server_request_put(peer, server->encoder, &action);
}

// Bad in themselves: not those for which there was no room, or nobody there.
static void count_bad(td_server_model *server, uint64_t count)
{
    td_server_stats_count(server->stats, TD_SERVER_COUNT_OBSERVATION_ERRORS,
                          TD_SERVER_NOBODY, count);
}

static td_err decode(td_wire_decoder *decoder, td_server_request *request,
                     td_errinfo *info)
{
    const td_slice *pieces;
    size_t count;
    TD_TRY(td_net_msg_pieces(request->msg, &pieces, &count));
    request->size = 0;
    for (size_t i = 0; i < count; i++)
        request->size += pieces[i].size;
    return td_wire_obs_decode_pieces(decoder, &request->outline, pieces, count,
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

static td_err check(const td_server_peer *peer, const td_wire_obs *obs,
                    td_errinfo *info)
{
    const td_server_model *server = peer->server;
    TD_TRY(check_client(peer, obs->client, info));
    TD_TRY(td_server_core_fits(server->core, obs, info));
    return td_server_check_pictures(server->spec, obs, info);
}

static td_err check_fresh(td_server_model *server, const td_wire_obs *obs,
                          td_errinfo *info)
{
    pthread_mutex_lock(&server->device->lock);
    td_err err = td_server_core_fresh(server->core, obs, info);
    pthread_mutex_unlock(&server->device->lock);
    return err;
}

// Into the core, which may hand older ones back. What the core does not take is
// given back, or lined up to be told of.
static void offer_locked(td_server_request *request)
{
    static const char full[] =
        "too many kinds of batches wait: try again, or send what others send";
    td_server_peer *peer = request->peer;
    td_server_model *server = peer->server;
    const td_wire_ident *ident = &request->obs.ident;
    td_server_core_dropped dropped;
    td_server_measure_arrival_locked(request);
    if (ident->boot > peer->boot) peer->boot = ident->boot; // as the core does
    td_server_outcome outcome =
        td_server_core_observe(server->core, peer->number, request->arrived_ns,
                               &request->obs, request, &dropped);
    td_server_request_drop_locked(server, &dropped);
    if (outcome == TD_SERVER_REFUSED) {
        td_server_stats_count(server->stats, TD_SERVER_COUNT_QUEUE_FULL_DROPS,
                              peer->number, 1);
        td_server_request_told_locked(server, request, TD_ERR_FULL, full);
    } else if (outcome != TD_SERVER_WAITING) {
        td_server_request_recycle_locked(server, request);
    }
    int64_t silence_ns = td_server_core_wake_ns(server->core);
    if (silence_ns < server->planned_ns) td_event_signal(&server->wake);
}

// The kept chunk once more.
static void send_again(td_server_model *server, td_server_request *kept)
{
    td_server_peer *peer = kept->peer;
    const td_server_timing timing = {0};
    td_wire_action action;
    td_server_answer(server->id, &kept->item, server->spec->action_count,
                     &timing, kept->chunk_id, &action);
    pthread_mutex_lock(&server->device->lock);
    td_server_core_add_superseded(server->core, peer->number, &action);
    pthread_mutex_unlock(&server->device->lock);
    td_server_request_put(peer, server->encoder, &action);
    pthread_mutex_lock(&server->device->lock);
    td_server_request_keep_locked(server, kept);
    pthread_mutex_unlock(&server->device->lock);
}

// A robot missed an answer: from what is kept for it. Returns the kept chunk if
// that is it.
static td_server_request *find_again_locked(td_server_request *request)
{
    td_server_peer *peer = request->peer;
    td_server_model *server = peer->server;
    td_wire_obs *obs = &request->obs;
    td_server_core_dropped dropped;
    td_server_again again =
        td_server_core_again(server->core, peer->number, request->arrived_ns,
                             obs, request, &dropped);
    td_server_request_drop_locked(server, &dropped);
    if (again.found == TD_SERVER_FOUND_PREFIX) {
        request->prefix = again.prefix;
        request->asker = obs->ident.seq;
        obs->ident.seq = obs->again; // whose answer it will be
    } else if (again.outcome == TD_SERVER_REFUSED) {
        td_server_request_told_locked(server, request, TD_ERR_NOTFOUND,
                                      "again: nothing of that seq is kept");
    } else {
        td_server_request_recycle_locked(server, request);
    }
    return again.chunk;
}

// Whose it must be when nothing but its seq can be read.
static td_wire_ident present_ident(td_server_model *server,
                                   const td_server_peer *peer, uint64_t seq)
{
    pthread_mutex_lock(&server->device->lock);
    td_wire_ident ident = td_server_core_present(server->core, peer->number);
    pthread_mutex_unlock(&server->device->lock);
    ident.seq = seq;
    return ident;
}

// Decoded, checked, and the engine is there to run it.
static td_err read_loop(td_server_request *request, uint64_t seq,
                        td_wire_ident *ret_ident,
                        td_server_outcome *ret_outcome, td_errinfo *info)
{
    td_server_peer *peer = request->peer;
    td_server_model *server = peer->server;
    *ret_outcome = TD_SERVER_MALFORMED;
    *ret_ident = present_ident(server, peer, seq);
    TD_TRY(decode(server->decoder, request, info));
    *ret_outcome = TD_SERVER_REFUSED;
    *ret_ident = request->obs.ident;
    TD_TRY(check(peer, &request->obs, info));
    *ret_outcome = TD_SERVER_STALE;
    TD_TRY(check_fresh(server, &request->obs, info));
    *ret_outcome = TD_SERVER_UNREADY;
    return td_server_health_check(server, info);
}

// A newer one took the short way, past the inbox.
static bool was_overtaken_locked(const td_server_request *request)
{
    const td_server_peer *peer = request->peer;
    const td_wire_ident *ident = &request->obs.ident;
    td_wire_ident present =
        td_server_core_present(peer->server->core, peer->number);
    return ident->boot == present.boot && ident->episode == present.episode &&
           ident->seq < present.seq;
}

// Into the core. Returns the kept chunk if it asks for that.
static td_server_request *admit_locked(td_server_request *request)
{
    const td_server_peer *peer = request->peer;
    if (was_overtaken_locked(request)) {
        end_locked(peer, TD_SERVER_SUPERSEDED, request->obs.ident.seq);
        td_server_request_recycle_locked(peer->server, request);
        return NULL;
    }
    if (request->obs.has_again) return find_again_locked(request);
    offer_locked(request);
    return NULL;
}

static void admit(td_server_request *request, uint64_t seq)
{
    td_server_peer *peer = request->peer;
    td_server_model *server = peer->server;
    td_errinfo info = {.text = "out of memory"};
    td_wire_ident ident;
    td_server_outcome outcome;
    td_err err = read_loop(request, seq, &ident, &outcome, &info);
    if (err != TD_OK) {
        if (outcome != TD_SERVER_UNREADY) count_bad(server, 1);
        refuse(server, peer, outcome, &ident, err, info.text);
        td_server_request_recycle(server, request);
        return;
    }
    pthread_mutex_lock(&server->device->lock);
    td_server_request *kept = admit_locked(request);
    pthread_mutex_unlock(&server->device->lock);
    if (kept) send_again(server, kept);
}

static td_err read_reset(td_server_model *server, const td_server_peer *peer,
                         td_net_msg *msg, td_wire_reset *ret_reset,
                         td_errinfo *info)
{
    td_slice bytes;
    TD_TRY(td_net_msg_bytes(msg, &bytes));
    TD_TRY(td_wire_reset_decode(server->decoder, bytes.data, bytes.size,
                                ret_reset, info));
    return check_client(peer, ret_reset->client, info);
}

static void take_reset(td_server_model *server, td_server_peer *peer,
                       td_net_msg *msg)
{
    td_wire_reset reset;
    td_errinfo info = {.text = "out of memory"};
    if (read_reset(server, peer, msg, &reset, &info) == TD_OK) {
        td_server_core_dropped dropped;
        pthread_mutex_lock(&server->device->lock);
        td_server_core_reset(server->core, peer->number, &reset, &dropped);
        td_server_request_drop_locked(server, &dropped);
        pthread_mutex_unlock(&server->device->lock);
    } else {
        td_server_telemetry_count(server, TD_SERVER_COUNT_BAD_RESETS);
        complain(peer, ++peer->bad_resets, "reset", info.text);
    }
    td_net_msg_free(msg);
}

// Those that a newer one displaced before the loop looked, as `outcome`.
static void count_skipped(td_server_model *server, const td_server_peer *peer,
                          const td_server_mail *mail, td_server_outcome outcome)
{
    pthread_mutex_lock(&server->device->lock);
    // First, so that it is the named ones that are remembered.
    for (uint64_t i = 0; i < mail->skipped_untold; i++)
        end_locked(peer, outcome, 0);
    for (uint32_t i = 0; i < mail->skipped_count; i++)
        end_locked(peer, outcome, mail->skipped[i]);
    for (uint64_t i = 0; i < mail->skipped_unnamed; i++)
        end_locked(peer, TD_SERVER_MALFORMED, 0);
    pthread_mutex_unlock(&server->device->lock);
    count_bad(server, mail->skipped_unnamed);
}

// What the callbacks left: the observation as a request, or NULL.
static td_server_request *take_mail(td_server_model *server,
                                    td_server_peer *peer,
                                    td_server_mail *ret_mail)
{
    td_server_inbox *inbox = &peer->inbox;
    pthread_mutex_lock(&inbox->lock);
    *ret_mail = inbox->mail;
    inbox->mail = (td_server_mail){0};
    pthread_mutex_unlock(&inbox->lock);
    if (!ret_mail->msg) return NULL;
    td_server_request *request = td_server_request_new(server);
    if (!request) {
        td_net_msg_free(ret_mail->msg);
        td_server_telemetry_dropped(server);
        return NULL;
    }
    request->msg = ret_mail->msg;
    request->peer = peer;
    request->arrived_ns = ret_mail->arrived_ns;
    return request;
}

void td_server_arrive_inbox(td_server_model *server, td_server_peer *peer)
{
    td_server_mail mail;
    td_server_request *request = take_mail(server, peer, &mail);
    if (mail.reset) take_reset(server, peer, mail.reset);
    if (mail.skipped_count + mail.skipped_unnamed > 0)
        count_skipped(server, peer, &mail, TD_SERVER_SUPERSEDED);
    if (request) admit(request, mail.has_seq ? mail.seq : 0);
}

void td_server_arrive_refused(td_server_model *server, td_server_peer *peer,
                              td_err code, const char *text)
{
    td_server_mail mail;
    td_server_request *request = take_mail(server, peer, &mail);
    if (mail.reset) td_server_peer_drop_reset(server, mail.reset);
    count_skipped(server, peer, &mail, TD_SERVER_REFUSED);
    if (!request) return;
    bool readable = decode(server->decoder, request, NULL) == TD_OK;
    td_wire_ident ident = {.boot = peer->boot, .seq = mail.seq};
    if (readable) ident = request->obs.ident;
    if (!readable) count_bad(server, 1);
    refuse(server, peer, readable ? TD_SERVER_REFUSED : TD_SERVER_MALFORMED,
           &ident, code, text);
    td_server_request_recycle(server, request);
}

static td_err read_arrival(td_server_model *server, td_server_request *request)
{
    pthread_mutex_lock(&server->arrival_lock);
    td_err err = decode(server->arrival_decoder, request, NULL);
    if (err == TD_OK) err = check(request->peer, &request->obs, NULL);
    pthread_mutex_unlock(&server->arrival_lock);
    return err == TD_OK ? td_server_health_check(server, NULL) : err;
}

// False: the loop's, to wake a peer that is dormant or refuse what is stale.
static bool take_arrival(td_server_request *request, td_server_run **ret_runs)
{
    td_server_peer *peer = request->peer;
    td_server_model *server = peer->server;
    td_server_device *device = server->device;
    pthread_mutex_lock(&device->lock);
    bool taken = true;
    *ret_runs = NULL;
    if (peer->gone) {
        end_locked(peer, TD_SERVER_DEPARTED, 0);
        td_server_request_recycle_locked(server, request);
    } else if (peer->dormant ||
               td_server_core_fresh(server->core, &request->obs, NULL) !=
                   TD_OK) {
        taken = false;
    } else {
        offer_locked(request);
        *ret_runs = td_server_run_form_locked(device);
    }
    pthread_mutex_unlock(&device->lock);
    return taken;
}

bool td_server_arrive(td_server_peer *peer, td_net_msg *msg, int64_t arrived_ns)
{
    td_server_model *server = peer->server;
    td_server_run *runs;
    td_server_request *request = td_server_request_new(server);
    if (!request) return false;
    request->msg = msg;
    request->peer = peer;
    request->arrived_ns = arrived_ns;
    if (read_arrival(server, request) != TD_OK || request->obs.has_again ||
        !take_arrival(request, &runs)) {
        request->msg = NULL; // stays the caller's
        td_server_request_recycle(server, request);
        return false;
    }
    td_server_run_start(runs);
    return true;
}
