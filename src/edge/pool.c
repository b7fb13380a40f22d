// SPDX-License-Identifier: Apache-2.0
#include "edge/pool.h"

#include "base/cacheline.h"

#include <stdlib.h>

struct td_edge_pool {
    uint32_t count;
    size_t frame_bytes;
    unsigned char *frames;
};

static td_edge_frame *frame_at(const td_edge_pool *pool, uint32_t index)
{
    void *frame = pool->frames + index * pool->frame_bytes;
    return frame;
}

td_err td_edge_pool_new(uint32_t count, size_t bytes, td_edge_pool **ret_pool)
{
    if (count == 0 || bytes == 0) return TD_ERR_INVALID;
    TD_AUTO(td_edge_pool) *pool = calloc(1, sizeof *pool);
    if (!pool) return TD_ERR_NOMEM;
    pool->count = count;
    pool->frame_bytes = sizeof(td_edge_frame) + bytes;
    pool->frame_bytes += -pool->frame_bytes % TD_CACHELINE_BYTES;
    pool->frames = td_cacheline_calloc(count, pool->frame_bytes);
    if (!pool->frames) return TD_ERR_NOMEM;
    *ret_pool = TD_TAKE(pool);
    return TD_OK;
}

void td_edge_pool_free(td_edge_pool *pool)
{
    free(pool->frames);
    free(pool);
}

// What others did with the frame before they let go of it is over.
td_edge_frame *td_edge_pool_take(td_edge_pool *pool)
{
    for (uint32_t i = 0; i < pool->count; i++) {
        td_edge_frame *frame = frame_at(pool, i);
        if (atomic_load_explicit(&frame->holders, memory_order_acquire) > 0)
            continue;
        atomic_store_explicit(&frame->holders, 1, memory_order_relaxed);
        return frame;
    }
    return NULL;
}

void td_edge_pool_hold(td_edge_frame *frame)
{
    atomic_fetch_add_explicit(&frame->holders, 1, memory_order_relaxed);
}

void td_edge_pool_drop(td_edge_frame *frame)
{
    atomic_fetch_sub_explicit(&frame->holders, 1, memory_order_release);
}
