// SPDX-License-Identifier: Apache-2.0
// What of a batch has failed, and what is tried again. Members leave the batch
// here under the device's lock; what is left of it is run.c's to answer.
#include "base/clock.h"
#include "base/log.h"
#include "server/dispatch/internal.h"
#include "server/report/measure.h"
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
    td_server_measure_wait_locked(ctx->stats, request, now_ns);
    td_server_stats_count(ctx->stats, TD_SERVER_COUNT_DEVICE_US, number,
                          (uint64_t)(device_ns / TD_NS_PER_US));
    if (run->alone && status != TD_ERR_CLOSED) report_offender(runs, request);
    if (status == TD_ERR_DENIED) report_quarantine(runs, request);
    if (td_server_core_done(ctx->core, now_ns, request, TD_SERVER_FAILED,
                            device_ns) == TD_SERVER_WAITING) {
        count_retry(runs, request);
        return;
    }
    td_server_stats_error(ctx->stats, number, status);
    td_server_notify_add_locked(runs->notify, request, status, NULL);
}

static uint32_t count_good(const td_engine_batch *batch)
{
    uint32_t good = 0;
    for (uint32_t i = 0; i < batch->count; i++)
        good += batch->items[i]->status == TD_OK;
    return good;
}

void td_server_retry_fail(td_server_run *run)
{
    td_engine_batch *batch = &run->batch;
    uint32_t good = 0;
    if (count_good(batch) == batch->count) return;
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

// One that only asked for the answer once more has nothing but the prefix, and
// fails.
void td_server_retry_lost(td_server_run *run)
{
    const td_server_context *ctx = run->runs->ctx;
    td_engine_batch *batch = &run->batch;
    uint32_t left = 0;
    if (run->part != TD_ENGINE_DECODE || count_good(batch) == batch->count)
        return;
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

// Not where it named the offenders itself, nor where it is not there.
static bool failed_together(const td_server_run *run)
{
    return run->batch.count > 1 && count_good(&run->batch) == 0 &&
           td_engine_health_of(run->runs->ctx->engine) == TD_ENGINE_READY;
}

bool td_server_retry_split(td_server_run *run)
{
    const td_server_context *ctx = run->runs->ctx;
    if (!failed_together(run)) return false;
    td_log_text(TD_LOG_WARN,
                "server: %s: a batch of %u failed: each runs once more alone",
                ctx->id, run->batch.count);
    pthread_mutex_lock(ctx->lock);
    for (uint32_t i = 0; i < run->batch.count; i++) {
        td_server_core_rerun(ctx->core);
        run_alone_locked(run, td_server_run_request(run->batch.items[i]));
    }
    pthread_mutex_unlock(ctx->lock);
    return true;
}
