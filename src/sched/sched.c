// SPDX-License-Identifier: Apache-2.0
// The scheduler of one device: what waits, what runs next, and what becomes of
// it. This file makes it, lets members join and leave, drops what is not worth
// running, and changes its policy; the rest is in five files that share
// internal.h.
//
//   submit.c  a request arrives: it waits, replaces an older one, is refused
//   ready.c   where a waiting request is; what is expected of its member
//   lane.c    the order of what can run, and who starves
//   next.c    forms a batch and starts it
//   done.c    a running request has ended, or waits for a retry
//
// Requests are numbers into arrays of a fixed size (entries, facts), taken from
// a free list; nothing is allocated after td_sched_new(). A waiting request is
// in exactly one place (td_sched_place) and, beside it, in the list of its
// member, in the queue if its protocol queues, and in the heap of those that
// will be useless. `counts` is kept where places change, so that the outcomes
// always add up to what was submitted.
//
// A lane is what may share a batch, in a tier: a kind of batch (mix) times a
// priority. Each lane keeps its READY requests in an order (strategy/order.c)
// that knows the best one at any moment without scoring everybody again; a
// change of the policy or of what a run takes plays the order again.
//
// Times come in as arguments. One that goes back counts as standing still.
// Pure: no clock, no thread, no lock. The caller holds its own lock around
// every call, and borrows nothing from the scheduler beyond one call but
// td_sched_times().
//
// It ends by td_sched_free(). Payloads that still wait or run then belong to
// the caller, who has them back by td_sched_clear() and td_sched_done() before.
#include "sched/sched.h"

#include "sched/internal.h"

#include <assert.h>
#include <stdlib.h>

#define RUN_CHANGES 8 // a time that moved by an eighth moves the deadlines

const td_sched_settings td_sched_defaults = {
    .policy = {.strategy = TD_SCHED_MODEL_DEADLINE,
               .weights = TD_SCHED_WEIGHTS_PUBLISHED,
               .tiers = 4,
               .fairness = TD_SCHED_FAIRNESS},
    .queue = TD_SCHED_QUEUE_DEFAULTS,
    .batch = {.wait = TD_SCHED_WAIT_SLACK, .most = TD_SCHED_MAX_BATCH},
    .flush = {.wait = TD_SCHED_WAIT_FIXED, .most = 8, .wait_ns = 10000000},
    .members = 64,
    .models = 1,
    .mixes = 16,
    .running = 256,
};

const char *td_sched_outcome_name(td_sched_outcome outcome)
{
    static const char *const names[] = {
#define TD_SCHED_OUTCOME_NAME(name, text) text,
        TD_SCHED_OUTCOMES(TD_SCHED_OUTCOME_NAME)
#undef TD_SCHED_OUTCOME_NAME
    };
    return names[outcome];
}

static bool is_rule(const td_sched_batch_rule *rule)
{
    return rule->most >= 1 && rule->most <= TD_SCHED_MAX_BATCH &&
           rule->wait < TD_SCHED_WAIT_COUNT && rule->wait_ns >= 0;
}

static td_err check(const td_sched_settings *s, td_errinfo *info)
{
    const char *bad = NULL;
    if (s->members == 0) bad = "members: at least 1";
    if (s->models == 0 || s->models > TD_SCHED_MAX_MODELS)
        bad = "models: 1 to 64";
    if (!(s->policy.fairness >= 0 && s->policy.fairness <= 1))
        bad = "fairness: 0 to 1";
    if (s->policy.tiers == 0 || s->policy.tiers > TD_SCHED_MAX_TIERS)
        bad = "tiers: 1 to 8";
    if (s->mixes == 0 ||
        (uint64_t)s->mixes * s->policy.tiers > TD_SCHED_MAX_LANES)
        bad = "mixes: at least 1, and with the tiers at most 64";
    if (s->queue.size == 0) bad = "queue size: at least 1";
    if (s->queue.ttl_ns <= 0) bad = "time to live: more than 0";
    if (s->queue.backoff_ns < 0) bad = "backoff: not below 0";
    if (!is_rule(&s->batch) || !is_rule(&s->flush))
        bad = "batch: 1 to 64, with a wait not below 0";
    return bad ? td_fail(info, TD_ERR_INVALID, "%s", bad) : TD_OK;
}

