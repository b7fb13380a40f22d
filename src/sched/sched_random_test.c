// SPDX-License-Identifier: Apache-2.0
// Random lives of a scheduler, each step held against a plain list: what runs
// is what a search over everybody would find, and every request ends once.
#include "sched/sched_fixture.h"

#include "base/rand.h"

#include <math.h>
#include <string.h>

#define CLIENTS 5
#define MODELS 2
#define MEMBERS (CLIENTS * 2)
#define REQUESTS 20000
#define QUEUE_SIZE 12
#define TIERS 3
#define BUDGET_NS (50 * MS)

// What the list knows of a request; its number is its seq.
typedef struct known {
    td_sched_outcome outcome;
    bool held, resting; // by its slot; until a retry
    int64_t resting_until_ns;
    td_sched_item item;
    int64_t since_ns, arrived_ns;
    uint32_t place; // in the order of arrival
} known;

typedef struct world {
    td_sched *sched;
    td_sched_policy policy;
    bool waits; // batches wait for more, so that a lane may be passed over
    td_rand rand;
    int64_t now_ns;
    uint64_t count;
    uint32_t places;
    known all[REQUESTS];
    char payloads[REQUESTS];
    int64_t expected_ns[MEMBERS];
    uint64_t running[MEMBERS]; // of slots: seq
    uint64_t turns[MODELS];    // last batch
    uint64_t turn;
    uint64_t batches;
    uint64_t served[MEMBERS];      // in which batch last
    uint64_t ready_since[MEMBERS]; // how many batches had run; NEVER: is not
    td_sched_pick started[64];
    uint32_t started_count;
} world;

static uint64_t below(world *w, uint64_t bound)
{
    return td_rand_u64(&w->rand) % bound;
}

static bool queued(uint32_t member)
{
    return member % 2 == 0;
}

static uint32_t client_of(uint32_t member)
{
    return member / 2;
}

static uint32_t model_of(uint32_t member)
{
    return client_of(member) % MODELS;
}

static uint32_t tier_of(const world *w, const known *k)
{
    if (!td_sched_strategy_tiered(w->policy.strategy)) return 0;
    return k->item.priority < TIERS - 1 ? k->item.priority : TIERS - 1;
}

// The member's cadence counts for its oldest that waits.
static bool is_oldest(const world *w, const known *k)
{
    for (uint64_t i = 1; i <= w->count; i++)
        if (w->all[i].outcome == TD_SCHED_WAITING &&
            w->all[i].item.member == k->item.member &&
            w->all[i].place < k->place)
            return false;
    return true;
}

// The published score, as it is written down.
static double score(const world *w, const known *k)
{
    double t_next = 1;
    if (is_oldest(w, k) && w->expected_ns[k->item.member] != NEVER)
        t_next = (double)(w->expected_ns[k->item.member] - w->now_ns) / 1e9;
    double steps = 0;
    if (k->item.steps <= 4) steps = 6;
    if (k->item.steps <= 2) steps = 10.5;
    if (k->item.steps == 0) steps = 15;
    double priority = k->item.priority > 10 ? 10 : k->item.priority;
    double age = (double)(w->now_ns - k->since_ns) / (double)BUDGET_NS;
    return 45 * fmax(0, -t_next) / 0.1 + 25 * (double)k->item.urgency + steps +
           10 * (10 - priority) / 10 + 15 * fmin(age, 1);
}

// What stands in its place where a deadline is known. No time is known of
// engines.
static double due_score(const world *w, const known *k)
{
    double urgency = (double)k->item.urgency;
    double priority = k->item.priority > 10 ? 10 : k->item.priority;
    double slack_ms = (double)(k->item.due_ns - w->now_ns) / MS;
    int64_t next_ns = is_oldest(w, k) ? w->expected_ns[k->item.member] : NEVER;
    bool can_wait = !queued(k->item.member) && next_ns <= k->item.due_ns;
    double back = slack_ms < 0 || can_wait ? 60 * (1 - urgency) : 0;
    return 25 * urgency + (10 - priority) + 15 - 15 * fmax(slack_ms, 0) / 50 -
           back;
}

static double value(const world *w, const known *k)
{
    return k->item.due_ns == NEVER ? score(w, k) : due_score(w, k);
}

static uint64_t turn_of(const world *w, const known *k)
{
    return w->turns[model_of(k->item.member)];
}

static bool can_run(const world *w, const known *k, uint64_t models);
static bool same_batch(const world *w, const known *a, const known *b);

// Models without a deadline in that tier take turns.
static bool takes_turns(const world *w, const known *k)
{
    if (w->policy.strategy != TD_SCHED_MODEL_DEADLINE) return false;
    for (uint64_t i = 1; i <= w->count; i++)
        if (can_run(w, &w->all[i], ALL) && w->all[i].item.due_ns != NEVER &&
            model_of(w->all[i].item.member) == model_of(k->item.member))
            return false;
    return true;
}

