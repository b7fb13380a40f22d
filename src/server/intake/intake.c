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
//   It is left in the client's inbox, for the loop (later.c), when it is large
//   and in pieces (joining takes long, and other robots would wait for it),
//   when it does not fit (a callback must not put the refusal), when it asks
//   for an answer `again`, and when its client is silent and must be brought
//   back.
//
// So the way down this file is the way of an observation: on_obs -> take_now ->
// read_now -> wait. The later way ends in the same wait, which gives the
// request to the core; run.c has it from there.
//
// Locks: none of its own. The decoder that lies ready is the transport's
// threads': whoever swaps it out has it, and one that comes meanwhile makes
// another. The device's lock guards the core, the clients and the pool, and is
// taken once for an observation that is taken at once. An inbox's lock is held
// for a copy, with no other.
//
// The intake has no thread. It ends when all clients are closed: their
// callbacks have returned by then.
#include "server/intake/internal.h"

#include "base/clock.h"
#include "base/slice.h"
#include "server/core/fit.h"
#include "server/dispatch/run.h"
#include "server/report/telemetry.h"
#include "wire/msgpack/text.h"

#include <stdatomic.h>
#include <stdlib.h>

// Of more in pieces, which may be a tensor that has to be joined, the loop
// takes care.
#define JOIN_BYTES ((size_t)4 << 20)

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

void td_server_intake_drop_reset(const td_server_context *ctx, td_net_msg *msg)
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
    if (unread) td_server_intake_drop_reset(ctx, unread);
    td_event_signal(ctx->wake);
}

td_err td_server_intake_open_client(td_server_intake *intake,
                                    td_server_client *client, td_errinfo *info)
{
    const td_server_topics_calls calls = {
        .on_obs = on_obs, .on_reset = on_reset, .intake = intake};
    return td_server_topics_open(intake->ctx, client, &calls, info);
}

td_server_request *td_server_intake_request(td_server_intake *intake,
                                            td_server_client *client,
                                            td_net_msg *msg, int64_t arrived_ns)
{
    td_server_request *request = td_server_pool_take(intake->pool);
    if (!request) return NULL;
    request->client = client;
    request->msg = msg;
    request->arrived_ns = arrived_ns;
    return request;
}

td_err td_server_intake_decode(td_wire_decoder *decoder,
                               td_server_request *request, td_errinfo *info)
{
    const td_slice *pieces;
    size_t count;
    TD_TRY(td_net_msg_pieces(request->msg, &pieces, &count));
    request->size = td_slice_total(pieces, count);
    return td_wire_obs_decode_pieces(decoder, &request->outline, pieces, count,
                                     &request->obs, info);
}

td_err td_server_intake_check_client(const td_server_client *client,
                                     td_wire_text id, td_errinfo *info)
{
    if (td_wire_text_is(id, client->id)) return TD_OK;
    return td_fail(info, TD_ERR_MISMATCH,
                   "client_uuid: is \"%.*s\" on the key of \"%s\"",
                   (int)id.size, id.data, client->id);
}

td_err td_server_intake_check(const td_server_intake *intake,
                              const td_server_request *request,
                              td_errinfo *info)
{
    const td_server_core *core = intake->ctx->core;
    const td_wire_obs *obs = &request->obs;
    TD_TRY(td_server_intake_check_client(request->client, obs->client, info));
    TD_TRY(td_server_core_fits(core, obs, info));
    return td_server_core_fits_pictures(core, obs, info);
}

static td_err read_now(td_server_intake *intake, td_server_request *request)
{
    td_wire_decoder *decoder = atomic_exchange(&intake->decoder, NULL);
    if (!decoder) TD_TRY(td_wire_decoder_new(&decoder));
    td_err err = td_server_intake_decode(decoder, request, NULL);
    td_wire_decoder_free(atomic_exchange(&intake->decoder, decoder));
    TD_TRY(err);
    TD_TRY(td_server_intake_check(intake, request, NULL));
    return td_server_health_check(intake->health, NULL);
}

// The number of a client that has no place in the core may be somebody else's
// by now.
void td_server_intake_end_locked(const td_server_intake *intake,
                                 td_server_client *client,
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
    td_server_fit_ages ages;
    td_server_fit_ages_of(&request->obs, &ages);
    td_server_stats_record(stats, TD_SERVER_SPREAD_PAYLOAD, number,
                           request->arrived_ns, (int64_t)request->size);
    if (ages.count > 0)
        td_server_stats_record(stats, TD_SERVER_SPREAD_STALENESS, number,
                               request->arrived_ns, ages.oldest_us);
}

void td_server_intake_wait_locked(td_server_intake *intake,
                                  td_server_request *request)
{
    static const char full[] = "the queue is full (scheduling.queue), or too "
                               "many kinds of batches wait";
    const td_server_context *ctx = intake->ctx;
    td_server_core_dropped dropped;
    measure_locked(intake, request);
    td_server_outcome outcome = td_server_core_observe(
        ctx->core, request->arrived_ns, request, &dropped);
    td_server_pool_return_dropped_locked(intake->pool, &dropped);
    if (dropped.overflowed)
        td_server_run_overflowed_locked(intake->device, dropped.overflowed);
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
        td_server_intake_end_locked(intake, client, TD_SERVER_DEPARTED, 0);
        td_server_pool_return_locked(intake->pool, request);
    } else if (client->presence == TD_SERVER_SILENT ||
               td_server_core_fresh(ctx->core, &request->obs, NULL) != TD_OK) {
        taken = false;
    } else {
        td_server_intake_wait_locked(intake, request);
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
    td_server_request *request =
        td_server_intake_request(intake, client, msg, arrived_ns);
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
    if (!td_server_inbox_put(&topics->inbox, msg, sample->head, arrived_ns))
        td_server_telemetry_dropped(topics->ctx);
    td_event_signal(topics->ctx->wake);
}
