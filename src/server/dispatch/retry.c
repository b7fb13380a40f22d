// SPDX-License-Identifier: Apache-2.0
// A batch of which not everything is good: what has failed, and what is tried
// again.
//
// run.c comes here with a batch that the engine has done, or did not take, and
// answers what is left of it afterwards. A member that failed leaves the batch
// in one of three ways:
//
//   Its prefix was lost between the two halves: it runs once more, whole and
//   alone. One that only asked for its answer again has nothing but that
//   prefix, and fails.
//   All of a batch failed together, which does not say whose fault it was: each
//   runs once more, alone, before anything else does. Not where the engine
//   named the offenders itself, nor where it is not there.
//   It failed for itself: the core says whether it waits to be tried again;
//   else its robot is notified by the loop (client/notify.c).
//
// Those that run alone wait in the device's list and still count as running,
// `moved` of their run, so that their model is not freed.
//
// On the engine's thread, or that of whoever submits; under the device's lock,
// which is taken here, once for each way.
#include "base/clock.h"
#include "base/log.h"
#include "server/dispatch/internal.h"
#include "server/report/telemetry.h"

// What the first half has made goes, unless it was kept before.
static void discard_prefix(const td_server_runs *runs,
                           td_server_request *request)
{
    td_engine *engine = runs->ctx->engine;
    td_engine_prefix *made = request->item.prefix;
    if (made && !request->prefix) engine->ops->drop(engine, made);
    request->item.prefix = NULL;
}

static void count_retry(const td_server_runs *runs,
                        const td_server_request *request)
{
    td_server_stats_count(runs->ctx->stats, TD_SERVER_COUNT_DISPATCH_RETRIES,
                          request->client->number, 1);
}

// Of a batch that failed as a whole this member was the cause.
static void report_offender(const td_server_runs *runs,
                            const td_server_request *request)
{
    td_server_core_offended(runs->ctx->core);
    td_log_text(TD_LOG_WARN,
                "server: %s: seq %llu made a batch fail, and fails alone: "
                "%s: %s",
                request->client->id, (unsigned long long)request->obs.ident.seq,
                td_err_name(request->item.status), request->why.text);
}

static void report_quarantine(const td_server_runs *runs,
                              const td_server_request *request)
{
    td_server_telemetry_event(runs->ctx, TD_SERVER_EVENT_QUARANTINED,
                              request->client->id, "seq %llu: %s",
                              (unsigned long long)request->obs.ident.seq,
                              request->why.text);
}

// The engine has said no, of a batch of one or of this member alone.
static void fail_locked(const td_server_run *run, td_server_request *request)
{
    td_server_runs *runs = run->runs;
    const td_server_context *ctx = runs->ctx;
    uint32_t number = request->client->number;
    td_err status = request->item.status;
    int64_t now_ns = td_clock_monotonic_ns();
    int64_t device_ns = td_server_run_part_ns(run);
    discard_prefix(runs, request);
    td_server_run_measure_wait_locked(run, request, now_ns);
    td_server_stats_count(ctx->stats, TD_SERVER_COUNT_DEVICE_US, number,
                          (uint64_t)(device_ns / TD_NS_PER_US));
    if (run->alone && status != TD_ERR_CLOSED) report_offender(runs, request);
    if (status == TD_ERR_DENIED) report_quarantine(runs, request);
    if (td_server_core_done(ctx->core, now_ns, request, TD_SERVER_FAILED) ==
        TD_SERVER_WAITING) {
        count_retry(runs, request);
        return;
    }
    td_server_stats_error(ctx->stats, number, status);
    td_server_notify_add_locked(runs->notify, request, status, NULL);
}

void td_server_retry_fail(td_server_run *run)
{
    td_engine_batch *batch = &run->batch;
    uint32_t good = 0;
    if (td_server_run_count_good(run) == batch->count) return;
    pthread_mutex_lock(run->runs->ctx->lock);
    for (uint32_t i = 0; i < batch->count; i++) {
        if (batch->items[i]->status == TD_OK)
            batch->items[good++] = batch->items[i];
        else
            fail_locked(run, td_server_run_request(batch->items[i]));
    }
    batch->count = good;
    pthread_mutex_unlock(run->runs->ctx->lock);
}

static void run_alone_locked(td_server_run *run, td_server_request *request)
{
    td_server_runs *runs = run->runs;
    discard_prefix(runs, request);
    count_retry(runs, request);
    request->runs = runs;
    td_server_request_append(&runs->device->alone, request);
    run->moved++;
}

// Lets those whose prefix was lost run again.
static void rerun_lost(td_server_run *run)
{
    const td_server_context *ctx = run->runs->ctx;
    td_engine_batch *batch = &run->batch;
    uint32_t left = 0;
    pthread_mutex_lock(ctx->lock);
    for (uint32_t i = 0; i < batch->count; i++) {
        td_server_request *request = td_server_run_request(batch->items[i]);
        bool lost = request->item.status == TD_ERR_NOTFOUND;
        request->whole = lost && !request->prefix;
        if (lost)
            td_server_core_lost_prefix(ctx->core, request->client,
                                       request->prefix != NULL);
        if (request->whole)
            run_alone_locked(run, request);
        else
            batch->items[left++] = batch->items[i];
    }
    batch->count = left;
    pthread_mutex_unlock(ctx->lock);
}

static bool failed_together(const td_server_run *run)
{
    return run->batch.count > 1 && td_server_run_count_good(run) == 0 &&
           td_engine_health_of(run->runs->ctx->engine) == TD_ENGINE_READY;
}

static void split(td_server_run *run)
{
    const td_server_context *ctx = run->runs->ctx;
    td_log_text(TD_LOG_WARN,
                "server: %s: a batch of %u failed: each runs once more alone",
                ctx->id, run->batch.count);
    pthread_mutex_lock(ctx->lock);
    for (uint32_t i = 0; i < run->batch.count; i++) {
        td_server_core_rerun(ctx->core);
        run_alone_locked(run, td_server_run_request(run->batch.items[i]));
    }
    run->batch.count = 0;
    pthread_mutex_unlock(ctx->lock);
}

void td_server_retry(td_server_run *run)
{
    if (run->part == TD_ENGINE_DECODE) rerun_lost(run);
    if (failed_together(run))
        split(run);
    else
        td_server_retry_fail(run);
}
