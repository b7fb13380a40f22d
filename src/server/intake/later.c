// SPDX-License-Identifier: Apache-2.0
// What the transport's callbacks left in the clients' inboxes: the loop's way
// from the network to the device.
//
// The loop may take its time, block in the network and look for what is kept,
// so here come observations that are large, that ask for an answer again, that
// bring a silent client back, or that do not fit. The way down this file is
// read_inbox -> take_later -> read_later -> offer_later, and ends in the same
// wait as that of intake.c. What goes no further is counted under a name,
// logged now and then, and its robot is notified of the reason.
//
// Resets come here too: they let go of what waits and what is kept for an
// episode that is over.
//
// Locks: an inbox's, for a copy; then the device's, for a moment at each step,
// and with nothing held while decoding or putting.
#include "base/log.h"
#include "server/core/answer.h"
#include "server/intake/internal.h"
#include "server/report/telemetry.h"

// Of this kind, from this client.
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
    td_server_intake_end_locked(intake, client, outcome, ident->seq);
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
    TD_TRY(td_server_intake_decode(intake->loop_decoder, request, info));
    *ret_outcome = TD_SERVER_REFUSED;
    *ret_ident = request->obs.ident;
    TD_TRY(td_server_intake_check(intake, request, info));
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
           ident->seq < present.seq && !request->client->every;
}

// Into the core. Returns the kept chunk if it asks for that.
static td_server_request *offer_later_locked(td_server_intake *intake,
                                             td_server_request *request)
{
    if (was_overtaken_locked(request)) {
        td_server_intake_end_locked(intake, request->client,
                                    TD_SERVER_SUPERSEDED,
                                    request->obs.ident.seq);
        td_server_pool_return_locked(intake->pool, request);
        return NULL;
    }
    if (request->obs.has_again) return find_again_locked(intake, request);
    td_server_intake_wait_locked(intake, request);
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
    return td_server_intake_check_client(client, ret_reset->client, info);
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
        td_server_intake_end_locked(intake, client, outcome, 0);
    for (uint32_t i = 0; i < mail->skipped_count; i++)
        td_server_intake_end_locked(intake, client, outcome, mail->skipped[i]);
    for (uint64_t i = 0; i < mail->skipped_unnamed; i++)
        td_server_intake_end_locked(intake, client, TD_SERVER_MALFORMED, 0);
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
        td_server_intake_request(intake, client, mail->msg, mail->arrived_ns);
    if (request) return request;
    td_net_msg_free(mail->msg);
    td_server_telemetry_dropped(intake->ctx);
    return NULL;
}

static void read_mail(td_server_intake *intake, td_server_client *client)
{
    td_server_mail mail = td_server_inbox_take(&client->topics->inbox);
    td_server_request *request = mail_request(intake, client, &mail);
    if (mail.reset) take_reset(intake, client, mail.reset);
    if (mail.skipped_count + mail.skipped_unnamed > 0)
        count_skipped(intake, client, &mail, TD_SERVER_SUPERSEDED);
    if (request) take_later(intake, request, mail.has_seq ? mail.seq : 0);
}

void td_server_intake_read_inbox(td_server_intake *intake,
                                 td_server_client *client)
{
    do
        read_mail(intake, client);
    while (client->every && td_server_inbox_has_any(&client->topics->inbox));
}

void td_server_intake_refuse_inbox(td_server_intake *intake,
                                   td_server_client *client, td_err code,
                                   const char *text)
{
    td_server_mail mail = td_server_inbox_take(&client->topics->inbox);
    td_server_request *request = mail_request(intake, client, &mail);
    if (mail.reset) td_server_intake_drop_reset(intake->ctx, mail.reset);
    count_skipped(intake, client, &mail, TD_SERVER_REFUSED);
    if (!request) return;
    bool readable =
        td_server_intake_decode(intake->loop_decoder, request, NULL) == TD_OK;
    td_wire_ident ident = {.boot = client->boot, .seq = mail.seq};
    if (readable) ident = request->obs.ident;
    if (!readable) count_bad(intake, 1);
    refuse(intake, client, readable ? TD_SERVER_REFUSED : TD_SERVER_MALFORMED,
           &ident, code, text);
    td_server_pool_return(intake->pool, request);
}
