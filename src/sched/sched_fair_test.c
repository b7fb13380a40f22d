// SPDX-License-Identifier: Apache-2.0
// Whole loads in virtual time: who gets how much, and how long anybody waits.
#include "sched/sched_fixture.h"

#include "base/rand.h"

#include <string.h>

#define CLIENTS 24

// One engine, batches of at most `batch`, clients that come periodically.
typedef struct load {
    td_sched_strategy strategy;
    bool queued;
    uint32_t batch;
    int64_t service_ns;            // of a batch, whatever its size
    int64_t periods_ns[CLIENTS];   // 0: no such client
    int64_t deadlines_ns[CLIENTS]; // after arrival; 0: none
    uint32_t priorities[CLIENTS];
    float urgencies[CLIENTS];
    int64_t length_ns;
} load;

typedef struct result {
    uint64_t answered[CLIENTS], late[CLIENTS];
    int64_t longest_wait_ns;
    td_sched_counts counts;
} result;

typedef struct world {
    const load *load;
    td_sched *sched;
    uint32_t members[CLIENTS];
    int64_t next_ns[CLIENTS]; // arrival
    int64_t free_ns;          // of the engine; NEVER: it is idle
    td_sched_pick running[TD_SCHED_MAX_BATCH];
    uint32_t running_count;
    uint64_t seq;
    result result;
} world;

static void arrive(world *w, uint32_t client)
{
    const load *l = w->load;
    int64_t now_ns = w->next_ns[client];
    td_sched_item item = item_of(w->members[client], ++w->seq);
    item.priority = l->priorities[client];
    item.urgency = l->urgencies[client];
    if (l->deadlines_ns[client]) item.due_ns = now_ns + l->deadlines_ns[client];
    td_sched_ended ended;
    (void)td_sched_submit(w->sched, now_ns, &item, &ended);
    w->next_ns[client] += l->periods_ns[client];
}

static void finish(world *w)
{
    const load *l = w->load;
    for (uint32_t i = 0; i < w->running_count; i++) {
        const td_sched_pick *pick = &w->running[i];
        uint32_t client = pick->member;
        w->result.answered[client]++;
        if (l->deadlines_ns[client] &&
            w->free_ns > pick->request.arrived_ns + l->deadlines_ns[client])
            w->result.late[client]++;
        (void)td_sched_done(w->sched, w->free_ns, pick->ticket,
                            TD_SCHED_ANSWERED);
    }
    w->running_count = 0;
    w->free_ns = NEVER;
}

static void begin(world *w, int64_t now_ns)
{
    td_sched_ended ended;
    while (td_sched_drop(w->sched, now_ns, &ended)) {
    }
    uint32_t waiting = td_sched_waiting(w->sched);
    uint32_t count =
        td_sched_next(w->sched, now_ns, ALL, w->load->batch, w->running);
    // An idle engine never leaves anybody waiting.
    assert_int_equal(count,
                     waiting < w->load->batch ? waiting : w->load->batch);
    for (uint32_t i = 0; i < count; i++) {
        int64_t wait_ns = now_ns - w->running[i].request.waiting_since_ns;
        if (wait_ns > w->result.longest_wait_ns)
            w->result.longest_wait_ns = wait_ns;
    }
    w->running_count = count;
    if (count > 0) w->free_ns = now_ns + w->load->service_ns;
}

// Who comes next; CLIENTS if the engine is free before.
static uint32_t earliest(const world *w)
{
    uint32_t first = CLIENTS;
    int64_t first_ns = w->free_ns;
    for (uint32_t i = 0; i < CLIENTS; i++) {
        if (!w->load->periods_ns[i] || w->next_ns[i] >= first_ns) continue;
        first = i;
        first_ns = w->next_ns[i];
    }
    return first;
}

static void prepare(world *w, const load *l, uint64_t seed)
{
    *w = (world){.load = l, .free_ns = NEVER};
    td_sched_settings settings = settings_of(l->strategy);
    settings.flush.wait = TD_SCHED_WAIT_NONE;
    settings.flush.most = TD_SCHED_MAX_BATCH;
    settings.queue.size = 4000;
    w->sched = sched_new(&settings);
    for (uint32_t n = 1; n <= l->batch; n++)
        td_sched_measured(w->sched, 0, 0, n, l->service_ns);
    td_rand rand;
    td_rand_init(&rand, seed);
    for (uint32_t i = 0; i < CLIENTS; i++) {
        w->members[i] = join(w->sched, i, 0, l->queued);
        double phase = td_rand_unit(&rand) * (double)l->periods_ns[i];
        w->next_ns[i] = (int64_t)phase;
    }
}