// Another model would be asked before this one; in doubt, before anything ran.
static bool is_out_of_turn(const world *w, const known *k)
{
    return takes_turns(w, k) &&
           turn_of(w, k) >= w->turns[1 - model_of(k->item.member)];
}

static bool scored_before(const world *w, const known *a, const known *b)
{
    bool same = model_of(a->item.member) == model_of(b->item.member);
    if (!same && takes_turns(w, a) && takes_turns(w, b))
        return turn_of(w, a) < turn_of(w, b);
    if (!same && is_out_of_turn(w, a)) return false;
    return value(w, a) - value(w, b) > 1e-6;
}

// With round robin only the oldest of a member can be first in a batch.
static bool in_turn(const world *w, const known *k)
{
    return w->policy.strategy != TD_SCHED_ROUND_ROBIN ||
           !queued(k->item.member) || is_oldest(w, k);
}

// Whether a clearly goes before b. Of two members that take turns: a could run
// since before b's last turn, and was not let.
static bool goes_before(const world *w, const known *a, const known *b)
{
    if (tier_of(w, a) != tier_of(w, b)) return tier_of(w, a) < tier_of(w, b);
    if (td_sched_strategy_scores(w->policy.strategy))
        return scored_before(w, a, b);
    if (w->policy.strategy != TD_SCHED_ROUND_ROBIN) return a->place < b->place;
    uint32_t a_member = a->item.member, b_member = b->item.member;
    if (a_member == b_member) return a->place < b->place;
    return in_turn(w, a) && w->ready_since[a_member] < w->served[b_member];
}

static bool can_run(const world *w, const known *k, uint64_t models)
{
    return k->outcome == TD_SCHED_WAITING && !k->held &&
           (!k->resting || k->resting_until_ns <= w->now_ns) &&
           (models >> model_of(k->item.member) & 1);
}

static bool same_batch(const world *w, const known *a, const known *b)
{
    return model_of(a->item.member) == model_of(b->item.member) &&
           a->item.mix == b->item.mix && tier_of(w, a) == tier_of(w, b);
}

static known *known_of(world *w, const td_sched_request *request)
{
    assert_in_range(request->seq, 1, w->count);
    assert_ptr_equal(request->payload, &w->payloads[request->seq]);
    return &w->all[request->seq];
}

static void ended(world *w, const td_sched_ended *e)
{
    if (!e->request.payload) return;
    known *k = known_of(w, &e->request);
    assert_int_equal(k->outcome, TD_SCHED_WAITING);
    k->outcome = e->outcome;
    if (e->outcome != TD_SCHED_SUPERSEDED)
        w->ready_since[e->member] = UINT64_MAX;
}

static void submit_any(world *w)
{
    if (w->count + 1 >= REQUESTS) return;
    uint32_t member = (uint32_t)below(w, MEMBERS);
    known *k = &w->all[++w->count];
    td_sched_item *item = &k->item;
    *item = item_of(member, w->count);
    item->payload = &w->payloads[w->count];
    item->mix = below(w, 2);
    item->priority = (uint32_t)below(w, 5);
    item->urgency = (float)below(w, 5) / 4;
    if (below(w, 2)) item->steps = (uint32_t)below(w, 7);
    if (below(w, 2)) item->due_ns = w->now_ns + (int64_t)below(w, 80 * MS);
    if (below(w, 4) == 0)
        item->useless_ns = w->now_ns + (int64_t)below(w, 200 * MS);
    if (below(w, 2)) item->expected_ns = w->now_ns + (int64_t)below(w, 50 * MS);
    k->arrived_ns = k->since_ns = w->now_ns;
    k->place = ++w->places;
    k->held = !queued(member) && w->running[member];
    td_sched_ended other;
    k->outcome = td_sched_submit(w->sched, w->now_ns, item, &other);
    w->expected_ns[member] = item->expected_ns;
    if (other.request.payload && other.outcome == TD_SCHED_SUPERSEDED) {
        const known *older = &w->all[other.request.seq];
        k->since_ns = older->since_ns;
        k->place = older->place;
    }
    ended(w, &other);
}

static void drop_all(world *w)
{
    td_sched_ended e;
    while (td_sched_drop(w->sched, w->now_ns, &e)) {
        const known *k = &w->all[e.request.seq];
        if (e.outcome == TD_SCHED_EXPIRED)
            assert_true(w->now_ns - k->arrived_ns >= 300 * MS);
        else
            assert_true(k->item.useless_ns <= w->now_ns);
        ended(w, &e);
    }
    for (uint64_t i = 1; i <= w->count; i++)
        if (w->all[i].outcome == TD_SCHED_WAITING)
            assert_true(w->all[i].item.useless_ns > w->now_ns);
}

