// SPDX-License-Identifier: Apache-2.0
#include "sched/internal.h"

#include <assert.h>

// It came, for all that: its client's next is expected.
static td_sched_outcome refuse(td_sched *s, const td_sched_item *item)
{
    td_sched_ready_expect(s, item->member, item->expected_ns);
    s->counts.outcomes[TD_SCHED_REFUSED]++;
    return TD_SCHED_REFUSED;
}

static uint32_t allocate(td_sched *s)
{
    uint32_t number = s->first_free;
    if (number != TD_SCHED_NOBODY) s->first_free = s->entries[number].after;
    return number;
}

// Until then whoever goes before it takes nothing from it.
static int64_t patient_ns(const td_sched *s, const td_sched_item *item)
{
    const td_sched_member *member = &s->slots[item->member].member;
    if (item->due_ns == TD_SCHED_NEVER_NS) return s->now_ns + member->budget_ns;
    return item->due_ns - s->models[member->model].run_ns;
}

static void enter(td_sched *s, uint32_t number, const td_sched_item *item)
{
    td_sched_entry *e = &s->entries[number];
    e->item = *item;
    e->request.payload = item->payload;
    e->request.seq = item->seq;
    e->request.arrived_ns = s->now_ns;
    e->attempts = 0;
    s->slots[item->member].expected_ns = item->expected_ns;
    td_sched_ready_wait(s, number);
    td_sched_ready_place(s, number);
}

// The kind of batch that the older one leaves may be the room that the newer
// one needs.
static bool has_mix(td_sched *s, const td_sched_item *item, uint32_t older)
{
    if (td_sched_ready_mix(s, item->member, item->mix) != TD_SCHED_NOBODY)
        return true;
    return older != TD_SCHED_NOBODY &&
           s->mixes[s->entries[older].mix].waiting == 1;
}

// Newest wins: the place in the order and the time waited stay.
static td_sched_outcome replace(td_sched *s, uint32_t number,
                                const td_sched_item *item,
                                td_sched_ended *ret_ended)
{
    *ret_ended = (td_sched_ended){TD_SCHED_SUPERSEDED, item->member,
                                  s->entries[number].request};
    s->counts.outcomes[TD_SCHED_SUPERSEDED]++;
    td_sched_ready_stop_waiting(s, number);
    td_sched_heap_take(&s->backing_off, number);
    enter(s, number, item);
    return TD_SCHED_WAITING;
}

static bool make_room(td_sched *s, const td_sched_item *item,
                      td_sched_ended *ret_ended)
{
    const td_sched_queue_settings *rules = &s->settings.queue;
    if (s->queue->count < rules->size) return true;
    if (rules->overflow == TD_SCHED_REJECT_NEWEST) return false;
    uint32_t victim =
        td_sched_queue_victim(s->queue, td_sched_ready_tier_for(s, item));
    if (victim == TD_SCHED_NOBODY) return false;
    td_sched_ready_end(s, victim, TD_SCHED_OVERFLOWED, ret_ended);
    return true;
}

td_sched_outcome td_sched_submit(td_sched *s, int64_t now_ns,
                                 const td_sched_item *item,
                                 td_sched_ended *ret_ended)
{
    td_sched_slot *slot = &s->slots[item->member];
    assert(item->payload && item->member < s->settings.members && slot->used);
    *ret_ended = (td_sched_ended){0};
    now_ns = td_sched_ready_now(s, now_ns);
    s->counts.submitted++;
    td_sched_ready_arrived(s, item->member);
    bool replaces = !slot->member.queued && slot->oldest != TD_SCHED_NOBODY;
    if (!has_mix(s, item, replaces ? slot->oldest : TD_SCHED_NOBODY))
        return refuse(s, item);
    if (replaces) return replace(s, slot->oldest, item, ret_ended);
    if (slot->member.queued && !make_room(s, item, ret_ended))
        return refuse(s, item);
    uint32_t number = allocate(s);
    if (number == TD_SCHED_NOBODY) return refuse(s, item);
    s->facts[number].order = ++s->last_order;
    s->facts[number].round = 0;
    s->entries[number].request.waiting_since_ns = now_ns;
    s->entries[number].patient_ns = patient_ns(s, item);
    enter(s, number, item);
    s->counts.outcomes[TD_SCHED_WAITING]++;
    return TD_SCHED_WAITING;
}
