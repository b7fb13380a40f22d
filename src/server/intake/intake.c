// SPDX-License-Identifier: Apache-2.0
// From the network to the device.
//
// An observation arrives on a thread of the transport (Zenoh's), in on_obs().
// Here, and nowhere else, is decided what happens on that thread:
//
//   It is decoded and checked at once, waits in the core, and the batch that it
//   completes is handed to its engine right there, which saves a hand-over.
//   That takes microseconds and never blocks.
//
//   It is left in the client's inbox, for the loop, when it is large and in
//   pieces (joining takes long, and other robots would wait for it), when it
//   does not fit (a callback must not put the refusal), when it asks for an
//   answer `again`, and when its client is silent and must be brought back.
//
// So the way down this file is the way of an observation: on_obs -> take_now ->
// read_now -> wait_locked, or on_obs -> inbox -> read_inbox -> take_later ->
// read_later -> wait_locked. Both end in wait_locked(), which gives the request
// to the core; run.c has it from there.
//
// Locks: none of its own. The decoder that lies ready is the transport's
// threads': whoever swaps it out has it, and one that comes meanwhile makes
// another. The device's lock guards the core, the clients and the pool, and is
// taken once for an observation that is taken at once. An inbox's lock is held
// for a copy, with no other.
//
// The intake has no thread. It ends when all clients are closed: their
// callbacks have returned by then.
#include "server/intake/intake.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/slice.h"
#include "server/core/align.h"
#include "server/core/answer.h"
#include "server/dispatch/run.h"
#include "server/report/telemetry.h"
#include "wire/msgpack/text.h"

#include <stdatomic.h>
#include <stdlib.h>

// Of more in pieces, which may be a tensor that has to be joined, the loop
// takes care.
#define JOIN_BYTES ((size_t)4 << 20)

struct td_server_intake {
    const td_server_context *ctx;
    td_server_device *device;
    td_server_pool *pool;
    td_server_notify *notify;
    const td_server_health *health;
    _Atomic(td_wire_decoder *) decoder; // the transport's threads'; NULL: out
    td_wire_decoder *loop_decoder;      // the loop's
    int64_t silence_ns; // when the loop looks; guarded by the device's lock
};

td_err td_server_intake_new(const td_server_context *ctx,
                            td_server_device *device, td_server_pool *pool,
                            td_server_notify *notify,
                            const td_server_health *health,
                            td_server_intake **ret_intake)
{
    td_server_intake *intake = calloc(1, sizeof *intake);
    if (!intake) return TD_ERR_NOMEM;
    intake->ctx = ctx;
    intake->device = device;
    intake->pool = pool;
    intake->notify = notify;
    intake->health = health;
    td_wire_decoder *decoder = NULL;
    td_err err = td_wire_decoder_new(&decoder);
    if (err == TD_OK) err = td_wire_decoder_new(&intake->loop_decoder);
    atomic_init(&intake->decoder, decoder);
    if (err != TD_OK) {
        td_server_intake_free(intake);
        return err;
    }
    *ret_intake = intake;
    return TD_OK;
}

void td_server_intake_free(td_server_intake *intake)
{
    td_wire_decoder_free(atomic_load(&intake->decoder));
    td_wire_decoder_free(intake->loop_decoder);
    free(intake);
}

void td_server_intake_set_silence_locked(td_server_intake *intake,
                                         int64_t silence_ns)
{
    intake->silence_ns = silence_ns;
}

static void take_now_or_leave(td_server_client *client, td_net_msg *msg,
                              const td_net_sample *sample, int64_t arrived_ns);

// Transport's thread.
static void on_obs(void *user, const td_net_sample *sample)
{
    td_server_client *client = user;
    int64_t arrived_ns = td_clock_monotonic_ns();
    td_net_msg *msg = NULL;
    if (td_net_keep(sample, &msg) == TD_OK)
        take_now_or_leave(client, msg, sample, arrived_ns);
    else
        td_server_telemetry_dropped(client->topics->ctx);
}

static void drop_reset(const td_server_context *ctx, td_net_msg *msg)
{
    td_server_telemetry_count(ctx, TD_SERVER_COUNT_RESETS_UNREAD);
    td_net_msg_free(msg);
}