static bool is_among(const td_sched_pick *picks, uint32_t count, uint64_t seq)
{
    for (uint32_t i = 0; i < count; i++)
        if (picks[i].request.seq == seq) return true;
    return false;
}

static void check_pick(world *w, const td_sched_pick *picks, uint32_t at,
                       uint64_t models)
{
    const known *k = known_of(w, &picks[at].request);
    assert_true(can_run(w, k, models));
    assert_int_equal(picks[at].request.waiting_since_ns, k->since_ns);
    if (at > 0) assert_true(same_batch(w, &w->all[picks[0].request.seq], k));
    for (uint64_t i = 1; i <= w->count; i++) {
        const known *other = &w->all[i];
        if (other == k || !can_run(w, other, models)) continue;
        if ((at > 0 || w->waits) && !same_batch(w, other, k)) continue;
        if (is_among(picks, at, i)) continue;
        if (goes_before(w, other, k))
            fail_msg("%s: %u before %u",
                     td_sched_strategy_name(w->policy.strategy), (unsigned)i,
                     (unsigned)picks[at].request.seq);
    }
}

static void started(world *w, const td_sched_pick *pick)
{
    known *k = &w->all[pick->request.seq];
    k->outcome = TD_SCHED_RUNNING;
    k->resting = false;
    if (!queued(pick->member)) w->running[pick->member] = pick->request.seq;
    w->started[w->started_count++] = *pick;
}

// With round robin one that cannot join the batch holds those behind it.
static bool is_reached(const world *w, const known *k, const known *first,
                       uint64_t models)
{
    if (!can_run(w, k, models) || (first && !same_batch(w, k, first)))
        return false;
    if (in_turn(w, k)) return true;
    if (!first) return false;
    for (uint64_t i = 1; i <= w->count; i++) {
        const known *older = &w->all[i];
        if (older->outcome == TD_SCHED_WAITING && older->place < k->place &&
            older->item.member == k->item.member &&
            !(can_run(w, older, models) && same_batch(w, older, first)))
            return false;
    }
    return true;
}

// How many a batch that begins with `first` could have.
static uint32_t could_run(const world *w, const known *first, uint64_t models)
{
    uint32_t count = 0;
    for (uint64_t i = 1; i <= w->count; i++)
        if (is_reached(w, &w->all[i], first, models)) count++;
    return count;
}

static void run_next(world *w)
{
    uint32_t most = (uint32_t)below(w, 4) + 1;
    if (w->started_count + most > TD_COUNT_OF(w->started)) return;
    uint64_t models = below(w, 4);
    td_sched_pick picks[4];
    uint32_t count = td_sched_next(w->sched, w->now_ns, models, most, picks);
    uint32_t possible =
        could_run(w, count ? &w->all[picks[0].request.seq] : NULL, models);
    if (count == 0 && w->waits) return;
    assert_int_equal(count, possible < most ? possible : most);
    for (uint32_t i = 0; i < count; i++)
        check_pick(w, picks, i, models);
    for (uint32_t i = 0; i < count; i++)
        started(w, &picks[i]);
    if (count == 0) return;
    w->turns[model_of(picks[0].member)] = ++w->turn;
    w->batches++;
    for (uint32_t i = 0; i < count; i++) {
        w->served[picks[i].member] = w->batches;
        w->ready_since[picks[i].member] = UINT64_MAX;
    }
}

static void finish_one(world *w)
{
    if (w->started_count == 0) return;
    uint32_t at = (uint32_t)below(w, w->started_count);
    td_sched_pick pick = w->started[at];
    w->started[at] = w->started[--w->started_count];
    known *k = &w->all[pick.request.seq];
    bool fails = below(w, 3) == 0;
    k->outcome = td_sched_done(w->sched, w->now_ns, pick.ticket,
                               fails ? TD_SCHED_FAILED : TD_SCHED_ANSWERED);
    if (k->outcome == TD_SCHED_WAITING) {
        k->resting = true;
        k->resting_until_ns = w->now_ns + 10 * MS;
    }
    if (queued(pick.member)) return;
    w->running[pick.member] = 0;
    for (uint64_t i = 1; i <= w->count; i++)
        if (w->all[i].item.member == pick.member) w->all[i].held = false;
}

static void clear_any(world *w)
{
    uint32_t member = (uint32_t)below(w, MEMBERS);
    td_sched_ended e;
    while (td_sched_clear(w->sched, member, &e))
        ended(w, &e);
}

