// SPDX-License-Identifier: Apache-2.0
#include "sched/internal.h"

#include <assert.h>

// A newer one in the slot's waiting place is worth more than a retry.
static bool may_retry(td_sched *s, const td_sched_entry *e)
{
    const td_sched_slot *slot = &s->slots[e->item.member];
    bool room = slot->member.queued ? s->queue->count < s->settings.queue.size
                                    : slot->oldest == TD_SCHED_NOBODY;
    return room && e->attempts < s->settings.queue.retries &&
           td_sched_ready_mix(s, e->item.member, e->item.mix) !=
               TD_SCHED_NOBODY;
}

static td_sched_outcome retry(td_sched *s, uint32_t number)
{
    td_sched_entry *e = &s->entries[number];
    e->attempts++;
    e->generation++;
    e->place = TD_SCHED_BACKOFF;
    td_sched_ready_wait(s, number);
    int64_t wait_ns =
        td_sched_queue_backoff_ns(&s->settings.queue, e->attempts);
    td_sched_heap_put(&s->backing_off, number, s->now_ns + wait_ns);
    s->counts.outcomes[TD_SCHED_WAITING]++;
    s->counts.retried++;
    return TD_SCHED_WAITING;
}

static void free_slot(td_sched *s, td_sched_slot *slot)
{
    slot->running--;
    if (slot->member.queued || slot->running > 0) return;
    uint32_t waiting = slot->oldest;
    if (waiting != TD_SCHED_NOBODY &&
        s->entries[waiting].place == TD_SCHED_HELD)
        td_sched_ready_place(s, waiting);
}

td_sched_outcome td_sched_done(td_sched *s, int64_t now_ns, uint64_t ticket,
                               td_sched_outcome outcome)
{
    td_sched_ready_now(s, now_ns);
    uint32_t number = (uint32_t)ticket;
    td_sched_entry *e = &s->entries[number];
    assert(number < s->capacity && e->place == TD_SCHED_STARTED &&
           e->generation == ticket >> 32);
    assert(outcome == TD_SCHED_ANSWERED || outcome == TD_SCHED_FAILED);
    s->counts.outcomes[TD_SCHED_RUNNING]--;
    td_sched_slot *slot = &s->slots[e->item.member];
    bool again = outcome == TD_SCHED_FAILED && may_retry(s, e);
    free_slot(s, slot);
    if (again) return retry(s, number);
    td_sched_ready_answered(s, e->item.member);
    s->counts.outcomes[outcome]++;
    td_sched_ready_free(s, number);
    return outcome;
}
