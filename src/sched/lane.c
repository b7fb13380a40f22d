// SPDX-License-Identifier: Apache-2.0
// What can run: READY in the order of its lane; and who starves.
//
// A member is patient until the oldest of its requests could not be met any
// more or, without a deadline, has waited for its budget; a newer one that took
// its place changes nothing. From then on it starves, until one of its is
// started. A part of the runs is for those who starve, in turn (next.c).
#include "sched/internal.h"

static void mark(td_sched *s, uint32_t lane)
{
    uint64_t bit = UINT64_C(1) << lane;
    if (s->lanes[lane].order.count > 0)
        s->lanes_in_use |= bit;
    else
        s->lanes_in_use &= ~bit;
}

static bool has_patience(const td_sched *s, uint32_t member)
{
    uint32_t oldest = s->slots[member].oldest;
    return oldest != TD_SCHED_NOBODY &&
           s->entries[oldest].place == TD_SCHED_READY;
}

void td_sched_lane_watch(td_sched *s, uint32_t member)
{
    if (!td_sched_strategy_scores(s->policy.strategy) ||
        s->policy.fairness <= 0)
        return; // and nobody is in the heaps
    td_sched_slot *slot = &s->slots[member];
    bool waits = has_patience(s, member);
    int64_t until_ns = waits ? s->entries[slot->oldest].patient_ns : 0;
    bool starves = waits && until_ns < s->now_ns;
    uint32_t tier =
        starves ? s->entries[slot->oldest].tier : TD_SCHED_MAX_TIERS;
    if (slot->starves_in != tier && slot->starves_in < TD_SCHED_MAX_TIERS)
        td_sched_heap_take(&s->starving[slot->starves_in], member);
    if (starves)
        td_sched_heap_put(&s->starving[tier], member, (int64_t)slot->turn);
    slot->starves_in = tier;
    if (waits && !starves)
        td_sched_heap_put(&s->patient, member, until_ns);
    else
        td_sched_heap_take(&s->patient, member);
}

void td_sched_lane_find_starving(td_sched *s)
{
    while (td_sched_heap_key(&s->patient) < s->now_ns)
        td_sched_lane_watch(s, td_sched_heap_first(&s->patient));
}

static bool is_in(const td_sched *s, uint32_t member, uint64_t lanes)
{
    return lanes >> s->entries[s->slots[member].oldest].lane & 1;
}

uint32_t td_sched_lane_starving(const td_sched *s, uint64_t lanes)
{
    uint32_t tier = s->lanes[__builtin_ctzll(lanes)].tier;
    const td_sched_heap *heap = &s->starving[tier];
    if (heap->count == 0) return TD_SCHED_NOBODY;
    uint32_t first = td_sched_heap_first(heap);
    if (is_in(s, first, lanes)) return s->slots[first].oldest;
    int64_t least = TD_SCHED_NEVER_NS;
    uint32_t found = TD_SCHED_NOBODY;
    for (uint32_t i = 0; i < heap->count; i++) {
        uint32_t member = heap->cells[i].number;
        if (heap->cells[i].key >= least || !is_in(s, member, lanes)) continue;
        least = heap->cells[i].key;
        found = s->slots[member].oldest;
    }
    return found;
}

static void watch_if_oldest(td_sched *s, uint32_t number)
{
    uint32_t member = s->entries[number].item.member;
    if (s->slots[member].oldest == number) td_sched_lane_watch(s, member);
}

static bool has_deadline(const td_sched_entry *e)
{
    return e->item.due_ns != TD_SCHED_NEVER_NS;
}

void td_sched_lane_put(td_sched *s, uint32_t number)
{
    td_sched_entry *e = &s->entries[number];
    e->leaf = td_sched_order_put(&s->lanes[e->lane].order, number, s->now_ns);
    e->place = TD_SCHED_READY;
    s->lanes[e->lane].due += has_deadline(e);
    mark(s, e->lane);
    watch_if_oldest(s, number);
}

void td_sched_lane_take(td_sched *s, uint32_t number, td_sched_place place)
{
    td_sched_entry *e = &s->entries[number];
    td_sched_order_take(&s->lanes[e->lane].order, e->leaf, s->now_ns);
    e->place = place;
    s->lanes[e->lane].due -= has_deadline(e);
    mark(s, e->lane);
    watch_if_oldest(s, number);
}
