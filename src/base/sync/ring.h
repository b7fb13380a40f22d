// SPDX-License-Identifier: Apache-2.0
#ifndef TD_BASE_SYNC_RING_H
#define TD_BASE_SYNC_RING_H

// Single-producer, single-consumer ring of values of one size, in order.
// Wait-free on both sides; all storage is made at the start.

#include "base/err.h"

typedef struct td_ring td_ring;

// Room for `capacity` values of `value_bytes`. Owned by the caller. INVALID if
// either is 0.
TD_NODISCARD td_err td_ring_new(size_t capacity, size_t value_bytes,
                                td_ring **ret_ring);
void td_ring_free(td_ring *ring);
TD_AUTO_FREE(td_ring, td_ring_free)

// Copies `value` in. Producer thread only; never blocks. FULL if no room.
TD_NODISCARD td_err td_ring_push(td_ring *ring, const void *value);

// Copies the oldest value out. Consumer thread only; never blocks. EMPTY.
TD_NODISCARD td_err td_ring_pop(td_ring *ring, void *ret_value);

// A count that was true a moment ago. Any thread.
size_t td_ring_count(const td_ring *ring);

#endif