// Transport's thread.
static void on_reset(void *user, const td_net_sample *sample)
{
    td_server_client *client = user;
    const td_server_context *ctx = client->topics->ctx;
    td_net_msg *msg = NULL;
    if (td_net_keep(sample, &msg) != TD_OK) {
        td_server_telemetry_dropped(ctx);
        return;
    }
    td_net_msg *unread = td_server_inbox_put_reset(&client->topics->inbox, msg);
    if (unread) drop_reset(ctx, unread);
    td_event_signal(ctx->wake);
}

td_err td_server_intake_open_client(td_server_intake *intake,
                                    td_server_client *client, td_errinfo *info)
{
    const td_server_topics_calls calls = {
        .on_obs = on_obs, .on_reset = on_reset, .intake = intake};
    return td_server_topics_open(intake->ctx, client, &calls, info);
}

static td_server_request *new_request(td_server_intake *intake,
                                      td_server_client *client, td_net_msg *msg,
                                      int64_t arrived_ns)
{
    td_server_request *request = td_server_pool_take(intake->pool);
    if (!request) return NULL;
    request->client = client;
    request->msg = msg;
    request->arrived_ns = arrived_ns;
    return request;
}

static td_err decode(td_wire_decoder *decoder, td_server_request *request,
                     td_errinfo *info)
{
    const td_slice *pieces;
    size_t count;
    TD_TRY(td_net_msg_pieces(request->msg, &pieces, &count));
    request->size = td_slice_total(pieces, count);
    return td_wire_obs_decode_pieces(decoder, &request->outline, pieces, count,
                                     &request->obs, info);
}

static td_err check_client(const td_server_client *client, td_wire_text id,
                           td_errinfo *info)
{
    if (td_wire_text_is(id, client->id)) return TD_OK;
    return td_fail(info, TD_ERR_MISMATCH,
                   "client_uuid: is \"%.*s\" on the key of \"%s\"",
                   (int)id.size, id.data, client->id);
}

static td_err check(const td_server_intake *intake,
                    const td_server_request *request, td_errinfo *info)
{
    const td_server_core *core = intake->ctx->core;
    const td_wire_obs *obs = &request->obs;
    TD_TRY(check_client(request->client, obs->client, info));
    TD_TRY(td_server_core_fits(core, obs, info));
    return td_server_core_fits_pictures(core, obs, info);
}

static td_err read_now(td_server_intake *intake, td_server_request *request)
{
    td_wire_decoder *decoder = atomic_exchange(&intake->decoder, NULL);
    if (!decoder) TD_TRY(td_wire_decoder_new(&decoder));
    td_err err = decode(decoder, request, NULL);
    td_wire_decoder_free(atomic_exchange(&intake->decoder, decoder));
    TD_TRY(err);
    TD_TRY(check(intake, request, NULL));
    return td_server_health_check(intake->health, NULL);
}

// Counts one that goes no further. The number of a client that has no place in
// the core may be somebody else's by now.
static void end_locked(const td_server_intake *intake, td_server_client *client,
                       td_server_outcome outcome, uint64_t seq)
{
    if (client->presence == TD_SERVER_ATTACHED)
        td_server_core_ended(intake->ctx->core, client, outcome, seq);
    else
        td_server_core_stray(intake->ctx->core, outcome);
}

static void measure_locked(const td_server_intake *intake,
                           const td_server_request *request)
{
    td_server_stats *stats = intake->ctx->stats;
    uint32_t number = request->client->number;
    td_server_align_ages ages;
    td_server_align_ages_of(&request->obs, &ages);
    td_server_stats_record(stats, TD_SERVER_SPREAD_PAYLOAD, number,
                           request->arrived_ns, (int64_t)request->size);
    if (ages.count > 0)
        td_server_stats_record(stats, TD_SERVER_SPREAD_STALENESS, number,
                               request->arrived_ns, ages.oldest_us);
}