static result run(const load *l, uint64_t seed)
{
    static world w;
    prepare(&w, l, seed);
    for (int64_t now_ns = 0; now_ns < l->length_ns;) {
        uint32_t client = earliest(&w);
        now_ns = client < CLIENTS ? w.next_ns[client] : w.free_ns;
        if (client < CLIENTS)
            arrive(&w, client);
        else
            finish(&w);
        if (w.running_count == 0) begin(&w, now_ns);
    }
    td_sched_count(w.sched, &w.result.counts);
    td_sched_free(w.sched);
    return w.result;
}

// A random load of nine tenths of what one engine can serve, one at a time.
static load servable(td_sched_strategy strategy, uint64_t seed)
{
    load l = {.strategy = strategy,
              .queued = seed % 2,
              .batch = 1,
              .service_ns = MS,
              .length_ns = 8000 * MS};
    td_rand rand;
    td_rand_init(&rand, seed);
    double left = 0.9;
    for (uint32_t i = 0; i < CLIENTS; i++) {
        double part = i + 1 < CLIENTS ? left * td_rand_unit(&rand) / 4 : left;
        if (part > 0.5) part = 0.5;
        left -= part;
        l.periods_ns[i] = (int64_t)((double)l.service_ns / part);
        if (l.periods_ns[i] > 500 * MS) l.periods_ns[i] = 500 * MS;
        l.priorities[i] = (uint32_t)(td_rand_u64(&rand) % 4);
        l.urgencies[i] = (float)td_rand_unit(&rand);
        if (td_rand_u64(&rand) % 2)
            l.deadlines_ns[i] =
                5 * MS + (int64_t)(td_rand_u64(&rand) % 200) * MS;
    }
    return l;
}

static void nobody_starves_under_a_load_that_can_be_served(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < TD_SCHED_STRATEGY_COUNT; i++) {
        for (uint64_t seed = 1; seed <= 10; seed++) {
            load l = servable((td_sched_strategy)i, seed);
            result r = run(&l, seed);
            const char *name = td_sched_strategy_name(l.strategy);
            if (r.longest_wait_ns > 400 * l.service_ns)
                fail_msg("%s, seed %u: %.1f ms", name, (unsigned)seed,
                         (double)r.longest_wait_ns / 1e6);
            if (r.counts.outcomes[TD_SCHED_EXPIRED] > 0)
                fail_msg("%s, seed %u: expired", name, (unsigned)seed);
            for (uint32_t j = 0; j < CLIENTS; j++)
                if (r.answered[j] == 0) fail_msg("%s: never", name);
        }
    }
}

// Nine tenths of an engine, each client due before its next comes: by deadline
// all of it can be met, in turn it cannot.
static load feasible(td_sched_strategy strategy)
{
    load l = {.strategy = strategy,
              .batch = 1,
              .service_ns = 10 * MS,
              .length_ns = 20000 * MS};
    static const int64_t periods_ms[] = {25, 100, 150, 200, 200, 100, 100, 400};
    for (uint32_t i = 0; i < TD_COUNT_OF(periods_ms); i++) {
        l.periods_ns[i] = periods_ms[i] * MS;
        l.deadlines_ns[i] = periods_ms[i] * MS;
        l.priorities[i] = 1;
    }
    return l;
}

static uint64_t misses(td_sched_strategy strategy)
{
    load l = feasible(strategy);
    result r = run(&l, 3);
    uint64_t sum = r.counts.outcomes[TD_SCHED_SUPERSEDED];
    for (uint32_t i = 0; i < CLIENTS; i++)
        sum += r.late[i];
    return sum;
}

static void deadlines_that_can_be_met_are_met(void **state)
{
    (void)state;
    assert_int_equal(misses(TD_SCHED_DEADLINE_AWARE), 0);
    assert_int_equal(misses(TD_SCHED_MODEL_DEADLINE), 0);
    assert_int_equal(misses(TD_SCHED_TIERED_DEADLINE), 0);
    assert_true(misses(TD_SCHED_ROUND_ROBIN) > 0);
}

#define FIVE 5 // clients that ask anew as soon as they are answered
#define RUNS 500
#define RUN_NS (10 * MS)

// One engine that is never idle, and nobody but the first presses.
typedef struct saturated {
    td_sched_strategy strategy;
    double fairness;
    bool queued, due;
    uint32_t priority; // of the first, the others have 1
    float urgency;
    double (*score)(void *user, const td_score_request *request);
} saturated;

