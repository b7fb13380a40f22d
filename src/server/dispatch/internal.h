// SPDX-License-Identifier: Apache-2.0
#ifndef TD_SERVER_DISPATCH_INTERNAL_H
#define TD_SERVER_DISPATCH_INTERNAL_H

// What device.c, run.c and retry.c share: the device, and what runs on it.

#include "base/clock.h"
#include "engine/blocking.h"
#include "server/core/dispatch.h"
#include "server/dispatch/health.h"
#include "server/dispatch/run.h"
#include "server/dispatch/score.h"

struct td_server_device {
    pthread_mutex_t lock; // guards everything below, and what run.c says
    td_sched_cadence_settings cadence;
    td_server_score scores[2]; // of the policy before, and of this one
    td_server_score *score;    // this one's
    td_server_dispatch *dispatch;
    td_server_runs *models[TD_SCHED_MAX_MODELS]; // by number; NULL: free
    td_server_request_list alone;                // members of failed batches
    td_server_runs *keeper; // the model whose loop keeps time
    int64_t planned_ns;     // when it will look
};

// The runs of one model. Guarded by the device's lock but for what is constant.
struct td_server_runs {
    td_server_context *ctx;
    td_server_device *device;
    td_server_pool *pool;
    td_server_notify *notify;
    td_server_health *health;
    td_server_run *free;
    uint32_t number;   // in the device's dispatch
    uint32_t busy;     // requests that run; with any the model is not freed
    uint64_t chunk_id; // of the newest chunk
    bool added;        // to the device
    bool stopping;     // no further batch is formed
    bool awaited;      // the loop waits for a running request to end
};

// A batch on its way through an engine. Whoever has the pointer owns it: run.c
// while it is formed and ended, the engine between submit and done.
struct td_server_run {
    td_server_runs *runs;
    uint32_t number;  // the dispatch's
    bool alone;       // a member of a batch that failed
    uint32_t members; // at its start; the batch has those that have not failed
    uint32_t moved;   // of those, to run again alone
    uint64_t depth;   // that waited then, with them
    td_engine_part part;
    int64_t started_ns;
    int64_t prefix_ns; // what the first half took
    td_engine_batch batch;
    td_wire_encoder *encoder;
    td_server_run *next; // free, or formed with this one
};

static inline td_server_request *td_server_run_request(td_engine_item *item)
{
    return (td_server_request *)((char *)item -
                                 offsetof(td_server_request, item));
}

// Each member's part of the device's time, of one that failed too: a client
// whose observations fail pays for them.
static inline int64_t td_server_run_part_ns(const td_server_run *run)
{
    return (run->prefix_ns + run->batch.service_ns) / run->members;
}

static inline uint32_t td_server_run_count_good(const td_server_run *run)
{
    uint32_t good = 0;
    for (uint32_t i = 0; i < run->batch.count; i++)
        good += run->batch.items[i]->status == TD_OK;
    return good;
}

// The batch has ended: for how long its member had waited.
static inline void td_server_run_measure_wait_locked(
    const td_server_run *run, const td_server_request *request, int64_t now_ns)
{
    int64_t wait_ns = request->started_ns - request->arrived_ns;
    td_server_stats_record(run->runs->ctx->stats, TD_SERVER_SPREAD_WAIT,
                           request->client->number, now_ns,
                           wait_ns / TD_NS_PER_US);
}

// retry.c. Engine's thread, or that of whoever submits.

// Takes what has failed out of a batch that the engine has done, and ends it or
// lets it run again.
void td_server_retry(td_server_run *run);
// Ends what has failed, and takes it out of the batch.
void td_server_retry_fail(td_server_run *run);

#endif