// Into the core, where it waits, and which may hand older ones back. What the
// core does not take is given back, or its robot is notified.
static void wait_locked(td_server_intake *intake, td_server_request *request)
{
    static const char full[] =
        "too many kinds of batches wait: try again, or send what others send";
    const td_server_context *ctx = intake->ctx;
    td_server_core_dropped dropped;
    measure_locked(intake, request);
    td_server_outcome outcome = td_server_core_observe(
        ctx->core, request->arrived_ns, request, &dropped);
    td_server_pool_return_dropped_locked(intake->pool, &dropped);
    if (outcome == TD_SERVER_REFUSED) {
        td_server_stats_count(ctx->stats, TD_SERVER_COUNT_QUEUE_FULL_DROPS,
                              request->client->number, 1);
        td_server_notify_add_locked(intake->notify, request, TD_ERR_FULL, full);
    } else if (outcome != TD_SERVER_WAITING) {
        td_server_pool_return_locked(intake->pool, request);
    }
    if (td_server_core_wake_ns(ctx->core) < intake->silence_ns)
        td_event_signal(ctx->wake);
}

// False: the loop's, to bring a silent client back or refuse what is stale.
static bool offer_now(td_server_intake *intake, td_server_request *request,
                      td_server_run **ret_runs)
{
    const td_server_context *ctx = intake->ctx;
    td_server_client *client = request->client;
    bool taken = true;
    *ret_runs = NULL;
    pthread_mutex_lock(ctx->lock);
    if (client->presence == TD_SERVER_LEFT) {
        end_locked(intake, client, TD_SERVER_DEPARTED, 0);
        td_server_pool_return_locked(intake->pool, request);
    } else if (client->presence == TD_SERVER_SILENT ||
               td_server_core_fresh(ctx->core, &request->obs, NULL) != TD_OK) {
        taken = false;
    } else {
        wait_locked(intake, request);
        *ret_runs = td_server_run_form_locked(intake->device);
    }
    pthread_mutex_unlock(ctx->lock);
    return taken;
}

// A good observation, all the way to the engine, and consumes it. False: it is
// not one, and stays the caller's.
static bool take_now(td_server_intake *intake, td_server_client *client,
                     td_net_msg *msg, int64_t arrived_ns)
{
    td_server_run *runs;
    td_server_request *request = new_request(intake, client, msg, arrived_ns);
    if (!request) return false;
    if (read_now(intake, request) != TD_OK || request->obs.has_again ||
        !offer_now(intake, request, &runs)) {
        request->msg = NULL;
        td_server_pool_return(intake->pool, request);
        return false;
    }
    td_server_run_start(runs);
    return true;
}

static void take_now_or_leave(td_server_client *client, td_net_msg *msg,
                              const td_net_sample *sample, int64_t arrived_ns)
{
    td_server_topics *topics = client->topics;
    bool quick = sample->whole || sample->size <= JOIN_BYTES;
    if (quick && take_now(topics->intake, client, msg, arrived_ns)) return;
    td_server_inbox_put(&topics->inbox, msg, sample->head, arrived_ns);
    td_event_signal(topics->ctx->wake);
}

// From here on: the loop's thread. Of this kind, from this client.
static void complain(const td_server_client *client, uint64_t count,
                     const char *what, const char *text)
{
    if (!td_log_is_due(count)) return;
    td_log_text(TD_LOG_WARN, "server: %s: %s: %s (%llu so far)", client->id,
                what, text, (unsigned long long)count);
}

// Ends an observation that goes no further: counted, logged, the robot
// notified.
static void refuse(td_server_intake *intake, td_server_client *client,
                   td_server_outcome outcome, const td_wire_ident *ident,
                   td_err code, const char *text)
{
    td_wire_action action;
    td_server_answer_error(intake->ctx->id, ident, code, text, &action);
    pthread_mutex_lock(intake->ctx->lock);
    end_locked(intake, client, outcome, ident->seq);
    pthread_mutex_unlock(intake->ctx->lock);
    complain(client, ++client->topics->refused[outcome],
             td_server_outcome_name(outcome), text);
    td_server_notify_put(intake->notify, client, &action);
}

// Bad in themselves: not those for which there was no room, or nobody there.
static void count_bad(const td_server_intake *intake, uint64_t count)
{
    td_server_stats_count(intake->ctx->stats,
                          TD_SERVER_COUNT_OBSERVATION_ERRORS, TD_SERVER_NOBODY,
                          count);
}

