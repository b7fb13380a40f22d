// SPDX-License-Identifier: Apache-2.0
#include "edge/observe/pool.h"

#include "base/sync/cacheline.h"

#include <stdlib.h>

struct td_edge_pool {
    uint32_t count;
    size_t frame_bytes;
    uint8_t *bytes; // of all frames
    td_edge_frame frames[];
};

td_err td_edge_pool_new(uint32_t count, size_t bytes, td_edge_pool **ret_pool)
{
    if (count == 0 || bytes == 0) return TD_ERR_INVALID;
    TD_AUTO(td_edge_pool) *pool =
        calloc(1, sizeof *pool + count * sizeof pool->frames[0]);
    if (!pool) return TD_ERR_NOMEM;
    pool->count = count;
    pool->frame_bytes = bytes + -bytes % TD_CACHELINE_BYTES;
    pool->bytes = td_cacheline_calloc(count, pool->frame_bytes);
    if (!pool->bytes) return TD_ERR_NOMEM;
    *ret_pool = TD_TAKE(pool);
    return TD_OK;
}

static void end_loan(td_edge_frame *frame)
{
    if (frame->loan) td_net_loan_free(TD_TAKE(frame->loan));
}

void td_edge_pool_free(td_edge_pool *pool)
{
    for (uint32_t i = 0; i < pool->count; i++)
        end_loan(&pool->frames[i]);
    free(pool->bytes);
    free(pool);
}

// What others did with a frame before they released it is over.
td_edge_frame *td_edge_pool_take(td_edge_pool *pool)
{
    td_edge_frame *taken = NULL;
    for (uint32_t i = 0; i < pool->count; i++) {
        td_edge_frame *frame = &pool->frames[i];
        if (atomic_load_explicit(&frame->holders, memory_order_acquire) > 0)
            continue;
        end_loan(frame);
        if (taken) continue;
        taken = frame;
        taken->bytes = pool->bytes + i * pool->frame_bytes;
        atomic_store_explicit(&taken->holders, 1, memory_order_relaxed);
    }
    return taken;
}

void td_edge_pool_lend(td_edge_frame *frame, td_net_loan *loan)
{
    frame->loan = loan;
    frame->bytes = loan->bytes;
}

void td_edge_pool_hold(td_edge_frame *frame)
{
    atomic_fetch_add_explicit(&frame->holders, 1, memory_order_relaxed);
}

void td_edge_pool_drop(td_edge_frame *frame)
{
    atomic_fetch_sub_explicit(&frame->holders, 1, memory_order_release);
}