static void check_counts(const world *w)
{
    uint64_t outcomes[TD_SCHED_OUTCOME_COUNT] = {0};
    for (uint64_t i = 1; i <= w->count; i++)
        outcomes[w->all[i].outcome]++;
    td_sched_counts counts;
    td_sched_count(w->sched, &counts);
    assert_int_equal(counts.submitted, w->count);
    assert_memory_equal(counts.outcomes, outcomes, sizeof outcomes);
}

static void change_strategy(world *w)
{
    w->policy.strategy = (td_sched_strategy)below(w, TD_SCHED_STRATEGY_COUNT);
    assert_int_equal(td_sched_use(w->sched, w->now_ns, &w->policy), TD_OK);
    memset(w->served, 0, sizeof w->served);
}

static void note_ready(world *w)
{
    bool ready[MEMBERS] = {false};
    for (uint64_t i = 1; i <= w->count; i++)
        if (can_run(w, &w->all[i], ALL) && in_turn(w, &w->all[i]))
            ready[w->all[i].item.member] = true;
    for (uint32_t i = 0; i < MEMBERS; i++) {
        if (!ready[i]) w->ready_since[i] = UINT64_MAX;
        if (ready[i] && w->ready_since[i] == UINT64_MAX)
            w->ready_since[i] = w->batches;
    }
}

static void step(world *w, bool changes)
{
    w->now_ns += (int64_t)below(w, 3) * (int64_t)below(w, 5 * MS);
    uint64_t what = below(w, 100);
    if (what < 45) {
        submit_any(w);
    } else if (what < 70) {
        drop_all(w);
        run_next(w);
    } else if (what < 97) {
        finish_one(w);
    } else if (what < 98) {
        clear_any(w);
    } else if (changes) {
        change_strategy(w);
    }
    note_ready(w);
}

static void live(td_sched_strategy strategy, uint64_t seed, bool changes,
                 uint64_t outcomes[TD_SCHED_OUTCOME_COUNT])
{
    static world w;
    w = (world){.policy = {.strategy = strategy,
                           .weights = TD_SCHED_WEIGHTS_PUBLISHED,
                           .tiers = TIERS}};
    td_rand_init(&w.rand, seed);
    td_sched_settings settings = settings_of(strategy);
    settings.queue.size = QUEUE_SIZE;
    settings.queue.ttl_ns = 300 * MS;
    settings.queue.retries = 1;
    settings.queue.overflow =
        seed % 2 ? TD_SCHED_DROP_OLDEST : TD_SCHED_REJECT_NEWEST;
    w.waits = seed % 3 == 0;
    settings.batch.wait = w.waits ? TD_SCHED_WAIT_FIXED : TD_SCHED_WAIT_NONE;
    settings.batch.wait_ns = 5 * MS;
    settings.flush = settings.batch;
    settings.policy.fairness = w.policy.fairness = 0; // sched_fair_test
    w.sched = sched_new(&settings);
    for (uint32_t i = 0; i < MEMBERS; i++) {
        assert_int_equal(join(w.sched, client_of(i), model_of(i), queued(i)),
                         i);
        w.expected_ns[i] = NEVER;
        w.ready_since[i] = UINT64_MAX;
    }
    for (int i = 0; i < 1500; i++) {
        step(&w, changes);
        if (i % 50 == 0) check_counts(&w);
    }
    check_counts(&w);
    td_sched_counts counts;
    td_sched_count(w.sched, &counts);
    for (int i = 0; i < TD_SCHED_OUTCOME_COUNT; i++)
        outcomes[i] += counts.outcomes[i];
    td_sched_free(w.sched);
}

static void what_runs_is_what_a_search_over_everybody_finds(void **state)
{
    (void)state;
    uint64_t outcomes[TD_SCHED_OUTCOME_COUNT] = {0};
    for (uint32_t i = 0; i < TD_SCHED_STRATEGY_COUNT; i++)
        for (uint64_t seed = 1; seed <= 6; seed++)
            live((td_sched_strategy)i, seed, false, outcomes);
    for (int i = 0; i < TD_SCHED_OUTCOME_COUNT; i++)
        if (outcomes[i] == 0)
            fail_msg("never %s", td_sched_outcome_name((td_sched_outcome)i));
}

static void so_it_is_while_strategies_change(void **state)
{
    (void)state;
    uint64_t outcomes[TD_SCHED_OUTCOME_COUNT] = {0};
    for (uint64_t seed = 1; seed <= 12; seed++)
        live(TD_SCHED_MODEL_DEADLINE, seed, true, outcomes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_runs_is_what_a_search_over_everybody_finds),
        cmocka_unit_test(so_it_is_while_strategies_change),
    };
    return cmocka_run_group_tests_name("sched/sched_random", tests, NULL, NULL);
}
