// SPDX-License-Identifier: Apache-2.0
// Threads that share the tasks of one operation after another.
//
// A round is the tasks of one operation. The caller of run() and all helpers
// take tasks by counting up `next`; every helper takes part in every round,
// with nothing to do when others were quicker, so that a round has ended when
// all helpers have left it (`inside` is 0), and the next may change what it is
// about.
//
// Rounds follow each other within microseconds, so that a helper looks for a
// while before it sleeps. The lock is only there for the two conditions:
// whoever is about to sleep checks once more with it, and who changes `round`
// or `inside` to what is waited for signals with it.
//
// Free: `stop` is set and a last round begins; helpers see it and return; join.
#include "engine/native/cpu/pool.h"

#include "base/sync/thread.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

// Rounds follow each other within microseconds: looking is cheaper than
// sleeping, for about 50 us.
#define LOOKS 2000

struct td_native_cpu_pool {
    pthread_mutex_t lock; // of the two conditions
    pthread_cond_t begun, ended;
    _Atomic uint32_t round;
    _Atomic uint32_t inside; // helpers that have not left the round
    _Atomic uint32_t next;   // task that nobody has taken
    _Atomic bool stop;
    uint32_t tasks; // those below are of the round
    td_native_cpu_task task;
    void *user;
    uint32_t count;         // helpers
    struct helper *helpers; // [count]
};

typedef struct helper {
    td_native_cpu_pool *pool;
    uint32_t thread;
    td_thread *handle;
} helper;

static inline void look_again(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

static void take_tasks(td_native_cpu_pool *pool, uint32_t thread)
{
    for (;;) {
        uint32_t task = atomic_fetch_add(&pool->next, 1);
        if (task >= pool->tasks) return;
        pool->task(pool->user, task, thread);
    }
}

static void wait_for_round(td_native_cpu_pool *pool, uint32_t seen)
{
    for (int i = 0; i < LOOKS; i++) {
        if (pool->round != seen) return;
        look_again();
    }
    pthread_mutex_lock(&pool->lock);
    while (pool->round == seen)
        pthread_cond_wait(&pool->begun, &pool->lock);
    pthread_mutex_unlock(&pool->lock);
}

static void leave_round(td_native_cpu_pool *pool)
{
    if (atomic_fetch_sub(&pool->inside, 1) > 1) return;
    pthread_mutex_lock(&pool->lock);
    pthread_cond_signal(&pool->ended);
    pthread_mutex_unlock(&pool->lock);
}

static void wait_for_end(td_native_cpu_pool *pool)
{
    for (int i = 0; i < LOOKS; i++) {
        if (pool->inside == 0) return;
        look_again();
    }
    pthread_mutex_lock(&pool->lock);
    while (pool->inside > 0)
        pthread_cond_wait(&pool->ended, &pool->lock);
    pthread_mutex_unlock(&pool->lock);
}

static void begin_round(td_native_cpu_pool *pool)
{
    pool->inside = pool->count;
    pthread_mutex_lock(&pool->lock);
    pool->round++;
    pthread_cond_broadcast(&pool->begun);
    pthread_mutex_unlock(&pool->lock);
}

static void help(void *user)
{
    helper *self = user;
    td_native_cpu_pool *pool = self->pool;
    for (uint32_t seen = 0;; seen++) {
        wait_for_round(pool, seen);
        if (pool->stop) return;
        take_tasks(pool, self->thread);
        leave_round(pool);
    }
}

static td_err start_helpers(td_native_cpu_pool *pool, uint32_t count,
                            td_errinfo *info)
{
    for (uint32_t i = 0; i < count; i++) {
        helper *self = &pool->helpers[i];
        char name[16];
        (void)snprintf(name, sizeof name, "td-native-%u", i + 1);
        const td_thread_config config = {.name = name, .cpu = -1};
        *self = (helper){.pool = pool, .thread = i + 1};
        TD_TRY(td_thread_start(&config, help, self, &self->handle, info));
        pool->count++;
    }
    return TD_OK;
}

td_err td_native_cpu_pool_new(uint32_t threads, td_native_cpu_pool **ret_pool,
                              td_errinfo *info)
{
    if (threads < 1 || threads > TD_NATIVE_CPU_MAX_THREADS)
        return td_fail(info, TD_ERR_INVALID, "threads must be 1 to %d, got %u",
                       TD_NATIVE_CPU_MAX_THREADS, threads);
    TD_AUTO(td_native_cpu_pool) *pool = calloc(1, sizeof *pool);
    if (!pool) return TD_ERR_NOMEM;
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->begun, NULL);
    pthread_cond_init(&pool->ended, NULL);
    pool->helpers = calloc(threads, sizeof *pool->helpers);
    if (!pool->helpers) return TD_ERR_NOMEM;
    TD_TRY(start_helpers(pool, threads - 1, info));
    *ret_pool = TD_TAKE(pool);
    return TD_OK;
}

void td_native_cpu_pool_free(td_native_cpu_pool *pool)
{
    pool->stop = true;
    begin_round(pool);
    for (uint32_t i = 0; i < pool->count; i++)
        td_thread_join(pool->helpers[i].handle);
    pthread_cond_destroy(&pool->ended);
    pthread_cond_destroy(&pool->begun);
    pthread_mutex_destroy(&pool->lock);
    free(pool->helpers);
    free(pool);
}

void td_native_cpu_pool_run(td_native_cpu_pool *pool, uint32_t tasks,
                            td_native_cpu_task task, void *user)
{
    pool->tasks = tasks;
    pool->task = task;
    pool->user = user;
    pool->next = 0;
    if (pool->count > 0) begin_round(pool);
    take_tasks(pool, 0);
    wait_for_end(pool);
}