static td_err check_fresh(const td_server_intake *intake,
                          const td_wire_obs *obs, td_errinfo *info)
{
    pthread_mutex_lock(intake->ctx->lock);
    td_err err = td_server_core_fresh(intake->ctx->core, obs, info);
    pthread_mutex_unlock(intake->ctx->lock);
    return err;
}

// Whose it must be when nothing but its seq can be read.
static td_wire_ident present_ident(const td_server_intake *intake,
                                   const td_server_client *client, uint64_t seq)
{
    pthread_mutex_lock(intake->ctx->lock);
    td_wire_ident ident = td_server_core_present(client);
    pthread_mutex_unlock(intake->ctx->lock);
    ident.seq = seq;
    return ident;
}

// Decoded, checked, and the engine is there to run it.
static td_err read_later(td_server_intake *intake, td_server_request *request,
                         uint64_t seq, td_wire_ident *ret_ident,
                         td_server_outcome *ret_outcome, td_errinfo *info)
{
    *ret_outcome = TD_SERVER_MALFORMED;
    *ret_ident = present_ident(intake, request->client, seq);
    TD_TRY(decode(intake->loop_decoder, request, info));
    *ret_outcome = TD_SERVER_REFUSED;
    *ret_ident = request->obs.ident;
    TD_TRY(check(intake, request, info));
    *ret_outcome = TD_SERVER_STALE;
    TD_TRY(check_fresh(intake, &request->obs, info));
    *ret_outcome = TD_SERVER_UNREADY;
    return td_server_health_check(intake->health, info);
}

// The kept chunk once more.
static void send_again(td_server_intake *intake, td_server_request *kept)
{
    const td_server_context *ctx = intake->ctx;
    const td_server_timing timing = {0};
    td_wire_action action;
    td_server_answer(ctx->id, &kept->item, ctx->spec->action_count, &timing,
                     kept->chunk_id, &action);
    td_server_notify_put(intake->notify, kept->client, &action);
    pthread_mutex_lock(ctx->lock);
    td_server_pool_keep_locked(intake->pool, kept);
    pthread_mutex_unlock(ctx->lock);
}

// A robot missed an answer: from what is kept for it. Returns the kept chunk if
// that is it.
static td_server_request *find_again_locked(td_server_intake *intake,
                                            td_server_request *request)
{
    td_server_core_dropped dropped;
    td_server_again again = td_server_core_again(
        intake->ctx->core, request->arrived_ns, request, &dropped);
    td_server_pool_return_dropped_locked(intake->pool, &dropped);
    if (again.found == TD_SERVER_FOUND_PREFIX) return NULL;
    if (again.outcome == TD_SERVER_REFUSED)
        td_server_notify_add_locked(intake->notify, request, TD_ERR_NOTFOUND,
                                    "again: nothing of that seq is kept");
    else
        td_server_pool_return_locked(intake->pool, request);
    return again.chunk;
}

// A newer one took the short way, past the inbox.
static bool was_overtaken_locked(const td_server_request *request)
{
    const td_wire_ident *ident = &request->obs.ident;
    td_wire_ident present = td_server_core_present(request->client);
    return ident->boot == present.boot && ident->episode == present.episode &&
           ident->seq < present.seq;
}

// Into the core. Returns the kept chunk if it asks for that.
static td_server_request *offer_later_locked(td_server_intake *intake,
                                             td_server_request *request)
{
    if (was_overtaken_locked(request)) {
        end_locked(intake, request->client, TD_SERVER_SUPERSEDED,
                   request->obs.ident.seq);
        td_server_pool_return_locked(intake->pool, request);
        return NULL;
    }
    if (request->obs.has_again) return find_again_locked(intake, request);
    wait_locked(intake, request);
    return NULL;
}

static void take_later(td_server_intake *intake, td_server_request *request,
                       uint64_t seq)
{
    td_errinfo info = {.text = "out of memory"};
    td_wire_ident ident;
    td_server_outcome outcome;
    td_err err = read_later(intake, request, seq, &ident, &outcome, &info);
    if (err != TD_OK) {
        if (outcome != TD_SERVER_UNREADY) count_bad(intake, 1);
        refuse(intake, request->client, outcome, &ident, err, info.text);
        td_server_pool_return(intake->pool, request);
        return;
    }
    pthread_mutex_lock(intake->ctx->lock);
    td_server_request *kept = offer_later_locked(intake, request);
    pthread_mutex_unlock(intake->ctx->lock);
    if (kept) send_again(intake, kept);
}

