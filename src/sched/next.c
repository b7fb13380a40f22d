// SPDX-License-Identifier: Apache-2.0
// Forms a batch and starts it.
//
// First the clock's work: retries whose wait is over are placed, requests that
// can no longer be met become late, and clients that the others have caught up
// with have their deferred requests back.
//
// Then the best request of all lanes decides the lane, by tier, band and value;
// a model's turn decides between models where all are scored. The best of that
// lane fill the batch as long as growing costs nobody a deadline that can still
// be met. A client that is ahead of its share is deferred when it comes up; if
// room would else stay empty, the one that is ahead by the least takes it.
//
// The batch rule says whether the batch starts now or waits for more: for a
// fixed time, until it is full, or with `slack` as long as those who wait lose
// less than those who are expected gain (sched/batch.c). Requests are only
// picked, out of their order, until then. A batch that waits puts them back,
// notes when to ask again, and the next best lane is tried.
//
// What starts is charged to its client at once, at the mean cost, and corrected
// when it is done.
#include "sched/internal.h"

#include <assert.h>

#define RESUME_MOST 8
#define MOMENT 8 // this part of a run of one

// The batch that is being formed.
typedef struct batch {
    uint32_t numbers[TD_SCHED_MAX_BATCH];
    uint32_t count;
    int64_t oldest_ns;
    int64_t due_ns; // the earliest that can still be met
} batch;

static void wake_retries(td_sched *s)
{
    while (td_sched_heap_key(&s->backing_off) <= s->now_ns) {
        uint32_t number = td_sched_heap_first(&s->backing_off);
        td_sched_heap_take(&s->backing_off, number);
        td_sched_ready_place(s, number);
    }
}

// A few of a client's, the better ones: it will be ahead again before more of
// them have run, however many there are.
static void resume_client(td_sched *s, uint32_t tier, uint32_t client)
{
    const td_sched_deferred *list = td_sched_lane_deferred(s, tier, client);
    for (int i = 0; i < RESUME_MOST && list->first != TD_SCHED_NOBODY; i++)
        td_sched_lane_resume(s, list->first);
}

// Those whom the others have caught up with.
static void resume_clients(td_sched *s)
{
    if (s->deferred == 0) return;
    for (uint32_t tier = 0; tier < s->tiers; tier++) {
        td_sched_heap *clients = &s->all_deferred_clients[tier];
        if (clients->count == 0) continue;
        int64_t limit_ns = INT64_MAX;
        if (s->late[tier] > 0)
            limit_ns = td_sched_share_limit_ns(&s->share, tier);
        while (clients->count > 0 && td_sched_heap_key(clients) <= limit_ns)
            resume_client(s, tier, td_sched_heap_first(clients));
    }
}

static int64_t tag_ns(const td_sched *s, uint32_t number)
{
    const td_sched_entry *e = &s->entries[number];
    return td_sched_share_tag_ns(&s->share, e->tier, e->client);
}

// The best of a lane whose client is not ahead of its share.
static uint32_t best_fair(td_sched *s, uint32_t lane)
{
    for (;;) {
        uint32_t number = td_sched_order_best(&s->lanes[lane].order, s->now_ns);
        if (number == TD_SCHED_NOBODY || !td_sched_lane_ahead(s, number))
            return number;
        td_sched_lane_defer(s, number);
    }
}

// Of those who are ahead, who is so by the least: for room that would else stay
// empty.
static uint32_t least_ahead(const td_sched *s, uint32_t lane)
{
    uint32_t tier = s->lanes[lane].tier, least = TD_SCHED_NOBODY;
    if (s->lanes[lane].deferred == 0) return least;
    const td_sched_heap *clients = &s->deferred_clients[tier];
    int64_t least_ns = TD_SCHED_NEVER_NS;
    for (uint32_t i = 0; i < clients->count; i++) {
        if (clients->cells[i].key >= least_ns) continue;
        uint32_t client = clients->cells[i].number;
        uint32_t at = td_sched_lane_deferred(s, tier, client)->first;
        for (; at != TD_SCHED_NOBODY; at = s->entries[at].deferred_after) {
            if (s->entries[at].lane != lane) continue;
            least = at;
            least_ns = clients->cells[i].key;
            break;
        }
    }
    return least;
}

// The best of a lane.
typedef struct candidate {
    uint32_t number; // NOBODY: none
    uint32_t lane;
    const td_sched_rank *rank;
} candidate;

