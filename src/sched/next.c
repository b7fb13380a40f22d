// SPDX-License-Identifier: Apache-2.0
// Forms a batch and starts it.
//
// First the clock's work: retries whose wait is over are placed, and members
// whose patience is over starve.
//
// Then the best request of all lanes decides the lane, by tier and value. With
// MODEL_DEADLINE models of which nothing that waits has a deadline take turns:
// the best of the one whose turn it is stands against those of the others. The
// best of that lane fill the batch as long as growing costs nobody a deadline
// that can still be met.
//
// A part of the requests that start, the policy's fairness, is for members that
// starve: each start adds that part to a credit, and a whole one is spent on
// whoever of them was served longest ago, whatever it claims. So nobody waits
// for more than its patience and as many starts as there are members, divided
// by that part. It does not reach over tiers, and is not saved up while nobody
// starves.
//
// The batch rule says whether the batch starts now or waits for more: for a
// fixed time, until it is full, or with `slack` as long as those who wait lose
// less than those who are expected gain (sched/batch.c). Requests are only
// picked, out of their order, until then. A batch that waits puts them back,
// notes when to ask again, and the next best lane is tried.
#include "sched/internal.h"

#include <assert.h>

#define MOMENT 8 // this part of a run of one

// The batch that is being formed.
typedef struct batch {
    uint32_t numbers[TD_SCHED_MAX_BATCH];
    uint32_t count;
    int64_t oldest_ns;
    int64_t due_ns; // the earliest that can still be met
    double credit;  // that is left of those who starve
} batch;

static void wake_retries(td_sched *s)
{
    while (td_sched_heap_key(&s->backing_off) <= s->now_ns) {
        uint32_t number = td_sched_heap_first(&s->backing_off);
        td_sched_heap_take(&s->backing_off, number);
        td_sched_ready_place(s, number);
    }
}

// One more is to start.
static double earn(const td_sched *s, double credit)
{
    credit += s->policy.fairness;
    return credit < 1 ? credit : 1;
}

// The best of a lane.
typedef struct candidate {
    uint32_t number; // NOBODY: none
    uint32_t lane;
    const td_sched_rank *rank;
} candidate;

static bool goes_before(const td_sched *s, const candidate *a,
                        const candidate *b)
{
    int64_t until_ns;
    if (b->number == TD_SCHED_NOBODY) return true;
    if (a->number == TD_SCHED_NOBODY) return false;
    return td_sched_strategy_before(a->rank, b->rank, s->now_ns, &until_ns);
}

// Between models that take turns.
static bool has_turn_before(const td_sched *s, const candidate *a,
                            const candidate *b)
{
    if (b->number == TD_SCHED_NOBODY) return true;
    uint64_t a_turn = s->models[s->lanes[a->lane].model].turn;
    uint64_t b_turn = s->models[s->lanes[b->lane].model].turn;
    if (a_turn == b_turn) return goes_before(s, a, b); // of one, or none yet
    return a_turn < b_turn;
}

// The models that take turns, a bit each: none of theirs has a deadline.
static uint64_t in_turns(const td_sched *s, uint64_t lanes)
{
    uint64_t with = 0;
    if (s->policy.strategy != TD_SCHED_MODEL_DEADLINE) return 0;
    for (; lanes; lanes &= lanes - 1) {
        const td_sched_lane *lane = &s->lanes[__builtin_ctzll(lanes)];
        if (lane->due > 0) with |= UINT64_C(1) << lane->model;
    }
    return ~with;
}

// Those of the first tier in which somebody waits.
static uint64_t first_tier(const td_sched *s, uint64_t lanes)
{
    uint64_t found = 0;
    uint32_t first = s->lanes[__builtin_ctzll(lanes)].tier;
    for (; lanes; lanes &= lanes - 1)
        if (s->lanes[__builtin_ctzll(lanes)].tier == first)
            found |= lanes & -lanes;
    return found;
}

// Of the lanes' best; of models that take turns only of the one whose it is.
static uint32_t best_of_all(td_sched *s, uint64_t lanes)
{
    if ((lanes & (lanes - 1)) == 0) // as mostly
        return td_sched_order_best(&s->lanes[__builtin_ctzll(lanes)].order,
                                   s->now_ns);
    candidate best = {.number = TD_SCHED_NOBODY}, in_turn = best;
    uint64_t turns = in_turns(s, lanes);
    for (; lanes; lanes &= lanes - 1) {
        uint32_t lane = (uint32_t)__builtin_ctzll(lanes);
        candidate next = {.lane = lane};
        next.number = td_sched_order_best(&s->lanes[lane].order, s->now_ns);
        next.rank = td_sched_order_best_rank(&s->lanes[lane].order);
        if (turns >> s->lanes[lane].model & 1) {
            if (has_turn_before(s, &next, &in_turn)) in_turn = next;
        } else if (goes_before(s, &next, &best)) {
            best = next;
        }
    }
    return goes_before(s, &in_turn, &best) ? in_turn.number : best.number;
}

