// SPDX-License-Identifier: Apache-2.0
// Requests are made once and used again.
//
// A request is large (an observation's fields, room for a chunk), so that one
// that has ended goes back here and is not freed. One lies ready without the
// lock, so that an observation that arrives does not have to take it before it
// is decoded; the others are a list under the device's lock. What none of them
// has room for is allocated, so the pool grows to what its clients need at
// once: for each mostly one that waits, one that runs and one that is kept.
//
// Giving back a request lets go of what it holds: its use of a kept prefix, the
// transport's message, and memory of an outline that is larger than most. A
// request whose answer is kept loses message and prefix alone; what its client
// had kept before comes back in its place.
//
// End: freed when no request is out any more, which the model waits for.
#include "server/client/pool.h"

#include "base/clock.h"
#include "engine/results.h"

#include <stdatomic.h>
#include <stdlib.h>

struct td_server_pool {
    const td_server_context *ctx;
    _Atomic(td_server_request *)
        spare;               // NULL: none; whoever swaps it out has it
    td_server_request *free; // guarded by the device's lock
};

td_err td_server_pool_new(const td_server_context *ctx,
                          td_server_pool **ret_pool)
{
    td_server_pool *pool = calloc(1, sizeof *pool);
    if (!pool) return TD_ERR_NOMEM;
    pool->ctx = ctx;
    *ret_pool = pool;
    return TD_OK;
}

static void free_request(td_server_request *request)
{
    td_engine_results_done(&request->results);
    td_wire_outline_done(&request->outline);
    free(request);
}

void td_server_pool_free(td_server_pool *pool)
{
    td_server_request *spare = atomic_load(&pool->spare);
    if (spare) free_request(spare);
    while (pool->free) {
        td_server_request *request = pool->free;
        pool->free = request->next;
        free_request(request);
    }
    free(pool);
}

static td_server_request *make(const td_engine_spec *spec)
{
    size_t cells = (size_t)spec->chunk_rows * spec->action_count;
    td_server_request *request =
        malloc(sizeof *request + cells * sizeof *request->actions);
    if (!request) return NULL;
    request->results = (td_engine_results){0};
    request->outline = (td_wire_outline){0};
    request->actions = (float *)(request + 1);
    return request;
}

static td_server_request *take_free(td_server_pool *pool)
{
    pthread_mutex_lock(pool->ctx->lock);
    td_server_request *request = pool->free;
    if (request) pool->free = request->next;
    pthread_mutex_unlock(pool->ctx->lock);
    return request;
}

td_server_request *td_server_pool_take(td_server_pool *pool)
{
    td_server_request *request = atomic_exchange(&pool->spare, NULL);
    if (!request) request = take_free(pool);
    if (!request) request = make(pool->ctx->spec);
    if (!request) return NULL;
    request->msg = NULL;
    request->prefix = NULL;
    request->whole = false;
    return request;
}

void td_server_pool_release_locked(td_server_pool *pool,
                                   td_server_request *request)
{
    const td_server_context *ctx = pool->ctx;
    if (!request->prefix) return;
    td_engine_prefix *ended = td_server_core_release(ctx->core, request->client,
                                                     td_clock_monotonic_ns());
    if (ended) ctx->engine->ops->drop(ctx->engine, ended);
    request->prefix = NULL;
}

static void give_back_message(td_server_request *request)
{
    if (request->msg) td_net_msg_free(request->msg);
    request->msg = NULL;
    td_wire_outline_trim(&request->outline);
}

void td_server_pool_return_locked(td_server_pool *pool,
                                  td_server_request *request)
{
    td_server_pool_release_locked(pool, request);
    give_back_message(request);
    request = atomic_exchange(&pool->spare, request);
    if (!request) return;
    request->next = pool->free;
    pool->free = request;
}

void td_server_pool_return(td_server_pool *pool, td_server_request *request)
{
    pthread_mutex_lock(pool->ctx->lock);
    td_server_pool_return_locked(pool, request);
    pthread_mutex_unlock(pool->ctx->lock);
}

void td_server_pool_return_dropped_locked(td_server_pool *pool,
                                          const td_server_core_dropped *dropped)
{
    td_engine *engine = pool->ctx->engine;
    for (uint32_t i = 0; i < dropped->count; i++)
        td_server_pool_return_locked(pool, dropped->requests[i]);
    for (td_server_request *next, *r = dropped->queued.first; r; r = next) {
        next = r->next;
        td_server_pool_return_locked(pool, r);
    }
    if (dropped->prefix) engine->ops->drop(engine, dropped->prefix);
}

void td_server_pool_keep_locked(td_server_pool *pool,
                                td_server_request *request)
{
    td_server_core_dropped dropped;
    td_server_pool_release_locked(pool, request);
    give_back_message(request);
    td_server_core_keep(request, &dropped);
    td_server_pool_return_dropped_locked(pool, &dropped);
}
