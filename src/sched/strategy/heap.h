// SPDX-License-Identifier: Apache-2.0
#ifndef TD_SCHED_STRATEGY_HEAP_H
#define TD_SCHED_STRATEGY_HEAP_H

// Numbered things, smallest key first; equal keys leave by their number. Each
// number is in the heap at most once and can be moved or taken from anywhere.
//
// Pure; room is made once. Not synchronised.

#include "base/err.h"

#include <stdbool.h>

#define TD_SCHED_NEVER_NS INT64_MAX

typedef struct td_sched_heap_cell {
    int64_t key;
    uint32_t number;
} td_sched_heap_cell;

typedef struct td_sched_heap {
    uint32_t count;
    uint32_t capacity;
    td_sched_heap_cell *cells; // [capacity], the smallest at 0
    uint32_t *places;          // [capacity], by number; UINT32_MAX: not in
} td_sched_heap;

// For the numbers below `capacity`. Given back with done. NOMEM.
TD_NODISCARD td_err td_sched_heap_init(td_sched_heap *heap, uint32_t capacity);
void td_sched_heap_done(td_sched_heap *heap);

// Puts the number in, or moves it to another key.
void td_sched_heap_put(td_sched_heap *heap, uint32_t number, int64_t key);

// Takes the number out, if it is in.
void td_sched_heap_take(td_sched_heap *heap, uint32_t number);

static inline bool td_sched_heap_has(const td_sched_heap *heap, uint32_t number)
{
    return heap->count > 0 && heap->places[number] != UINT32_MAX;
}

// The smallest key; NEVER if empty.
static inline int64_t td_sched_heap_key(const td_sched_heap *heap)
{
    return heap->count ? heap->cells[0].key : TD_SCHED_NEVER_NS;
}

// The smallest keys, in order, of those up to `to`. Returns how many; `most` is
// no more than TD_SCHED_HEAP_KEYS.
#define TD_SCHED_HEAP_KEYS 64
uint32_t td_sched_heap_keys(const td_sched_heap *heap, int64_t to,
                            uint32_t most, int64_t *ret_keys);

// The number with the smallest key; the heap must not be empty.
static inline uint32_t td_sched_heap_first(const td_sched_heap *heap)
{
    return heap->cells[0].number;
}

#endif