// The next request to start, of these lanes; NOBODY if there is none.
static uint32_t choose(td_sched *s, uint64_t lanes, double *credit)
{
    lanes &= s->lanes_in_use;
    if (lanes == 0) return TD_SCHED_NOBODY;
    if (lanes & (lanes - 1)) lanes = first_tier(s, lanes);
    *credit = earn(s, *credit);
    uint32_t starving = TD_SCHED_NOBODY;
    if (*credit >= 1) starving = td_sched_lane_starving(s, lanes);
    if (starving == TD_SCHED_NOBODY) return best_of_all(s, lanes);
    *credit -= 1;
    return starving;
}

static uint64_t lanes_of(const td_sched *s, uint64_t models)
{
    uint64_t lanes = 0;
    if (models == TD_SCHED_ALL_MODELS) return s->lanes_in_use;
    for (uint64_t left = s->lanes_in_use; left; left &= left - 1) {
        uint32_t lane = (uint32_t)__builtin_ctzll(left);
        if (models >> s->lanes[lane].model & 1) lanes |= left & -left;
    }
    return lanes;
}

static bool can_be_met(const td_sched *s, uint32_t number)
{
    int64_t run_ns = s->lanes[s->entries[number].lane].order.run_ns;
    return s->now_ns <=
           td_sched_strategy_last_ns(&s->policy, &s->facts[number], run_ns);
}

static void add(td_sched *s, batch *b, uint32_t number)
{
    const td_sched_facts *f = &s->facts[number];
    if (can_be_met(s, number) && f->due_ns < b->due_ns) b->due_ns = f->due_ns;
    if (f->since_ns < b->oldest_ns) b->oldest_ns = f->since_ns;
    td_sched_ready_pick(s, number);
    b->numbers[b->count++] = number;
}

static void fill(td_sched *s, uint32_t first, const td_sched_batch_rule *rule,
                 batch *b)
{
    uint32_t lane = s->entries[first].lane;
    const td_sched_batch_times *times = &s->models[s->lanes[lane].model].times;
    b->count = 0;
    b->oldest_ns = b->due_ns = TD_SCHED_NEVER_NS;
    add(s, b, first);
    bool any = rule->wait == TD_SCHED_WAIT_FULL; // whoever gets late by it
    while (
        b->count < rule->most &&
        (any || td_sched_batch_grows(times, b->count, b->due_ns, s->now_ns))) {
        uint32_t number = choose(s, UINT64_C(1) << lane, &b->credit);
        if (number == TD_SCHED_NOBODY) return;
        add(s, b, number);
    }
}

// Who is expected of the members that do not wait. One who is late is still
// waited for, but only for a moment.
static void expect_more(const td_sched *s, td_sched_model *model, uint32_t room,
                        td_sched_batch_state *state)
{
    td_sched_heap *arriving = &model->arriving;
    int64_t moment_ns = td_sched_batch_time_ns(&model->times, 1) / MOMENT;
    int64_t after_ns = td_sched_batch_time_ns(&model->times, room);
    while (td_sched_heap_key(arriving) <= s->now_ns - moment_ns)
        td_sched_heap_take(arriving, td_sched_heap_first(arriving));
    // Who comes later than a batch of them takes is not worth the wait.
    state->arriving = td_sched_heap_keys(arriving, s->now_ns + after_ns, room,
                                         state->arriving_ns);
    int64_t late_ns = s->now_ns;
    for (uint32_t i = 0; i < state->arriving; i++) {
        int64_t *at_ns = &state->arriving_ns[i];
        if (*at_ns <= s->now_ns) late_ns = *at_ns + moment_ns;
        if (*at_ns < late_ns) *at_ns = late_ns;
    }
}

// Who of those in the batch will be back before one that runs after it is done.
static void expect_again(const td_sched *s, const td_sched_model *model,
                         const batch *b, td_sched_batch_state *state)
{
    int64_t run_ns = td_sched_batch_time_ns(&model->times, 1), sum_ns = 0;
    for (uint32_t i = 0; i < b->count; i++) {
        uint32_t member = s->entries[b->numbers[i]].item.member;
        int64_t return_ns = s->slots[member].return_ns;
        if (return_ns == 0 || return_ns >= run_ns) continue;
        state->returning++;
        sum_ns += return_ns;
    }
    if (state->returning > 0) state->return_ns = sum_ns / state->returning;
}

