// SPDX-License-Identifier: Apache-2.0
// Several engines of one model as one.
//
// A batch goes to the first of them that is ready and has none; so each of them
// has one at a time. A place is taken under `lock` and given back before `done`
// is called, inside which the next batch may be submitted. The lock is never
// held while an engine is called.
//
// The pool is READY while one of them is, and BROKEN when all are. What one
// ends with CLOSED is the caller's to try again.
//
// Stop, drain, free: close() closes them one after the other, each of which
// finishes what it has.
#include "engine/pool/pool.h"

#include <pthread.h>
#include <stdlib.h>

typedef struct pool pool;

typedef struct member {
    pool *pool;
    td_engine *engine;
    bool busy; // guarded by the pool's lock, as what follows
    td_engine_done done;
    void *user;
} member;

struct pool {
    td_engine engine;
    td_engine_spec spec;
    pthread_mutex_t lock;
    uint32_t count;
    member members[];
};

static void close_pool(td_engine *engine)
{
    pool *self = (pool *)engine;
    for (uint32_t i = 0; i < self->count; i++)
        if (self->members[i].engine) td_engine_close(self->members[i].engine);
    pthread_mutex_destroy(&self->lock);
    free(self);
}

static void pool_free(pool *self)
{
    close_pool(&self->engine);
}
TD_AUTO_FREE(pool, pool_free)

static td_err open_all(pool *self, const td_engine_config *config,
                       td_errinfo *info)
{
    const td_engine_pool_settings *settings = config->settings;
    td_engine_config own = *config;
    own.settings = settings->settings;
    for (uint32_t i = 0; i < self->count; i++) {
        member *m = &self->members[i];
        m->pool = self;
        TD_TRY(td_engine_open(settings->kind, &own, &m->engine, info));
    }
    return TD_OK;
}

static td_err open_pool(const td_engine_config *config, td_engine **ret_engine,
                        td_errinfo *info)
{
    const td_engine_pool_settings *settings = config->settings;
    if (settings->count < 1 || settings->count > TD_ENGINE_MAX_BATCH)
        return td_fail(info, TD_ERR_INVALID, "parallel: must be 1 to %d",
                       TD_ENGINE_MAX_BATCH);
    TD_AUTO(pool) *self =
        calloc(1, sizeof *self + settings->count * sizeof self->members[0]);
    if (!self) return TD_ERR_NOMEM;
    self->engine.ops = &td_engine_pool;
    self->count = settings->count;
    pthread_mutex_init(&self->lock, NULL);
    TD_TRY(open_all(self, config, info));
    self->spec = *self->members[0].engine->ops->spec(self->members[0].engine);
    self->spec.most_inflight = self->count;
    self->spec.parallel = true;
    *ret_engine = &TD_TAKE(self)->engine;
    return TD_OK;
}

static const td_engine_spec *spec_pool(const td_engine *engine)
{
    return &((const pool *)engine)->spec;
}

// NULL: all that are ready have a batch.
static member *take(pool *self, td_engine_done done, void *user)
{
    member *found = NULL;
    pthread_mutex_lock(&self->lock);
    for (uint32_t i = 0; i < self->count && !found; i++) {
        member *m = &self->members[i];
        if (!m->busy && td_engine_health_of(m->engine) == TD_ENGINE_READY)
            found = m;
    }
    if (found) {
        found->busy = true;
        found->done = done;
        found->user = user;
    }
    pthread_mutex_unlock(&self->lock);
    return found;
}

static void give_back(member *m)
{
    pthread_mutex_lock(&m->pool->lock);
    m->busy = false;
    pthread_mutex_unlock(&m->pool->lock);
}

// The member's thread.
static void on_done(void *user, td_engine_batch *batch)
{
    member *m = user;
    td_engine_done done = m->done;
    void *theirs = m->user;
    give_back(m);
    done(theirs, batch);
}

static td_engine_health health_pool(const td_engine *engine)
{
    const pool *self = (const pool *)engine;
    td_engine_health best = TD_ENGINE_BROKEN;
    for (uint32_t i = 0; i < self->count; i++) {
        td_engine_health one = td_engine_health_of(self->members[i].engine);
        if (one < best) best = one;
    }
    return best;
}

static td_err submit_pool(td_engine *engine, td_engine_batch *batch,
                          td_engine_done done, void *user)
{
    pool *self = (pool *)engine;
    member *m = take(self, done, user);
    if (!m)
        return health_pool(engine) == TD_ENGINE_READY ? TD_ERR_BUSY
                                                      : TD_ERR_CLOSED;
    td_err err = m->engine->ops->submit(m->engine, batch, on_done, m);
    if (err != TD_OK) give_back(m);
    return err;
}

const td_engine_ops td_engine_pool = {
    .name = "pool",
    .open = open_pool,
    .close = close_pool,
    .spec = spec_pool,
    .submit = submit_pool,
    .health = health_pool,
};
