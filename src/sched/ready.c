// SPDX-License-Identifier: Apache-2.0
// Where a waiting request is, and what is expected of its member.
//
// A request begins to wait (td_sched_ready_wait) in the list of its member, the
// oldest first; if its protocol queues, in the queue by tier; and, if its
// answer becomes useless at some time, in the heap by that time.
// td_sched_ready_place() then decides between READY and HELD: a slot that runs
// one holds the next, and with ROUND_ROBIN a member's newer requests are held
// behind its oldest. Whoever leaves lets the next one go (release).
//
// Of each member two things are learnt. The cadence of its client says when its
// next request is expected (expected_ns), which counts for its oldest request
// in the score. And the time from its last answer to its next request is
// averaged with its spread (return_ns, return_off_ns), which tells a batch that
// could wait whether the members that were just answered will be back in time
// (`arriving` of each model).
//
// A request may claim priority and urgency; set_facts() holds the claim to what
// its member is allowed.
//
// PICKED is a state for the length of one td_sched_next(): a request that was
// taken out of its order for a batch that may not start goes back by unpick,
// and nothing has changed.
#include "sched/internal.h"

#include <assert.h>

#define NEWEST_WEIGHT 4 // a quarter of each new time
#define MOST_OFF 2      // by how often its mean error one is late at most

int64_t td_sched_ready_now(td_sched *s, int64_t now_ns)
{
    if (now_ns > s->now_ns) s->now_ns = now_ns;
    return s->now_ns;
}

static td_sched_slot *slot_of(td_sched *s, uint32_t number)
{
    return &s->slots[s->entries[number].item.member];
}

static bool is_mix(const td_sched *s, uint32_t number, uint32_t model,
                   uint64_t mix)
{
    return s->mixes[number].mix == mix && s->mixes[number].model == model;
}

static uint32_t find_mix(td_sched *s, uint32_t model, uint64_t mix)
{
    uint32_t spare = TD_SCHED_NOBODY;
    for (uint32_t i = 0; i < s->settings.mixes; i++) {
        if (is_mix(s, i, model, mix)) return i;
        if (s->mixes[i].waiting == 0 && spare == TD_SCHED_NOBODY) spare = i;
    }
    if (spare == TD_SCHED_NOBODY) return spare;
    s->mixes[spare] = (td_sched_mix){.mix = mix, .model = model};
    for (uint32_t tier = 0; tier < s->tiers; tier++) {
        td_sched_lane *lane = &s->lanes[tier * s->settings.mixes + spare];
        lane->model = model;
        lane->order.run_ns = s->models[model].run_ns;
    }
    return spare;
}

uint32_t td_sched_ready_mix(td_sched *s, uint32_t member, uint64_t mix)
{
    td_sched_slot *slot = &s->slots[member];
    uint32_t model = slot->member.model;
    if (is_mix(s, slot->mix, model, mix)) return slot->mix;
    uint32_t found = find_mix(s, model, mix);
    if (found != TD_SCHED_NOBODY) slot->mix = found;
    return found;
}

// The client's cadence counts for the member's oldest request: a long queue
// gains nothing by it, and its order stays.
static void expect(td_sched *s, uint32_t number, int64_t expected_ns)
{
    int64_t was_ns = s->facts[number].expected_ns;
    td_sched_entry *e = &s->entries[number];
    if (was_ns == expected_ns) return;
    s->facts[number].expected_ns = expected_ns;
    if (e->place != TD_SCHED_READY) return;
    td_sched_order *order = &s->lanes[e->lane].order;
    bool later = was_ns > s->now_ns && expected_ns > s->now_ns;
    if (later && s->facts[number].due_ns == TD_SCHED_NEVER_NS)
        td_sched_order_changes(order, e->leaf, expected_ns);
    else
        td_sched_order_changed(order, e->leaf, s->now_ns);
}

static void expect_oldest(td_sched *s, uint32_t member)
{
    const td_sched_slot *slot = &s->slots[member];
    if (!td_sched_strategy_scores(s->policy.strategy) ||
        slot->oldest == TD_SCHED_NOBODY)
        return;
    uint32_t second = s->entries[slot->oldest].after;
    expect(s, slot->oldest, slot->expected_ns);
    if (second != TD_SCHED_NOBODY) expect(s, second, TD_SCHED_NEVER_NS);
}

static void link_entry(td_sched *s, uint32_t number)
{
    td_sched_entry *entries = s->entries;
    td_sched_slot *slot = slot_of(s, number);
    uint64_t order = s->facts[number].order;
    uint32_t before = slot->newest;
    while (before != TD_SCHED_NOBODY && s->facts[before].order > order)
        before = entries[before].before;
    uint32_t *after =
        before == TD_SCHED_NOBODY ? &slot->oldest : &entries[before].after;
    entries[number].before = before;
    entries[number].after = *after;
    *after = number;
    if (entries[number].after == TD_SCHED_NOBODY)
        slot->newest = number;
    else
        entries[entries[number].after].before = number;
}