typedef struct shares {
    uint32_t answered[FIVE];
    uint32_t longest_wait; // of any client, in runs
} shares;

static void ask(td_sched *sched, const saturated *how, uint32_t client,
                int64_t now_ns)
{
    td_sched_item item = item_of(client, client + 1);
    if (client == 0) item.priority = how->priority;
    if (client == 0) item.urgency = how->urgency;
    if (how->due) item.due_ns = now_ns + 30 * MS;
    (void)submit(sched, now_ns, &item);
}

static shares saturate(const saturated *how)
{
    shares out = {{0}, 0};
    uint32_t asked[FIVE] = {0}; // in which run
    td_sched_settings settings = settings_of(how->strategy);
    settings.policy.fairness = how->fairness;
    settings.policy.score = how->score;
    TD_AUTO(td_sched) *sched = sched_new(&settings);
    td_sched_measured(sched, 0, 0, 1, RUN_NS);
    for (uint32_t i = 0; i < FIVE; i++) {
        assert_int_equal(join(sched, i, 0, how->queued), i);
        ask(sched, how, i, 0);
    }
    for (uint32_t run = 1; run <= RUNS; run++) {
        td_sched_pick pick;
        int64_t now_ns = run * RUN_NS;
        assert_int_equal(td_sched_next(sched, now_ns - RUN_NS, ALL, 1, &pick),
                         1);
        uint32_t client = pick.member;
        out.answered[client]++;
        if (run - asked[client] > out.longest_wait)
            out.longest_wait = run - asked[client];
        asked[client] = run;
        (void)td_sched_done(sched, now_ns, pick.ticket, TD_SCHED_ANSWERED);
        ask(sched, how, client, now_ns);
    }
    return out;
}

static const td_sched_strategy scoring[] = {
    TD_SCHED_DEADLINE_AWARE, TD_SCHED_MODEL_DEADLINE, TD_SCHED_TIERED_DEADLINE};

// Whom the rule prefers has every run but those of fairness; with a slot or a
// queue, with a deadline or without.
static void check_first(saturated how, double least_part, const char *what)
{
    for (uint32_t i = 0; i < TD_COUNT_OF(scoring) * 4; i++) {
        how.strategy = scoring[i / 4];
        how.queued = i % 2 > 0;
        how.due = i / 2 % 2 > 0;
        how.fairness = TD_SCHED_FAIRNESS;
        shares s = saturate(&how);
        if (s.answered[0] < least_part * RUNS)
            fail_msg("%s, %s, %s, %s: %u of %d", what,
                     td_sched_strategy_name(how.strategy),
                     how.queued ? "queues" : "slots",
                     how.due ? "deadlines" : "none", s.answered[0], RUNS);
    }
}

static void urgency_decides_when_the_device_is_saturated(void **state)
{
    (void)state;
    saturated how = {.priority = 1, .urgency = 1};
    check_first(how, 0.85, "urgent");
}

static double first_client(void *user, const td_score_request *request)
{
    (void)user;
    return strcmp(request->client, "c0") == 0 ? 1 : 0;
}

static void a_score_of_ones_own_decides_when_it_is_saturated(void **state)
{
    (void)state;
    saturated how = {.priority = 1, .score = first_client};
    check_first(how, 0.85, "scored");
}

static void priority_decides_when_it_is_saturated(void **state)
{
    (void)state;
    // A wall between tiers: fairness does not reach over it.
    saturated how = {.strategy = TD_SCHED_TIERED_DEADLINE, .fairness = 0.1};
    assert_int_equal(saturate(&how).answered[0], RUNS);
    how.strategy = TD_SCHED_PRIORITY_TIERED;
    assert_int_equal(saturate(&how).answered[0], RUNS);
}

static void starvation_is_bounded_by_fairness(void **state)
{
    (void)state;
    static const double parts[] = {0.05, 0.1, 0.25, 0.5, 1};
    for (uint32_t i = 0; i < TD_COUNT_OF(parts); i++) {
        saturated how = {.strategy = TD_SCHED_MODEL_DEADLINE,
                         .fairness = parts[i],
                         .priority = 0,
                         .urgency = 1};
        shares s = saturate(&how);
        // Its patience is 50 ms, five runs.
        double most = 5 + FIVE / parts[i] + 1;
        if (s.longest_wait > most)
            fail_msg("%g: %u runs", parts[i], s.longest_wait);
        double least = (1 - parts[i]) * RUNS - 5;
        if (s.answered[0] < least)
            fail_msg("%g: %u of %d", parts[i], s.answered[0], RUNS);
    }
}