// Between the best of two lanes.
static bool goes_before(const td_sched *s, const candidate *a,
                        const candidate *b)
{
    const td_sched_lane *a_lane = &s->lanes[a->lane];
    const td_sched_lane *b_lane = &s->lanes[b->lane];
    if (a_lane->tier != b_lane->tier) return a_lane->tier < b_lane->tier;
    const td_sched_model *a_model = &s->models[a_lane->model];
    const td_sched_model *b_model = &s->models[b_lane->model];
    if (s->policy.strategy == TD_SCHED_MODEL_DEADLINE && a_model != b_model &&
        a->rank->band == TD_SCHED_BAND_SCORED &&
        b->rank->band == TD_SCHED_BAND_SCORED)
        return a_model->turn < b_model->turn;
    int64_t until_ns;
    return td_sched_strategy_before(a->rank, b->rank, s->now_ns, &until_ns);
}

// Of two that are ahead, or nobody, who is so by less.
static uint32_t lesser(const td_sched *s, uint32_t a, uint32_t b)
{
    if (a == TD_SCHED_NOBODY || b == TD_SCHED_NOBODY)
        return a == TD_SCHED_NOBODY ? b : a;
    return tag_ns(s, b) < tag_ns(s, a) ? b : a;
}

// The best request that may run; NOBODY if there is none.
static uint32_t choose(td_sched *s, uint64_t lanes)
{
    candidate best = {.number = TD_SCHED_NOBODY};
    uint32_t spare = TD_SCHED_NOBODY;
    for (; lanes; lanes &= lanes - 1) {
        uint32_t lane = (uint32_t)__builtin_ctzll(lanes);
        if (best.number != TD_SCHED_NOBODY &&
            s->lanes[lane].tier > s->lanes[best.lane].tier)
            break;
        candidate next = {.number = best_fair(s, lane), .lane = lane};
        if (next.number == TD_SCHED_NOBODY) {
            spare = lesser(s, spare, least_ahead(s, lane));
            continue;
        }
        next.rank = td_sched_order_best_rank(&s->lanes[lane].order);
        if (best.number == TD_SCHED_NOBODY || goes_before(s, &next, &best))
            best = next;
    }
    return best.number != TD_SCHED_NOBODY ? best.number : spare;
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
                 batch *ret_batch)
{
    uint32_t lane = s->entries[first].lane;
    const td_sched_batch_times *times = &s->models[s->lanes[lane].model].times;
    batch *b = ret_batch;
    b->count = 0;
    b->oldest_ns = b->due_ns = TD_SCHED_NEVER_NS;
    add(s, b, first);
    bool any = rule->wait == TD_SCHED_WAIT_FULL; // whoever gets late by it
    while (
        b->count < rule->most &&
        (any || td_sched_batch_grows(times, b->count, b->due_ns, s->now_ns))) {
        uint32_t number = best_fair(s, lane);
        if (number == TD_SCHED_NOBODY) number = least_ahead(s, lane);
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
    const td_sched_lane *l = &s->lanes[lane];
    if (b->count == rule->most || l->order.count + l->deferred > 0) return true;
    int64_t at_ns = start_ns(s, rule, model, b);
    if (at_ns <= s->now_ns) return true;
    if (at_ns < s->batch_wake_ns) s->batch_wake_ns = at_ns;
    return false;
}

static void start(td_sched *s, uint32_t number, td_sched_pick *ret_pick)
{
    td_sched_entry *e = &s->entries[number];
    td_sched_lane_end(s, number);
    e->charged_ns = s->share.mean_run_ns;
    td_sched_share_charge(&s->share, e->tier, e->client, e->charged_ns);
    if (s->late[e->tier] == 0)
        td_sched_share_forgive(&s->share, e->tier, e->client);
    td_sched_lane_tagged(s, e->tier, e->client);
    td_sched_ready_stop_waiting(s, number);
    e->place = TD_SCHED_STARTED;
    s->facts[number].round = 0;
    s->slots[e->item.member].running++;
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
    td_sched_lane_find_late(s);
    resume_clients(s);
    uint64_t lanes = lanes_of(s, models);
    for (uint32_t first; (first = choose(s, lanes)) != TD_SCHED_NOBODY;) {
        uint32_t lane = s->entries[first].lane;
        td_sched_model *model = &s->models[s->lanes[lane].model];
        td_sched_batch_rule rule = rule_of(s, s->lanes[lane].model, most);
        batch b;
        fill(s, first, &rule, &b);
        if (full ? b.count == rule.most : starts(s, &rule, model, lane, &b)) {
            for (uint32_t i = 0; i < b.count; i++)
                start(s, b.numbers[i], &ret_picks[i]);
            model->turn = ++s->last_turn;
            return b.count;
        }
        for (uint32_t i = b.count; i-- > 0;)
            td_sched_ready_unpick(s, b.numbers[i]);
        lanes &= ~(UINT64_C(1) << lane);
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
