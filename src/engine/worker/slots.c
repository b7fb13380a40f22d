// SPDX-License-Identifier: Apache-2.0
#include "engine/worker/slots.h"

td_engine_worker_slot *td_engine_worker_slots_take(
    td_engine_worker_slots *slots, td_worker_operation operation,
    td_engine_batch *batch, td_engine_done done, void *user)
{
    td_engine_worker_slot *slot = slots->each;
    while (slot->state != TD_ENGINE_WORKER_FREE)
        if (++slot == slots->each + TD_WORKER_SLOTS) return NULL;
    slot->state = TD_ENGINE_WORKER_WAITING;
    slot->operation = operation;
    slot->order = ++slots->submissions;
    slot->batch = batch;
    slot->done = done;
    slot->user = user;
    slot->round = 0;
    for (uint32_t i = 0; i < batch->count; i++) {
        slot->pending[i] = true;
        slot->made[i] = NULL;
    }
    return slot;
}

td_engine_worker_slot *
td_engine_worker_slots_waiting(td_engine_worker_slots *slots)
{
    td_engine_worker_slot *first = NULL;
    for (size_t i = 0; i < TD_WORKER_SLOTS; i++) {
        td_engine_worker_slot *slot = &slots->each[i];
        if (slot->state == TD_ENGINE_WORKER_WAITING &&
            (!first || slot->order < first->order))
            first = slot;
    }
    return first;
}

bool td_engine_worker_slots_busy(const td_engine_worker_slots *slots,
                                 const td_engine_worker_slot *except)
{
    for (size_t i = 0; i < TD_WORKER_SLOTS; i++)
        if (&slots->each[i] != except &&
            slots->each[i].state != TD_ENGINE_WORKER_FREE)
            return true;
    return false;
}

const td_engine_worker_slot *
td_engine_worker_slots_accused(const td_engine_worker_slots *slots,
                               uint64_t running)
{
    const td_engine_worker_slot *slot = NULL;
    for (size_t i = 0; i < TD_WORKER_SLOTS; i++) {
        const td_engine_worker_slot *other = &slots->each[i];
        if (other->state != TD_ENGINE_WORKER_RUNNING) continue;
        if (!slot || other->generation == running ||
            (slot->generation != running &&
             other->generation < slot->generation))
            slot = other;
    }
    return slot;
}

size_t
td_engine_worker_slots_lose(td_engine_worker_slots *slots,
                            td_engine_worker_slot *ret_lost[TD_WORKER_SLOTS])
{
    size_t count = 0;
    for (size_t i = 0; i < TD_WORKER_SLOTS; i++) {
        td_engine_worker_slot *slot = &slots->each[i];
        atomic_store(&slot->lost, true);
        if (slot->state != TD_ENGINE_WORKER_RUNNING &&
            slot->state != TD_ENGINE_WORKER_WAITING)
            continue;
        slot->state = TD_ENGINE_WORKER_OVER;
        ret_lost[count++] = slot;
    }
    return count;
}

void td_engine_worker_slots_begin(td_engine_worker_slots *slots)
{
    for (size_t i = 0; i < TD_WORKER_SLOTS; i++)
        atomic_store(&slots->each[i].lost, false);
}