static td_err make_arrays(td_sched *s)
{
    const td_sched_settings *set = &s->settings;
    size_t lanes = (size_t)set->mixes * s->tiers;
    assert(lanes > 0); // check() has seen both
    s->entries = calloc(s->capacity, sizeof *s->entries);
    s->facts =
        aligned_alloc(_Alignof(td_sched_facts), s->capacity * sizeof *s->facts);
    s->sorted = calloc(s->capacity, sizeof *s->sorted);
    s->slots = calloc(set->members, sizeof *s->slots);
    s->models = calloc(set->models, sizeof *s->models);
    s->mixes = calloc(set->mixes, sizeof *s->mixes);
    s->lanes = calloc(lanes, sizeof *s->lanes);
    bool all = s->entries && s->facts && s->sorted && s->slots && s->models &&
               s->mixes && s->lanes;
    return all ? TD_OK : TD_ERR_NOMEM;
}

static td_err make_parts(td_sched *s)
{
    const td_sched_settings *set = &s->settings;
    for (uint32_t i = 0; i < set->mixes * s->tiers; i++) {
        s->lanes[i].tier = i / set->mixes;
        TD_TRY(td_sched_order_init(&s->lanes[i].order, s->capacity, &s->policy,
                                   s->facts));
    }
    for (uint32_t i = 0; i < set->models; i++) {
        s->models[i].rule = set->batch;
        TD_TRY(td_sched_heap_init(&s->models[i].arriving, set->members));
    }
    TD_TRY(td_sched_heap_init(&s->useless_at, s->capacity));
    TD_TRY(td_sched_heap_init(&s->patient, set->members));
    for (uint32_t i = 0; i < s->tiers; i++)
        TD_TRY(td_sched_heap_init(&s->starving[i], set->members));
    TD_TRY(td_sched_heap_init(&s->backing_off, s->capacity));
    return td_sched_queue_new(s->capacity, s->tiers, &s->queue);
}

td_err td_sched_new(const td_sched_settings *settings, td_sched **ret_sched,
                    td_errinfo *info)
{
    TD_TRY(check(settings, info));
    TD_AUTO(td_sched) *s = calloc(1, sizeof *s);
    if (!s) return TD_ERR_NOMEM;
    s->settings = *settings;
    s->policy = settings->policy;
    s->tiers = settings->policy.tiers;
    s->now_ns = INT64_MIN;
    s->batch_wake_ns = s->expiry_ns = TD_SCHED_NEVER_NS;
    s->capacity =
        2 * settings->members + settings->queue.size + settings->running;
    TD_TRY(make_arrays(s));
    TD_TRY(make_parts(s));
    s->first_free = TD_SCHED_NOBODY;
    for (uint32_t i = s->capacity; i-- > 0;) {
        s->entries[i].after = s->first_free;
        s->first_free = i;
    }
    *ret_sched = TD_TAKE(s);
    return TD_OK;
}

static void free_parts(td_sched *s)
{
    for (uint32_t i = 0; s->lanes && i < s->settings.mixes * s->tiers; i++)
        td_sched_order_done(&s->lanes[i].order);
    for (uint32_t i = 0; s->models && i < s->settings.models; i++)
        td_sched_heap_done(&s->models[i].arriving);
    td_sched_heap_done(&s->useless_at);
    td_sched_heap_done(&s->patient);
    for (uint32_t i = 0; i < s->tiers; i++)
        td_sched_heap_done(&s->starving[i]);
    td_sched_heap_done(&s->backing_off);
    if (s->queue) td_sched_queue_free(s->queue);
}

void td_sched_free(td_sched *s)
{
    free_parts(s);
    free(s->entries);
    free(s->facts);
    free(s->sorted);
    free(s->slots);
    free(s->models);
    free(s->mixes);
    free(s->lanes);
    free(s);
}

