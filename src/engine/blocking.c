// SPDX-License-Identifier: Apache-2.0
#include "engine/blocking.h"

#include "base/clock.h"
#include "base/thread.h"

#include <pthread.h>
#include <stdlib.h>

// Stop: td_engine_blocking_free() sets `stopping`, after which nothing more is
// taken. Drain: the thread runs what it had taken and calls its `done`. Free:
// the thread is joined, then everything goes.

typedef struct job {
    td_engine_part part;
    td_engine_batch *batch; // borrowed until `done`; NULL: none
    td_engine_done done;
    void *user;
} job;

struct td_engine_blocking {
    td_engine_blocking_config config;
    td_thread *thread;
    pthread_mutex_t lock; // guards everything below; never held over a run
    pthread_cond_t wake;
    job next;
    bool running; // from submit until just before `done`
    bool stopping;
};

// False when there is nothing left and the thread is to stop.
static bool take(td_engine_blocking *blocking, job *ret_job)
{
    pthread_mutex_lock(&blocking->lock);
    while (!blocking->next.batch && !blocking->stopping)
        pthread_cond_wait(&blocking->wake, &blocking->lock);
    *ret_job = blocking->next;
    blocking->next.batch = NULL;
    pthread_mutex_unlock(&blocking->lock);
    return ret_job->batch != NULL;
}

static void run_job(td_engine_blocking *blocking, const job *taken)
{
    int64_t start_ns = td_clock_now_ns(&td_clock_monotonic);
    blocking->config.run(blocking->config.model, taken->part, taken->batch);
    taken->batch->service_ns = td_clock_now_ns(&td_clock_monotonic) - start_ns;

    pthread_mutex_lock(&blocking->lock);
    blocking->running = false; // `done` may submit the next
    pthread_mutex_unlock(&blocking->lock);
    taken->done(taken->user, taken->batch);
}

static void run_thread(void *user)
{
    td_engine_blocking *blocking = user;
    job taken;
    while (take(blocking, &taken))
        run_job(blocking, &taken);
}

td_err td_engine_blocking_new(const td_engine_blocking_config *config,
                              td_engine_blocking **ret_blocking,
                              td_errinfo *info)
{
    TD_AUTO(td_engine_blocking) *blocking = calloc(1, sizeof *blocking);
    if (!blocking) return TD_ERR_NOMEM;
    blocking->config = *config;
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

static td_err try_put(td_engine_blocking *blocking, const job *given)
{
    if (blocking->stopping) return TD_ERR_CLOSED;
    if (blocking->running) return TD_ERR_BUSY;
    blocking->next = *given;
    blocking->running = true;
    return TD_OK;
}

td_err td_engine_blocking_submit(td_engine_blocking *blocking,
                                 td_engine_part part, td_engine_batch *batch,
                                 td_engine_done done, void *user)
{
    if (batch->count == 0 || batch->count > blocking->config.max_batch)
        return TD_ERR_INVALID;
    job given = {part, batch, done, user};
    pthread_mutex_lock(&blocking->lock);
    td_err err = try_put(blocking, &given);
    pthread_mutex_unlock(&blocking->lock);
    if (err == TD_OK) pthread_cond_signal(&blocking->wake); // finds it free
    return err;
}