static int64_t start_ns(td_sched *s, const td_sched_batch_rule *rule,
                        td_sched_model *model, const batch *b)
{
    td_sched_batch_state state = {
        .count = b->count, .oldest_ns = b->oldest_ns, .due_ns = b->due_ns};
    if (b->count < rule->most && rule->wait == TD_SCHED_WAIT_SLACK) {
        expect_more(s, model, rule->most - b->count, &state);
        expect_again(s, model, b, &state);
    }
    return td_sched_batch_start_ns(rule, &model->times, &state, s->now_ns);
}

static td_sched_batch_rule rule_of(const td_sched *s, uint32_t model,
                                   uint32_t most)
{
    bool flushes = s->policy.strategy == TD_SCHED_BATCH_OPTIMIZED;
    td_sched_batch_rule own = s->models[model].rule;
    td_sched_batch_rule rule = flushes ? s->settings.flush : own;
    if (rule.most > own.most) rule.most = own.most;
    if (rule.most > most) rule.most = most;
    return rule;
}

static bool starts(td_sched *s, const td_sched_batch_rule *rule,
                   td_sched_model *model, uint32_t lane, const batch *b)
{
    // One that was not let grow is as full as it will be.
    if (b->count == rule->most || s->lanes[lane].order.count > 0) return true;
    int64_t at_ns = start_ns(s, rule, model, b);
    if (at_ns <= s->now_ns) return true;
    if (at_ns < s->batch_wake_ns) s->batch_wake_ns = at_ns;
    return false;
}

static void start(td_sched *s, uint32_t number, td_sched_pick *ret_pick)
{
    td_sched_entry *e = &s->entries[number];
    td_sched_slot *slot = &s->slots[e->item.member];
    slot->turn = ++s->last_start;
    td_sched_ready_stop_waiting(s, number);
    e->place = TD_SCHED_STARTED;
    s->facts[number].round = 0;
    slot->running++;
    s->counts.outcomes[TD_SCHED_WAITING]--;
    s->counts.outcomes[TD_SCHED_RUNNING]++;
    *ret_pick = (td_sched_pick){(uint64_t)e->generation << 32 | number,
                                e->item.member, e->request, e->item.due_ns};
}

static uint32_t next(td_sched *s, int64_t now_ns, uint64_t models,
                     uint32_t most, bool full, td_sched_pick *ret_picks)
{
    td_sched_ready_now(s, now_ns);
    s->batch_wake_ns = TD_SCHED_NEVER_NS;
    wake_retries(s);
    td_sched_lane_find_starving(s);
    uint64_t lanes = lanes_of(s, models);
    batch b = {.credit = s->credit};
    for (uint32_t first;
         (first = choose(s, lanes, &b.credit)) != TD_SCHED_NOBODY;) {
        uint32_t lane = s->entries[first].lane;
        td_sched_model *model = &s->models[s->lanes[lane].model];
        td_sched_batch_rule rule = rule_of(s, s->lanes[lane].model, most);
        fill(s, first, &rule, &b);
        if (full ? b.count == rule.most : starts(s, &rule, model, lane, &b)) {
            for (uint32_t i = 0; i < b.count; i++)
                start(s, b.numbers[i], &ret_picks[i]);
            model->turn = ++s->last_turn;
            s->credit = b.credit;
            return b.count;
        }
        for (uint32_t i = b.count; i-- > 0;)
            td_sched_ready_unpick(s, b.numbers[i]);
        lanes &= ~(UINT64_C(1) << lane);
        b.credit = s->credit;
    }
    return 0;
}

uint32_t td_sched_next(td_sched *s, int64_t now_ns, uint64_t models,
                       uint32_t most, td_sched_pick *ret_picks)
{
    return next(s, now_ns, models, most, false, ret_picks);
}

uint32_t td_sched_next_full(td_sched *s, int64_t now_ns, uint64_t models,
                            uint32_t most, td_sched_pick *ret_picks)
{
    return next(s, now_ns, models, most, true, ret_picks);
}

uint64_t td_sched_models_waiting(const td_sched *s)
{
    uint64_t models = 0;
    for (uint64_t left = s->lanes_in_use; left; left &= left - 1)
        models |= UINT64_C(1) << s->lanes[__builtin_ctzll(left)].model;
    return models;
}
