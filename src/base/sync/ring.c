// SPDX-License-Identifier: Apache-2.0
#include "base/sync/ring.h"

#include "base/sync/cacheline.h"

#include <stdatomic.h>

// One place more than the capacity, so that full and empty look different. Each
// side keeps a copy of the other's index and looks again only when that copy
// says full or empty: most calls touch no line that the other side writes.
struct td_ring {
    size_t places;
    size_t value_bytes;
    unsigned char *bytes;

    TD_CACHELINE_ALIGNED _Atomic size_t tail; // next to fill
    size_t head_seen;                         // the producer's copy

    TD_CACHELINE_ALIGNED _Atomic size_t head; // next to take
    size_t tail_seen;                         // the consumer's copy
};

td_err td_ring_new(size_t capacity, size_t value_bytes, td_ring **ret_ring)
{
    if (capacity == 0 || value_bytes == 0) return TD_ERR_INVALID;
    if (capacity == SIZE_MAX) return TD_ERR_NOMEM;

    TD_AUTO(td_ring) *ring = td_cacheline_calloc(1, sizeof *ring);
    if (!ring) return TD_ERR_NOMEM;
    ring->places = capacity + 1;
    ring->value_bytes = value_bytes;
    ring->bytes = td_cacheline_calloc(ring->places, value_bytes);
    if (!ring->bytes) return TD_ERR_NOMEM;

    *ret_ring = TD_TAKE(ring);
    return TD_OK;
}

void td_ring_free(td_ring *ring)
{
    free(ring->bytes);
    free(ring);
}

static size_t after(const td_ring *ring, size_t index)
{
    return index + 1 == ring->places ? 0 : index + 1;
}

td_err td_ring_push(td_ring *ring, const void *value)
{
    size_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
    size_t next = after(ring, tail);
    if (next == ring->head_seen) {
        ring->head_seen =
            atomic_load_explicit(&ring->head, memory_order_acquire);
        if (next == ring->head_seen) return TD_ERR_FULL;
    }

    memcpy(ring->bytes + tail * ring->value_bytes, value, ring->value_bytes);
    atomic_store_explicit(&ring->tail, next, memory_order_release);
    return TD_OK;
}

td_err td_ring_pop(td_ring *ring, void *ret_value)
{
    size_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
    if (head == ring->tail_seen) {
        ring->tail_seen =
            atomic_load_explicit(&ring->tail, memory_order_acquire);
        if (head == ring->tail_seen) return TD_ERR_EMPTY;
    }

    memcpy(ret_value, ring->bytes + head * ring->value_bytes,
           ring->value_bytes);
    atomic_store_explicit(&ring->head, after(ring, head), memory_order_release);
    return TD_OK;
}

size_t td_ring_count(const td_ring *ring)
{
    size_t head = atomic_load_explicit(&ring->head, memory_order_acquire);
    size_t tail = atomic_load_explicit(&ring->tail, memory_order_acquire);
    return tail >= head ? tail - head : tail + ring->places - head;
}