static td_err read_reset(const td_server_intake *intake,
                         const td_server_client *client, td_net_msg *msg,
                         td_wire_reset *ret_reset, td_errinfo *info)
{
    td_slice bytes;
    TD_TRY(td_net_msg_bytes(msg, &bytes));
    TD_TRY(td_wire_reset_decode(intake->loop_decoder, bytes.data, bytes.size,
                                ret_reset, info));
    return check_client(client, ret_reset->client, info);
}

static void take_reset(td_server_intake *intake, td_server_client *client,
                       td_net_msg *msg)
{
    const td_server_context *ctx = intake->ctx;
    td_wire_reset reset;
    td_errinfo info = {.text = "out of memory"};
    if (read_reset(intake, client, msg, &reset, &info) == TD_OK) {
        td_server_core_dropped dropped;
        pthread_mutex_lock(ctx->lock);
        td_server_core_reset(ctx->core, client, &reset, &dropped);
        td_server_pool_return_dropped_locked(intake->pool, &dropped);
        pthread_mutex_unlock(ctx->lock);
    } else {
        td_server_telemetry_count(ctx, TD_SERVER_COUNT_BAD_RESETS);
        complain(client, ++client->topics->bad_resets, "reset", info.text);
    }
    td_net_msg_free(msg);
}

// Those that a newer one displaced before the loop looked, as `outcome`.
static void count_skipped(const td_server_intake *intake,
                          td_server_client *client, const td_server_mail *mail,
                          td_server_outcome outcome)
{
    pthread_mutex_lock(intake->ctx->lock);
    // First, so that it is the named ones that are remembered.
    for (uint64_t i = 0; i < mail->skipped_unlisted; i++)
        end_locked(intake, client, outcome, 0);
    for (uint32_t i = 0; i < mail->skipped_count; i++)
        end_locked(intake, client, outcome, mail->skipped[i]);
    for (uint64_t i = 0; i < mail->skipped_unnamed; i++)
        end_locked(intake, client, TD_SERVER_MALFORMED, 0);
    pthread_mutex_unlock(intake->ctx->lock);
    count_bad(intake, mail->skipped_unnamed);
}

// The observation of the mail as a request; NULL: none.
static td_server_request *mail_request(td_server_intake *intake,
                                       td_server_client *client,
                                       const td_server_mail *mail)
{
    if (!mail->msg) return NULL;
    td_server_request *request =
        new_request(intake, client, mail->msg, mail->arrived_ns);
    if (request) return request;
    td_net_msg_free(mail->msg);
    td_server_telemetry_dropped(intake->ctx);
    return NULL;
}

void td_server_intake_read_inbox(td_server_intake *intake,
                                 td_server_client *client)
{
    td_server_mail mail = td_server_inbox_take(&client->topics->inbox);
    td_server_request *request = mail_request(intake, client, &mail);
    if (mail.reset) take_reset(intake, client, mail.reset);
    if (mail.skipped_count + mail.skipped_unnamed > 0)
        count_skipped(intake, client, &mail, TD_SERVER_SUPERSEDED);
    if (request) take_later(intake, request, mail.has_seq ? mail.seq : 0);
}

void td_server_intake_refuse_inbox(td_server_intake *intake,
                                   td_server_client *client, td_err code,
                                   const char *text)
{
    td_server_mail mail = td_server_inbox_take(&client->topics->inbox);
    td_server_request *request = mail_request(intake, client, &mail);
    if (mail.reset) drop_reset(intake->ctx, mail.reset);
    count_skipped(intake, client, &mail, TD_SERVER_REFUSED);
    if (!request) return;
    bool readable = decode(intake->loop_decoder, request, NULL) == TD_OK;
    td_wire_ident ident = {.boot = client->boot, .seq = mail.seq};
    if (readable) ident = request->obs.ident;
    if (!readable) count_bad(intake, 1);
    refuse(intake, client, readable ? TD_SERVER_REFUSED : TD_SERVER_MALFORMED,
           &ident, code, text);
    td_server_pool_return(intake->pool, request);
}
