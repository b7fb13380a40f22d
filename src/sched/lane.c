// SPDX-License-Identifier: Apache-2.0
// What can run: READY in the order of its lane, or PARKED while its client is
// ahead of its share.
//
// Shares count only while somebody is pressed: its deadline cannot be met, or
// it has none, or a newer one had to take its place. Until then nobody loses by
// going later, and deadlines alone decide.
#include "sched/state.h"

static void mark(td_sched *s, uint32_t lane)
{
    const td_sched_lane *l = &s->lanes[lane];
    uint64_t bit = UINT64_C(1) << lane;
    if (l->order.count + l->parked > 0)
        s->lanes_in_use |= bit;
    else
        s->lanes_in_use &= ~bit;
}

static td_sched_park *park_of(td_sched *s, uint32_t number)
{
    const td_sched_entry *e = &s->entries[number];
    return &s->parks[e->tier * s->settings.clients + e->client];
}

const td_sched_park *td_sched_lane_parked(const td_sched *s, uint32_t tier,
                                          uint32_t client)
{
    return &s->parks[tier * s->settings.clients + client];
}

static void keep_if(td_sched_heap *heap, uint32_t client, bool in, int64_t key)
{
    if (in)
        td_sched_heap_put(heap, client, key);
    else
        td_sched_heap_take(heap, client);
}

static void keep_parked(td_sched *s, uint32_t tier, uint32_t client)
{
    const td_sched_park *park = td_sched_lane_parked(s, tier, client);
    bool parked = park->first != TD_SCHED_NOBODY;
    int64_t tag_ns = td_sched_share_tag_ns(&s->share, tier, client);
    keep_if(&s->parked_clients[tier], client, parked, tag_ns);
    keep_if(&s->away_clients[tier], client, parked && park->ready == 0, tag_ns);
}

void td_sched_lane_tagged(td_sched *s, uint32_t tier, uint32_t client)
{
    if (td_sched_lane_parked(s, tier, client)->first != TD_SCHED_NOBODY)
        keep_parked(s, tier, client);
}

static void seat_entry(td_sched *s, uint32_t number)
{
    td_sched_entry *e = &s->entries[number];
    e->seat = td_sched_order_put(&s->lanes[e->lane].order, number, s->now_ns);
    e->place = TD_SCHED_READY;
    mark(s, e->lane);
    if (park_of(s, number)->ready++ == 0)
        td_sched_lane_tagged(s, e->tier, e->client);
}

static void unseat_entry(td_sched *s, uint32_t number)
{
    td_sched_entry *e = &s->entries[number];
    td_sched_order_take(&s->lanes[e->lane].order, e->seat, s->now_ns);
    mark(s, e->lane);
    if (--park_of(s, number)->ready == 0)
        td_sched_lane_tagged(s, e->tier, e->client);
}

static void enter_park(td_sched *s, uint32_t number)
{
    td_sched_entry *e = &s->entries[number];
    td_sched_park *park = park_of(s, number);
    e->place = TD_SCHED_PARKED;
    e->parked_before = park->last;
    e->parked_after = TD_SCHED_NOBODY;
    if (park->last == TD_SCHED_NOBODY)
        park->first = number;
    else
        s->entries[park->last].parked_after = number;
    park->last = number;
    s->lanes[e->lane].parked++;
    s->parked++;
    mark(s, e->lane);
    keep_parked(s, e->tier, e->client);
}

void td_sched_lane_park(td_sched *s, uint32_t number)
{
    unseat_entry(s, number);
    enter_park(s, number);
}

static void leave_park(td_sched *s, uint32_t number)
{
    td_sched_entry *e = &s->entries[number];
    td_sched_park *park = park_of(s, number);
    if (e->parked_before == TD_SCHED_NOBODY)
        park->first = e->parked_after;
    else
        s->entries[e->parked_before].parked_after = e->parked_after;
    if (e->parked_after == TD_SCHED_NOBODY)
        park->last = e->parked_before;
    else
        s->entries[e->parked_after].parked_before = e->parked_before;
    s->lanes[e->lane].parked--;
    s->parked--;
    mark(s, e->lane);
    keep_parked(s, e->tier, e->client);
}

void td_sched_lane_unpark(td_sched *s, uint32_t number)
{
    leave_park(s, number);
    seat_entry(s, number);
}

static void begin(td_sched *s, uint32_t number)
{
    td_sched_entry *e = &s->entries[number];
    int64_t run_ns = s->lanes[e->lane].order.run_ns;
    int64_t last_ns =
        td_sched_strategy_last_ns(&s->policy, &s->facts[number], run_ns);
    td_sched_share_waits(&s->share, e->tier, e->client);
    if (e->passed_over || last_ns < s->now_ns)
        s->pressed[e->tier]++;
    else
        td_sched_heap_put(&s->meetable, number, last_ns);
}

void td_sched_lane_press(td_sched *s)
{
    while (td_sched_heap_key(&s->meetable) < s->now_ns) {
        uint32_t number = td_sched_heap_first(&s->meetable);
        td_sched_heap_take(&s->meetable, number);
        s->pressed[s->entries[number].tier]++;
    }
}

void td_sched_lane_end(td_sched *s, uint32_t number)
{
    const td_sched_entry *e = &s->entries[number];
    td_sched_share_leaves(&s->share, e->tier, e->client);
    if (td_sched_heap_has(&s->meetable, number))
        td_sched_heap_take(&s->meetable, number);
    else
        s->pressed[e->tier]--;
}

bool td_sched_lane_ahead(td_sched *s, uint32_t number)
{
    const td_sched_entry *e = &s->entries[number];
    return td_sched_share_ahead(&s->share, e->tier, e->client) &&
           s->pressed[e->tier] > 0 &&
           s->policy.strategy != TD_SCHED_ROUND_ROBIN;
}

// Where it would end anyway, if nothing else of its client can run before. By
// arrival alone others come up long before it.
static bool is_parked_at_once(td_sched *s, uint32_t number)
{
    return td_sched_strategy_scores(s->policy.strategy) &&
           park_of(s, number)->ready == 0 && td_sched_lane_ahead(s, number);
}

void td_sched_lane_put(td_sched *s, uint32_t number)
{
    begin(s, number);
    if (is_parked_at_once(s, number))
        enter_park(s, number);
    else
        seat_entry(s, number);
}

void td_sched_lane_in(td_sched *s, uint32_t number)
{
    seat_entry(s, number);
}

void td_sched_lane_out(td_sched *s, uint32_t number)
{
    if (s->entries[number].place == TD_SCHED_PARKED)
        leave_park(s, number);
    else
        unseat_entry(s, number);
}