td_err td_sched_join(td_sched *s, const td_sched_member *member,
                     uint32_t *ret_member)
{
    assert(member->model < s->settings.models);
    for (uint32_t i = 0; i < s->settings.members; i++) {
        if (s->slots[i].used) continue;
        s->slots[i] = (td_sched_slot){.member = *member,
                                      .used = true,
                                      .turn = ++s->last_start,
                                      .starves_in = TD_SCHED_MAX_TIERS,
                                      .oldest = TD_SCHED_NOBODY,
                                      .newest = TD_SCHED_NOBODY,
                                      .expected_ns = TD_SCHED_NEVER_NS,
                                      .answered_ns = TD_SCHED_NEVER_NS};
        *ret_member = i;
        return TD_OK;
    }
    return TD_ERR_FULL;
}

void td_sched_allow(td_sched *s, uint32_t member,
                    const td_sched_member *allowed)
{
    td_sched_member *m = &s->slots[member].member;
    assert(member < s->settings.members && s->slots[member].used);
    m->best_priority = allowed->best_priority;
    m->most_urgency = allowed->most_urgency;
    m->budget_ns = allowed->budget_ns;
}

td_err td_sched_leave(td_sched *s, uint32_t member)
{
    td_sched_slot *slot = &s->slots[member];
    assert(member < s->settings.members && slot->used);
    if (slot->running > 0 || slot->oldest != TD_SCHED_NOBODY)
        return TD_ERR_BUSY;
    td_sched_heap_take(&s->models[slot->member.model].arriving, member);
    slot->used = false;
    return TD_OK;
}

// Who expires first: they queue as they came, so it is the oldest of a tier.
static uint32_t first_to_expire(const td_sched *s, int64_t *ret_expiry_ns)
{
    uint32_t first = TD_SCHED_NOBODY;
    *ret_expiry_ns = TD_SCHED_NEVER_NS;
    for (uint32_t tier = 0; tier < s->tiers; tier++) {
        uint32_t number = s->queue->ends[tier].oldest;
        if (number == TD_SCHED_NOBODY) continue;
        int64_t arrived_ns = s->entries[number].request.arrived_ns;
        int64_t expiry_ns = arrived_ns + s->settings.queue.ttl_ns;
        if (expiry_ns >= *ret_expiry_ns) continue;
        first = number;
        *ret_expiry_ns = expiry_ns;
    }
    return first;
}

bool td_sched_drop(td_sched *s, int64_t now_ns, td_sched_ended *ret_ended)
{
    now_ns = td_sched_ready_now(s, now_ns);
    if (s->expiry_ns <= now_ns) {
        uint32_t first = first_to_expire(s, &s->expiry_ns);
        if (s->expiry_ns <= now_ns) {
            td_sched_ready_end(s, first, TD_SCHED_EXPIRED, ret_ended);
            return true;
        }
    }
    if (td_sched_heap_key(&s->useless_at) > now_ns) return false;
    td_sched_ready_end(s, td_sched_heap_first(&s->useless_at), TD_SCHED_USELESS,
                       ret_ended);
    return true;
}

bool td_sched_clear(td_sched *s, uint32_t member, td_sched_ended *ret_ended)
{
    uint32_t number = s->slots[member].oldest;
    if (number == TD_SCHED_NOBODY) return false;
    td_sched_ready_end(s, number, TD_SCHED_DEPARTED, ret_ended);
    return true;
}

int64_t td_sched_drop_ns(const td_sched *s)
{
    int64_t useless_ns = td_sched_heap_key(&s->useless_at);
    int64_t expiry_ns;
    (void)first_to_expire(s, &expiry_ns);
    return expiry_ns < useless_ns ? expiry_ns : useless_ns;
}

int64_t td_sched_wake_ns(const td_sched *s)
{
    int64_t wake_ns = s->batch_wake_ns;
    int64_t retry_ns = td_sched_heap_key(&s->backing_off);
    int64_t drop_ns = td_sched_drop_ns(s);
    if (retry_ns < wake_ns) wake_ns = retry_ns;
    return drop_ns < wake_ns ? drop_ns : wake_ns;
}

