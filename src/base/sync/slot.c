// SPDX-License-Identifier: Apache-2.0
#include "base/sync/slot.h"

#include "base/sync/cacheline.h"

#include <stdatomic.h>

enum { VALUES = 3, INDEX_BITS = 3, FRESH = 4 };

struct td_slot {
    void *values[VALUES];
    // The index of the value that neither side holds, and FRESH until read.
    TD_CACHELINE_ALIGNED _Atomic uint8_t middle;
    TD_CACHELINE_ALIGNED uint8_t back;  // the writer's
    TD_CACHELINE_ALIGNED uint8_t front; // the reader's
};

td_err td_slot_new(size_t value_bytes, td_slot **ret_slot)
{
    if (value_bytes == 0) return TD_ERR_INVALID;

    TD_AUTO(td_slot) *slot = td_cacheline_calloc(1, sizeof *slot);
    if (!slot) return TD_ERR_NOMEM;
    for (size_t i = 0; i < VALUES; i++) {
        slot->values[i] = td_cacheline_calloc(1, value_bytes);
        if (!slot->values[i]) return TD_ERR_NOMEM;
    }

    slot->back = 0;
    atomic_init(&slot->middle, 1);
    slot->front = 2;
    *ret_slot = TD_TAKE(slot);
    return TD_OK;
}

void td_slot_free(td_slot *slot)
{
    for (size_t i = 0; i < VALUES; i++)
        free(slot->values[i]);
    free(slot);
}

void *td_slot_back(td_slot *slot)
{
    return slot->values[slot->back];
}

bool td_slot_publish(td_slot *slot)
{
    uint8_t replaced = atomic_exchange_explicit(
        &slot->middle, slot->back | FRESH, memory_order_acq_rel);
    slot->back = replaced & INDEX_BITS;
    return replaced & FRESH;
}

bool td_slot_refresh(td_slot *slot)
{
    uint8_t middle = atomic_load_explicit(&slot->middle, memory_order_relaxed);
    if (!(middle & FRESH)) return false;

    middle = atomic_exchange_explicit(&slot->middle, slot->front,
                                      memory_order_acq_rel);
    slot->front = middle & INDEX_BITS;
    return true;
}

const void *td_slot_front(const td_slot *slot)
{
    return slot->values[slot->front];
}