static void unlink_entry(td_sched *s, uint32_t number)
{
    td_sched_entry *entries = s->entries;
    td_sched_slot *slot = slot_of(s, number);
    uint32_t before = entries[number].before, after = entries[number].after;
    if (before == TD_SCHED_NOBODY)
        slot->oldest = after;
    else
        entries[before].after = after;
    if (after == TD_SCHED_NOBODY)
        slot->newest = before;
    else
        entries[after].before = before;
}

// Batches that wait look at who comes next.
static void watch_arrivals(td_sched *s, uint32_t member)
{
    const td_sched_slot *slot = &s->slots[member];
    td_sched_model *model = &s->models[slot->member.model];
    if (slot->oldest == TD_SCHED_NOBODY &&
        slot->expected_ns != TD_SCHED_NEVER_NS &&
        model->rule.wait == TD_SCHED_WAIT_SLACK)
        td_sched_heap_put(&model->arriving, member, slot->expected_ns);
    else
        td_sched_heap_take(&model->arriving, member);
}

void td_sched_ready_expect(td_sched *s, uint32_t member, int64_t expected_ns)
{
    s->slots[member].expected_ns = expected_ns;
    expect_oldest(s, member);
    watch_arrivals(s, member);
}

void td_sched_ready_arrived(td_sched *s, uint32_t member)
{
    td_sched_slot *slot = &s->slots[member];
    if (slot->answered_ns == TD_SCHED_NEVER_NS) return;
    int64_t took_ns = s->now_ns - slot->answered_ns + 1;
    slot->answered_ns = TD_SCHED_NEVER_NS;
    if (slot->return_ns == 0) slot->return_ns = took_ns;
    int64_t off_ns = took_ns - slot->return_ns;
    slot->return_ns += off_ns / NEWEST_WEIGHT;
    if (off_ns < 0) off_ns = -off_ns;
    slot->return_off_ns += (off_ns - slot->return_off_ns) / NEWEST_WEIGHT;
}

void td_sched_ready_answered(td_sched *s, uint32_t member)
{
    td_sched_slot *slot = &s->slots[member];
    td_sched_model *model = &s->models[slot->member.model];
    if (slot->running > 0 || slot->oldest != TD_SCHED_NOBODY) return;
    slot->answered_ns = s->now_ns;
    if (slot->return_ns == 0 || model->rule.wait != TD_SCHED_WAIT_SLACK) return;
    int64_t back_ns = slot->return_ns + MOST_OFF * slot->return_off_ns;
    td_sched_heap_put(&model->arriving, member, s->now_ns + back_ns);
}

// From when on nothing of its answer would be used.
static int64_t useless_ns(const td_sched *s, const td_sched_entry *e)
{
    uint32_t model = s->slots[e->item.member].member.model;
    return e->item.useless_ns - s->models[model].run_ns;
}

// A client that may not say so does not outrank the others.
static uint32_t priority_of(const td_sched *s, const td_sched_item *item)
{
    uint32_t best = s->slots[item->member].member.best_priority;
    return item->priority < best ? best : item->priority;
}

uint32_t td_sched_ready_tier_for(const td_sched *s, const td_sched_item *item)
{
    if (!td_sched_strategy_tiered(s->policy.strategy)) return 0;
    uint32_t priority = priority_of(s, item);
    uint32_t lowest = s->policy.tiers - 1;
    return priority < lowest ? priority : lowest;
}

// What a request says of itself, within what its client may say.
static void set_facts(td_sched *s, uint32_t number)
{
    td_sched_facts *f = &s->facts[number];
    const td_sched_item *item = &s->entries[number].item;
    const td_sched_member *member = &s->slots[item->member].member;
    f->priority = priority_of(s, item);
    float urgency = item->urgency > 0 ? item->urgency : 0; // not a number: 0
    f->urgency =
        urgency < member->most_urgency ? urgency : member->most_urgency;
    f->steps = item->steps;
    f->budget_ns = member->budget_ns > 0 ? member->budget_ns : 1;
    f->due_ns = item->due_ns;
    f->renews = !member->queued;
    f->client = member->client;
    f->model = member->model_id;
    f->expected_ns = TD_SCHED_NEVER_NS;
    f->since_ns = s->entries[number].request.waiting_since_ns;
    if (td_sched_strategy_scores(s->policy.strategy))
        td_sched_strategy_fix(&s->policy, f);
}

static void put(td_sched *s, uint32_t number)
{
    if (s->facts[number].round == 0) s->facts[number].round = ++s->last_round;
    td_sched_lane_put(s, number);
}