static void without_fairness_claims_alone_decide(void **state)
{
    (void)state;
    saturated how = {.strategy = TD_SCHED_MODEL_DEADLINE, .urgency = 1};
    assert_int_equal(saturate(&how).answered[0], RUNS);
}

static void equal_claims_get_equal_shares(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < TD_SCHED_STRATEGY_COUNT * 4; i++) {
        saturated how = {.strategy = (td_sched_strategy)(i / 4),
                         .fairness = TD_SCHED_FAIRNESS,
                         .queued = i % 2 > 0,
                         .due = i / 2 % 2 > 0,
                         .priority = 1};
        if (how.strategy == TD_SCHED_BATCH_OPTIMIZED) continue;
        shares s = saturate(&how);
        for (uint32_t j = 0; j < FIVE; j++)
            if (s.answered[j] < RUNS / FIVE - 2)
                fail_msg("%s: %u has %u", td_sched_strategy_name(how.strategy),
                         j, s.answered[j]);
    }
}

// Two clients, runs of a millisecond: one is always due in 5 ms, the other at
// `due_ms`.
#define HURRIED 0
#define PATIENT 1

static td_sched *two_clients(int64_t due_ms)
{
    td_sched_settings settings = settings_of(TD_SCHED_DEADLINE_AWARE);
    td_sched *sched = sched_new(&settings);
    td_sched_measured(sched, 0, 0, 1, MS);
    assert_int_equal(join(sched, 0, 0, false), HURRIED);
    assert_int_equal(join(sched, 1, 0, false), PATIENT);
    td_sched_item item = item_of(PATIENT, PATIENT);
    item.due_ns = due_ms * MS;
    (void)submit(sched, 0, &item);
    return sched;
}

// From `from_ms` on, a run each millisecond: how many before the patient one's.
static int hurried_runs(td_sched *sched, int64_t from_ms, int most)
{
    for (int i = 0; i < most; i++) {
        int64_t now_ns = (from_ms + i) * MS;
        td_sched_item item = item_of(HURRIED, 100);
        item.due_ns = now_ns + 5 * MS;
        (void)submit(sched, now_ns, &item);
        if (run_one(sched, now_ns, ALL) == PATIENT) return i;
    }
    return most;
}

static void while_all_can_be_met_the_deadline_alone_decides(void **state)
{
    (void)state;
    TD_AUTO(td_sched) *sched = two_clients(1000);
    assert_int_equal(hurried_runs(sched, 0, 900), 900);
}

static void who_cannot_be_met_starves_for_as_long_as_fairness_says(void **state)
{
    (void)state;
    TD_AUTO(td_sched) *sched = two_clients(100);
    assert_int_equal(hurried_runs(sched, 0, 90), 90);
    assert_in_range(hurried_runs(sched, 105, 30), 0, 10);
}

// Each newer one of the patient's is due later still.
static void who_was_passed_over_keeps_its_patience(void **state)
{
    (void)state;
    TD_AUTO(td_sched) *sched = two_clients(100);
    for (int i = 1; i < 110; i++) {
        td_sched_item newer = item_of(PATIENT, PATIENT);
        newer.due_ns = (1000 + i) * MS;
        assert_int_equal(submit(sched, i * MS, &newer).outcome,
                         TD_SCHED_SUPERSEDED);
    }
    assert_in_range(hurried_runs(sched, 110, 30), 0, 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_starves_under_a_load_that_can_be_served),
        cmocka_unit_test(deadlines_that_can_be_met_are_met),
        cmocka_unit_test(urgency_decides_when_the_device_is_saturated),
        cmocka_unit_test(a_score_of_ones_own_decides_when_it_is_saturated),
        cmocka_unit_test(priority_decides_when_it_is_saturated),
        cmocka_unit_test(starvation_is_bounded_by_fairness),
        cmocka_unit_test(without_fairness_claims_alone_decide),
        cmocka_unit_test(equal_claims_get_equal_shares),
        cmocka_unit_test(while_all_can_be_met_the_deadline_alone_decides),
        cmocka_unit_test(
            who_cannot_be_met_starves_for_as_long_as_fairness_says),
        cmocka_unit_test(who_was_passed_over_keeps_its_patience),
    };
    return cmocka_run_group_tests_name("sched/sched_fair", tests, NULL, NULL);
}
