// SPDX-License-Identifier: Apache-2.0
#include "sched/slots.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>

typedef struct slot {
    bool used;
    bool running;
    td_sched_request waiting;
} slot;

struct td_sched_slots {
    uint32_t capacity;
    uint32_t turn; // who is asked first the next time
    uint32_t waiting;
    slot slots[];
};

td_err td_sched_slots_new(uint32_t capacity, td_sched_slots **ret_slots)
{
    if (capacity == 0) return TD_ERR_INVALID;
    td_sched_slots *slots =
        calloc(1, sizeof *slots + capacity * sizeof slots->slots[0]);
    if (!slots) return TD_ERR_NOMEM;
    slots->capacity = capacity;
    *ret_slots = slots;
    return TD_OK;
}

void td_sched_slots_free(td_sched_slots *slots)
{
    free(slots);
}

td_err td_sched_slots_add(td_sched_slots *slots, uint32_t *ret_client)
{
    for (uint32_t i = 0; i < slots->capacity; i++) {
        if (slots->slots[i].used) continue;
        slots->slots[i] = (slot){.used = true};
        *ret_client = i;
        return TD_OK;
    }
    return TD_ERR_FULL;
}

static slot *slot_of(td_sched_slots *slots, uint32_t client)
{
    assert(client < slots->capacity && slots->slots[client].used);
    return &slots->slots[client];
}

void td_sched_slots_clear(td_sched_slots *slots, uint32_t client,
                          td_sched_request *ret_waiting)
{
    slot *s = slot_of(slots, client);
    if (s->waiting.payload) slots->waiting--;
    *ret_waiting = s->waiting;
    s->waiting = (td_sched_request){0};
}

td_err td_sched_slots_remove(td_sched_slots *slots, uint32_t client,
                             td_sched_request *ret_waiting)
{
    if (slot_of(slots, client)->running) return TD_ERR_BUSY;
    td_sched_slots_clear(slots, client, ret_waiting);
    slots->slots[client].used = false;
    return TD_OK;
}

void td_sched_slots_offer(td_sched_slots *slots, uint32_t client,
                          int64_t now_ns, uint64_t seq, void *payload,
                          td_sched_request *ret_displaced)
{
    slot *s = slot_of(slots, client);
    assert(payload);
    *ret_displaced = s->waiting;
    int64_t since = s->waiting.payload ? s->waiting.waiting_since_ns : now_ns;
    if (!s->waiting.payload) slots->waiting++;
    s->waiting = (td_sched_request){
        .payload = payload,
        .seq = seq,
        .arrived_ns = now_ns,
        .waiting_since_ns = since,
    };
}

uint32_t td_sched_slots_next(td_sched_slots *slots, uint32_t most,
                             uint32_t *ret_clients,
                             td_sched_request *ret_requests)
{
    uint32_t count = 0;
    uint32_t first = slots->turn;
    for (uint32_t i = 0; i < slots->capacity && count < most; i++) {
        uint32_t client = (first + i) % slots->capacity;
        slot *s = &slots->slots[client];
        if (!s->used || s->running || !s->waiting.payload) continue;
        ret_clients[count] = client;
        td_sched_slots_clear(slots, client, &ret_requests[count]);
        s->running = true;
        slots->turn = (client + 1) % slots->capacity;
        count++;
    }
    return count;
}

void td_sched_slots_done(td_sched_slots *slots, uint32_t client)
{
    slot *s = slot_of(slots, client);
    assert(s->running);
    s->running = false;
}

uint32_t td_sched_slots_waiting(const td_sched_slots *slots)
{
    return slots->waiting;
}