static bool in_rounds(const td_sched *s, uint32_t number)
{
    uint32_t member = s->entries[number].item.member;
    return s->policy.strategy == TD_SCHED_ROUND_ROBIN &&
           s->slots[member].member.queued;
}

// Behind an older one of its member, where members take turns.
static void hold(td_sched *s, uint32_t number)
{
    if (!in_rounds(s, number) || s->entries[number].place != TD_SCHED_READY)
        return;
    td_sched_lane_take(s, number, TD_SCHED_HELD);
    s->facts[number].round = 0;
}

static void release(td_sched *s, uint32_t number)
{
    if (number == TD_SCHED_NOBODY || !in_rounds(s, number) ||
        s->entries[number].place != TD_SCHED_HELD)
        return;
    put(s, number);
}

void td_sched_ready_place(td_sched *s, uint32_t number)
{
    const td_sched_slot *slot = slot_of(s, number);
    s->entries[number].place = TD_SCHED_HELD;
    bool held = slot->member.queued
                    ? in_rounds(s, number) && slot->oldest != number
                    : slot->running > 0;
    if (!held) put(s, number);
}

static void enqueue(td_sched *s, uint32_t number)
{
    const td_sched_entry *e = &s->entries[number];
    int64_t expiry_ns = e->request.arrived_ns + s->settings.queue.ttl_ns;
    if (expiry_ns < s->expiry_ns) s->expiry_ns = expiry_ns;
    td_sched_queue_put(s->queue, number, e->tier, s->facts[number].order);
}

void td_sched_ready_wait(td_sched *s, uint32_t number)
{
    td_sched_entry *e = &s->entries[number];
    const td_sched_member *member = &slot_of(s, number)->member;
    set_facts(s, number);
    uint32_t mix = td_sched_ready_mix(s, e->item.member, e->item.mix);
    assert(mix != TD_SCHED_NOBODY);
    s->mixes[mix].waiting++;
    e->tier = td_sched_ready_tier_for(s, &e->item);
    e->mix = mix;
    e->lane = e->tier * s->settings.mixes + mix;
    if (member->queued) enqueue(s, number);
    if (e->item.useless_ns != TD_SCHED_NEVER_NS)
        td_sched_heap_put(&s->useless_at, number, useless_ns(s, e));
    link_entry(s, number);
    if (e->after != TD_SCHED_NOBODY) hold(s, e->after);
    expect_oldest(s, e->item.member);
    td_sched_lane_watch(s, e->item.member);
    watch_arrivals(s, e->item.member);
}

void td_sched_ready_stop_waiting(td_sched *s, uint32_t number)
{
    td_sched_entry *e = &s->entries[number];
    if (e->place == TD_SCHED_READY)
        td_sched_lane_take(s, number, TD_SCHED_HELD);
    td_sched_heap_take(&s->useless_at, number);
    if (slot_of(s, number)->member.queued)
        td_sched_queue_take(s->queue, number, e->tier);
    s->mixes[e->mix].waiting--;
    unlink_entry(s, number);
    release(s, slot_of(s, number)->oldest);
    expect_oldest(s, e->item.member);
    td_sched_lane_watch(s, e->item.member);
    watch_arrivals(s, e->item.member);
}

void td_sched_ready_pick(td_sched *s, uint32_t number)
{
    td_sched_lane_take(s, number, TD_SCHED_PICKED);
    release(s, s->entries[number].after);
}

void td_sched_ready_unpick(td_sched *s, uint32_t number)
{
    uint32_t after = s->entries[number].after;
    if (after != TD_SCHED_NOBODY) hold(s, after);
    td_sched_lane_put(s, number);
}

void td_sched_ready_free(td_sched *s, uint32_t number)
{
    td_sched_entry *e = &s->entries[number];
    e->place = TD_SCHED_FREE;
    e->generation++;
    e->after = s->first_free;
    s->first_free = number;
}

// Whoever is next of its member has its turn.
static void pass_turn(td_sched *s, uint32_t number)
{
    uint32_t after = s->entries[number].after;
    if (after == TD_SCHED_NOBODY || !in_rounds(s, number)) return;
    if (s->facts[after].round == 0)
        s->facts[after].round = s->facts[number].round;
}

void td_sched_ready_end(td_sched *s, uint32_t number, td_sched_outcome outcome,
                        td_sched_ended *ret_ended)
{
    pass_turn(s, number);
    td_sched_ready_stop_waiting(s, number);
    td_sched_heap_take(&s->backing_off, number);
    const td_sched_entry *e = &s->entries[number];
    *ret_ended = (td_sched_ended){outcome, e->item.member, e->request};
    s->counts.outcomes[TD_SCHED_WAITING]--;
    s->counts.outcomes[outcome]++;
    td_sched_ready_free(s, number);
}