void td_sched_measured(td_sched *s, int64_t now_ns, uint32_t model, uint32_t n,
                       int64_t took_ns)
{
    td_sched_ready_now(s, now_ns);
    td_sched_model *m = &s->models[model];
    td_sched_batch_measured(&m->times, n, took_ns);
    int64_t run_ns = td_sched_batch_time_ns(&m->times, 1);
    int64_t moved_ns = llabs(run_ns - m->run_ns);
    if (moved_ns <= m->run_ns / RUN_CHANGES) return;
    m->run_ns = run_ns;
    for (uint32_t i = 0; i < s->settings.mixes * s->tiers; i++) {
        td_sched_lane *lane = &s->lanes[i];
        if (lane->model != model) continue;
        lane->order.run_ns = run_ns;
        td_sched_order_again(&lane->order, s->now_ns);
    }
}

const td_sched_batch_times *td_sched_times(const td_sched *s, uint32_t model)
{
    return &s->models[model].times;
}

static int by_order(const void *a, const void *b, void *facts)
{
    uint64_t x = ((const td_sched_facts *)facts)[*(const uint32_t *)a].order;
    uint64_t y = ((const td_sched_facts *)facts)[*(const uint32_t *)b].order;
    return (x > y) - (x < y);
}

static bool waits(const td_sched_entry *e)
{
    return e->place != TD_SCHED_FREE && e->place != TD_SCHED_STARTED;
}

static uint32_t sort_waiting(td_sched *s)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < s->capacity; i++)
        if (waits(&s->entries[i])) s->sorted[count++] = i;
    qsort_r(s->sorted, count, sizeof s->sorted[0], by_order, s->facts);
    return count;
}

static void wait_again(td_sched *s, uint32_t number)
{
    const td_sched_entry *e = &s->entries[number];
    s->facts[number].round = 0;
    td_sched_ready_wait(s, number);
    if (e->place != TD_SCHED_BACKOFF) td_sched_ready_place(s, number);
}

td_err td_sched_use(td_sched *s, int64_t now_ns, const td_sched_policy *policy)
{
    if (policy->tiers == 0 || policy->tiers > s->tiers ||
        policy->strategy >= TD_SCHED_STRATEGY_COUNT ||
        !(policy->fairness >= 0 && policy->fairness <= 1))
        return TD_ERR_INVALID;
    td_sched_ready_now(s, now_ns);
    uint32_t count = sort_waiting(s);
    for (uint32_t i = 0; i < count; i++)
        td_sched_ready_stop_waiting(s, s->sorted[i]);
    s->policy = *policy;
    for (uint32_t i = 0; i < count; i++)
        wait_again(s, s->sorted[i]);
    return TD_OK;
}

td_err td_sched_rules(td_sched *s, int64_t now_ns,
                      const td_sched_queue_settings *queue,
                      const td_sched_batch_rule *flush)
{
    td_sched_settings settings = s->settings;
    settings.queue = *queue;
    settings.queue.size = s->settings.queue.size;
    settings.flush = *flush;
    TD_TRY(check(&settings, NULL));
    s->settings = settings;
    return td_sched_use(s, now_ns, &s->policy); // the times of those that wait
}

td_err td_sched_batching(td_sched *s, uint32_t model,
                         const td_sched_batch_rule *rule)
{
    if (model >= s->settings.models || !is_rule(rule)) return TD_ERR_INVALID;
    s->models[model].rule = *rule;
    return TD_OK;
}

bool td_sched_retries(const td_sched *s)
{
    return s->settings.queue.retries > 0;
}

bool td_sched_waits(const td_sched *s, uint32_t member)
{
    return s->slots[member].oldest != TD_SCHED_NOBODY;
}

uint32_t td_sched_waiting(const td_sched *s)
{
    return (uint32_t)s->counts.outcomes[TD_SCHED_WAITING];
}

void td_sched_count(const td_sched *s, td_sched_counts *ret_counts)
{
    *ret_counts = s->counts;
}
