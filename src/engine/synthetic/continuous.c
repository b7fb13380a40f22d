// SPDX-License-Identifier: Apache-2.0
// The thread of a synthetic engine that batches continuously.
//
// submit() leaves a batch in the list `came` and wakes the thread. The thread
// lets it join what runs (shared.c says how fast each goes on), sleeps until
// the next start or end or until somebody comes, and calls `done` of what has
// ended. Time is the real clock's; what happens when is shared.c's, which is
// pure.
//
// The lock guards the entries and their lists; it is not held over `done`.
//
// Stop: td_engine_synthetic_continuous_free() sets `stopping`, after which
// nothing more is taken. Drain: the thread plays what it has to the end and
// calls each `done`. Free: the thread is joined, then everything goes.
#include "engine/synthetic/continuous.h"

#include "base/clock.h"
#include "base/sync/event.h"
#include "base/sync/thread.h"

#include <pthread.h>
#include <stdlib.h>

typedef struct entry entry;
struct entry {
    td_engine_job job;
    td_engine_done done;
    void *user;
    entry *next; // of those that are free, or that came
};

struct td_engine_synthetic_continuous {
    td_engine_synthetic_continuous_config config;
    td_thread *thread;
    td_event wake;
    td_engine_synthetic_shared shared; // the thread's own
    pthread_mutex_t lock;              // guards everything below
    entry entries[TD_ENGINE_MAX_BATCH];
    entry *unused;
    entry *came, **came_end; // not yet seen by the thread, in order
    uint32_t members; // of all batches, from submit until just before `done`
    bool stopping;
};

static entry *take_came(td_engine_synthetic_continuous *continuous,
                        bool *ret_last)
{
    pthread_mutex_lock(&continuous->lock);
    entry *came = continuous->came;
    continuous->came = NULL;
    continuous->came_end = &continuous->came;
    *ret_last = continuous->stopping && continuous->members == 0;
    pthread_mutex_unlock(&continuous->lock);
    return came;
}

static void join(td_engine_synthetic_continuous *continuous, entry *given)
{
    const td_engine_synthetic_continuous_config *config = &continuous->config;
    td_engine_synthetic_share share = {
        .user = given,
        .members = given->job.batch->count,
        .start_ns = given->job.submitted_ns + config->prepare_ns,
        .left = config->answer(config->model, &given->job),
    };
    td_engine_synthetic_shared_join(&continuous->shared, &share);
}

static void finish(td_engine_synthetic_continuous *continuous, entry *ended)
{
    entry copy = *ended;
    td_engine_batch *batch = copy.job.batch;
    batch->service_ns = td_clock_monotonic_ns() - copy.job.submitted_ns;
    pthread_mutex_lock(&continuous->lock);
    continuous->members -= batch->count;
    ended->next = continuous->unused;
    continuous->unused = ended;
    pthread_mutex_unlock(&continuous->lock);
    copy.done(copy.user, batch); // may submit the next
}

static void run_thread(void *user)
{
    td_engine_synthetic_continuous *continuous = user;
    td_engine_synthetic_shared *shared = &continuous->shared;
    for (;;) {
        bool last = false;
        entry *came = take_came(continuous, &last);
        if (last) return;
        for (entry *next; came; came = next) {
            next = came->next;
            join(continuous, came);
        }
        int64_t now_ns = td_clock_monotonic_ns();
        entry *ended = td_engine_synthetic_shared_ended(shared, now_ns);
        if (ended)
            finish(continuous, ended);
        else
            td_event_wait_until(&continuous->wake,
                                td_engine_synthetic_shared_next_ns(shared));
    }
}

td_err td_engine_synthetic_continuous_new(
    const td_engine_synthetic_continuous_config *config,
    td_engine_synthetic_continuous **ret_continuous, td_errinfo *info)
{
    TD_AUTO(td_engine_synthetic_continuous) *continuous =
        calloc(1, sizeof *continuous);
    if (!continuous) return TD_ERR_NOMEM;
    continuous->config = *config;
    continuous->came_end = &continuous->came;
    for (uint32_t i = 0; i < config->max_batch; i++) {
        continuous->shared.time_ns[i + 1] = config->time_ns[i + 1];
        continuous->entries[i].next = continuous->unused;
        continuous->unused = &continuous->entries[i];
    }
    td_event_init(&continuous->wake);
    pthread_mutex_init(&continuous->lock, NULL);
    td_thread_config thread = {.name = config->thread_name, .cpu = -1};
    TD_TRY(td_thread_start(&thread, run_thread, continuous, &continuous->thread,
                           info));
    *ret_continuous = TD_TAKE(continuous);
    return TD_OK;
}

void td_engine_synthetic_continuous_free(
    td_engine_synthetic_continuous *continuous)
{
    pthread_mutex_lock(&continuous->lock);
    continuous->stopping = true;
    pthread_mutex_unlock(&continuous->lock);
    td_event_signal(&continuous->wake);
    if (continuous->thread) td_thread_join(continuous->thread);
    pthread_mutex_destroy(&continuous->lock);
    free(continuous);
}

static td_err put_locked(td_engine_synthetic_continuous *continuous,
                         const entry *given)
{
    uint32_t count = given->job.batch->count;
    if (continuous->stopping) return TD_ERR_CLOSED;
    if (continuous->members + count > continuous->config.max_batch)
        return TD_ERR_BUSY;
    entry *taken = continuous->unused;
    continuous->unused = taken->next;
    *taken = *given;
    *continuous->came_end = taken;
    continuous->came_end = &taken->next;
    continuous->members += count;
    return TD_OK;
}

td_err td_engine_synthetic_continuous_submit(
    td_engine_synthetic_continuous *continuous, td_engine_part part,
    td_engine_batch *batch, td_engine_done done, void *user)
{
    if (batch->count == 0 || batch->count > continuous->config.max_batch)
        return TD_ERR_INVALID;
    entry given = {
        .job = {part, batch, td_clock_monotonic_ns()},
        .done = done,
        .user = user,
    };
    pthread_mutex_lock(&continuous->lock);
    td_err err = put_locked(continuous, &given);
    pthread_mutex_unlock(&continuous->lock);
    if (err == TD_OK) td_event_signal(&continuous->wake);
    return err;
}
