// SPDX-License-Identifier: Apache-2.0
// What can run: READY in the order of its lane, or DEFERRED while its client is
// ahead of its share.
//
// Shares count only while somebody is late: its deadline cannot be met, or
// it has none, or a newer one had to take its place. Until then nobody loses by
// going later, and deadlines alone decide.
#include "sched/internal.h"

static void mark(td_sched *s, uint32_t lane)
{
    const td_sched_lane *l = &s->lanes[lane];
    uint64_t bit = UINT64_C(1) << lane;
    if (l->order.count + l->deferred > 0)
        s->lanes_in_use |= bit;
    else
        s->lanes_in_use &= ~bit;
}

static td_sched_deferred *deferred_of(td_sched *s, uint32_t number)
{
    const td_sched_entry *e = &s->entries[number];
    return &s->deferred_by_client[e->tier * s->settings.clients + e->client];
}

const td_sched_deferred *td_sched_lane_deferred(const td_sched *s,
                                                uint32_t tier, uint32_t client)
{
    return &s->deferred_by_client[tier * s->settings.clients + client];
}

static void keep_if(td_sched_heap *heap, uint32_t client, bool in, int64_t key)
{
    if (in)
        td_sched_heap_put(heap, client, key);
    else
        td_sched_heap_take(heap, client);
}

static void keep_deferred(td_sched *s, uint32_t tier, uint32_t client)
{
    const td_sched_deferred *list = td_sched_lane_deferred(s, tier, client);
    bool deferred = list->first != TD_SCHED_NOBODY;
    int64_t tag_ns = td_sched_share_tag_ns(&s->share, tier, client);
    keep_if(&s->deferred_clients[tier], client, deferred, tag_ns);
    keep_if(&s->all_deferred_clients[tier], client,
            deferred && list->ready == 0, tag_ns);
}

void td_sched_lane_tagged(td_sched *s, uint32_t tier, uint32_t client)
{
    if (td_sched_lane_deferred(s, tier, client)->first != TD_SCHED_NOBODY)
        keep_deferred(s, tier, client);
}

static void enter_order(td_sched *s, uint32_t number)
{
    td_sched_entry *e = &s->entries[number];
    e->leaf = td_sched_order_put(&s->lanes[e->lane].order, number, s->now_ns);
    e->place = TD_SCHED_READY;
    mark(s, e->lane);
    if (deferred_of(s, number)->ready++ == 0)
        td_sched_lane_tagged(s, e->tier, e->client);
}

static void leave_order(td_sched *s, uint32_t number)
{
    td_sched_entry *e = &s->entries[number];
    td_sched_order_take(&s->lanes[e->lane].order, e->leaf, s->now_ns);
    mark(s, e->lane);
    if (--deferred_of(s, number)->ready == 0)
        td_sched_lane_tagged(s, e->tier, e->client);
}

static void enter_deferred(td_sched *s, uint32_t number)
{
    td_sched_entry *e = &s->entries[number];
    td_sched_deferred *list = deferred_of(s, number);
    e->place = TD_SCHED_DEFERRED;
    e->deferred_before = list->last;
    e->deferred_after = TD_SCHED_NOBODY;
    if (list->last == TD_SCHED_NOBODY)
        list->first = number;
    else
        s->entries[list->last].deferred_after = number;
    list->last = number;
    s->lanes[e->lane].deferred++;
    s->deferred++;
    mark(s, e->lane);
    keep_deferred(s, e->tier, e->client);
}

void td_sched_lane_defer(td_sched *s, uint32_t number)
{
    leave_order(s, number);
    enter_deferred(s, number);
}

static void leave_deferred(td_sched *s, uint32_t number)
{
    td_sched_entry *e = &s->entries[number];
    td_sched_deferred *list = deferred_of(s, number);
    if (e->deferred_before == TD_SCHED_NOBODY)
        list->first = e->deferred_after;
    else
        s->entries[e->deferred_before].deferred_after = e->deferred_after;
    if (e->deferred_after == TD_SCHED_NOBODY)
        list->last = e->deferred_before;
    else
        s->entries[e->deferred_after].deferred_before = e->deferred_before;
    s->lanes[e->lane].deferred--;
    s->deferred--;
    mark(s, e->lane);
    keep_deferred(s, e->tier, e->client);
}

void td_sched_lane_resume(td_sched *s, uint32_t number)
{
    leave_deferred(s, number);
    enter_order(s, number);
}

static void begin(td_sched *s, uint32_t number)
{
    td_sched_entry *e = &s->entries[number];
    int64_t run_ns = s->lanes[e->lane].order.run_ns;
    int64_t last_ns =
        td_sched_strategy_last_ns(&s->policy, &s->facts[number], run_ns);
    td_sched_share_waits(&s->share, e->tier, e->client);
    if (e->passed_over || last_ns < s->now_ns)
        s->late[e->tier]++;
    else
        td_sched_heap_put(&s->in_time, number, last_ns);
}

void td_sched_lane_find_late(td_sched *s)
{
    while (td_sched_heap_key(&s->in_time) < s->now_ns) {
        uint32_t number = td_sched_heap_first(&s->in_time);
        td_sched_heap_take(&s->in_time, number);
        s->late[s->entries[number].tier]++;
    }
}

void td_sched_lane_end(td_sched *s, uint32_t number)
{
    const td_sched_entry *e = &s->entries[number];
    td_sched_share_leaves(&s->share, e->tier, e->client);
    if (td_sched_heap_has(&s->in_time, number))
        td_sched_heap_take(&s->in_time, number);
    else
        s->late[e->tier]--;
}

bool td_sched_lane_ahead(td_sched *s, uint32_t number)
{
    const td_sched_entry *e = &s->entries[number];
    return td_sched_share_ahead(&s->share, e->tier, e->client) &&
           s->late[e->tier] > 0 && s->policy.strategy != TD_SCHED_ROUND_ROBIN;
}

// Where it would end anyway, if nothing else of its client can run before. By
// arrival alone others come up long before it.
static bool is_deferred_at_once(td_sched *s, uint32_t number)
{
    return td_sched_strategy_scores(s->policy.strategy) &&
           deferred_of(s, number)->ready == 0 && td_sched_lane_ahead(s, number);
}

void td_sched_lane_put(td_sched *s, uint32_t number)
{
    begin(s, number);
    if (is_deferred_at_once(s, number))
        enter_deferred(s, number);
    else
        enter_order(s, number);
}

void td_sched_lane_in(td_sched *s, uint32_t number)
{
    enter_order(s, number);
}

void td_sched_lane_out(td_sched *s, uint32_t number)
{
    if (s->entries[number].place == TD_SCHED_DEFERRED)
        leave_deferred(s, number);
    else
        leave_order(s, number);
}
