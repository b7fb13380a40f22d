// SPDX-License-Identifier: Apache-2.0
// The thread of an engine that can only be called and waited for.
//
// submit() puts a batch into a small ring and returns; the thread takes one
// after the other, calls run() and then `done`. A batch counts as in flight
// until just before its `done`, so that the next can be submitted inside it.
//
// The lock guards the ring and is never held over run() or `done`.
//
// Stop: td_engine_blocking_free() sets `stopping`, after which nothing more is
// taken. Drain: the thread runs what it had taken and calls each `done`. Free:
// the thread is joined, then everything goes.
#include "engine/blocking.h"

#include "base/clock.h"
#include "base/sync/thread.h"

#include <pthread.h>
#include <stdlib.h>

typedef struct entry {
    td_engine_job job;
    td_engine_done done;
    void *user;
} entry;

struct td_engine_blocking {
    td_engine_blocking_config config;
    td_thread *thread;
    pthread_mutex_t lock; // guards everything below; never held over a run
    pthread_cond_t wake;
    entry entries[TD_ENGINE_BLOCKING_INFLIGHT]; // a ring
    uint32_t first, waiting;
    uint32_t inflight; // waiting, or running until just before `done`
    bool stopping;
};

// False when there is nothing left and the thread is to stop.
static bool take(td_engine_blocking *blocking, entry *ret_entry)
{
    pthread_mutex_lock(&blocking->lock);
    while (blocking->waiting == 0 && !blocking->stopping)
        pthread_cond_wait(&blocking->wake, &blocking->lock);
    bool any = blocking->waiting > 0;
    if (any) {
        *ret_entry = blocking->entries[blocking->first];
        blocking->first = (blocking->first + 1) % TD_ENGINE_BLOCKING_INFLIGHT;
        blocking->waiting--;
    }
    pthread_mutex_unlock(&blocking->lock);
    return any;
}

static void run_entry(td_engine_blocking *blocking, const entry *taken)
{
    td_engine_batch *batch = taken->job.batch;
    int64_t start_ns = td_clock_monotonic_ns();
    blocking->config.run(blocking->config.model, &taken->job);
    batch->service_ns = td_clock_monotonic_ns() - start_ns;

    pthread_mutex_lock(&blocking->lock);
    blocking->inflight--; // `done` may submit the next
    pthread_mutex_unlock(&blocking->lock);
    taken->done(taken->user, batch);
}

static void run_thread(void *user)
{
    td_engine_blocking *blocking = user;
    entry taken;
    while (take(blocking, &taken))
        run_entry(blocking, &taken);
}

td_err td_engine_blocking_new(const td_engine_blocking_config *config,
                              td_engine_blocking **ret_blocking,
                              td_errinfo *info)
{
    TD_AUTO(td_engine_blocking) *blocking = calloc(1, sizeof *blocking);
    if (!blocking) return TD_ERR_NOMEM;
    blocking->config = *config;
    if (config->most_inflight == 0) blocking->config.most_inflight = 1;
    pthread_mutex_init(&blocking->lock, NULL);
    pthread_cond_init(&blocking->wake, NULL);

    td_thread_config thread = {.name = config->thread_name, .cpu = -1};
    TD_TRY(td_thread_start(&thread, run_thread, blocking, &blocking->thread,
                           info));
    *ret_blocking = TD_TAKE(blocking);
    return TD_OK;
}

void td_engine_blocking_free(td_engine_blocking *blocking)
{
    pthread_mutex_lock(&blocking->lock);
    blocking->stopping = true;
    pthread_cond_signal(&blocking->wake);
    pthread_mutex_unlock(&blocking->lock);

    if (blocking->thread) td_thread_join(blocking->thread);
    pthread_cond_destroy(&blocking->wake);
    pthread_mutex_destroy(&blocking->lock);
    free(blocking);
}

static td_err put_locked(td_engine_blocking *blocking, const entry *given)
{
    if (blocking->stopping) return TD_ERR_CLOSED;
    if (blocking->inflight == blocking->config.most_inflight)
        return TD_ERR_BUSY;
    uint32_t end = blocking->first + blocking->waiting++;
    blocking->entries[end % TD_ENGINE_BLOCKING_INFLIGHT] = *given;
    blocking->inflight++;
    return TD_OK;
}

td_err td_engine_blocking_submit(td_engine_blocking *blocking,
                                 td_engine_part part, td_engine_batch *batch,
                                 td_engine_done done, void *user)
{
    if (batch->count == 0 || batch->count > blocking->config.max_batch)
        return TD_ERR_INVALID;
    entry given = {{part, batch, td_clock_monotonic_ns()}, done, user};
    pthread_mutex_lock(&blocking->lock);
    td_err err = put_locked(blocking, &given);
    pthread_mutex_unlock(&blocking->lock);
    if (err == TD_OK) pthread_cond_signal(&blocking->wake); // finds it free
    return err;
}
