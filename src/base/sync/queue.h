// SPDX-License-Identifier: Apache-2.0
#ifndef TD_BASE_SYNC_QUEUE_H
#define TD_BASE_SYNC_QUEUE_H

// Bounded queue for any number of producers and consumers, in order.
//
// Each cell carries a turn number (Vyukov's bounded queue), so that neither
// side takes a lock. When full it refuses at once: overload shows where it is
// made. To wait for a value, pair the queue with a td_event.

#include "base/err.h"

typedef struct td_queue td_queue;

// Room for `capacity` values, rounded up to a power of two. Owned by the
// caller. INVALID if either is 0.
TD_NODISCARD td_err td_queue_new(size_t capacity, size_t value_bytes,
                                 td_queue **ret_queue);
void td_queue_free(td_queue *queue);
TD_AUTO_FREE(td_queue, td_queue_free)

// Copies `value` in. Any thread; never blocks. FULL if no room.
TD_NODISCARD td_err td_queue_push(td_queue *queue, const void *value);

// Copies the oldest value out. Any thread; never blocks. EMPTY.
TD_NODISCARD td_err td_queue_pop(td_queue *queue, void *ret_value);

#endif
