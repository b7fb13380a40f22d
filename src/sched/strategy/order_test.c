// SPDX-License-Identifier: Apache-2.0
#include "sched/strategy/order.h"

#include "base/rand.h"
#include "sched/strategy/heap.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define MS 1000000LL
#define NEVER TD_SCHED_NEVER_NS
#define NUMBERS 60
#define RUN_NS (10 * MS)

// An order, and the plain list that it is held against.
typedef struct world {
    td_sched_policy policy;
    td_sched_facts facts[NUMBERS];
    bool in[NUMBERS];
    uint32_t leaves[NUMBERS];
    td_sched_order order;
    td_rand rand;
    int64_t now_ns;
    uint64_t last_order;
} world;

static uint64_t below(world *w, uint64_t bound)
{
    return td_rand_u64(&w->rand) % bound;
}

static int64_t sometimes(world *w, int64_t at_ns)
{
    return below(w, 2) ? at_ns : NEVER;
}

static void invent(world *w, uint32_t number)
{
    static const int64_t budgets[] = {1, 20 * MS, 50 * MS, 3000 * MS};
    w->facts[number] = (td_sched_facts){
        .since_ns = w->now_ns - (int64_t)below(w, 60) * MS,
        .budget_ns = budgets[below(w, TD_COUNT_OF(budgets))],
        .due_ns = sometimes(w, w->now_ns + (int64_t)below(w, 100) * MS),
        .expected_ns = sometimes(w, w->now_ns + (int64_t)below(w, 100) * MS),
        .order = ++w->last_order,
        .round = below(w, 5) * NUMBERS + number,
        .priority = (uint32_t)below(w, 12),
        .urgency = (float)below(w, 5) / 4,
        .renews = below(w, 2) > 0,
        .steps = below(w, 2) ? TD_SCHED_STEPS_UNSET : (uint32_t)below(w, 6),
    };
    td_sched_strategy_fix(&w->policy, &w->facts[number]);
}

static void expect(world *w, uint32_t number, int64_t expected_ns)
{
    bool later = w->facts[number].expected_ns > w->now_ns &&
                 w->facts[number].due_ns == NEVER;
    w->facts[number].expected_ns = expected_ns;
    if (later)
        td_sched_order_changes(&w->order, w->leaves[number], expected_ns);
    else
        td_sched_order_changed(&w->order, w->leaves[number], w->now_ns);
}

static void change(world *w)
{
    uint32_t number = (uint32_t)below(w, NUMBERS);
    if (!w->in[number]) {
        invent(w, number);
        w->leaves[number] = td_sched_order_put(&w->order, number, w->now_ns);
        w->in[number] = true;
    } else if (below(w, 3) == 0) {
        expect(w, number, sometimes(w, w->now_ns + 40 * MS));
    } else {
        td_sched_order_take(&w->order, w->leaves[number], w->now_ns);
        w->in[number] = false;
    }
}

// Whether the other one goes clearly before the best, as plain arithmetic has
// it: equal but for rounding is equal.
static bool outdone(const world *w, uint32_t best, uint32_t other)
{
    td_sched_rank a, b;
    td_sched_strategy_rank(&w->policy, &w->facts[best], RUN_NS, w->now_ns, &a);
    td_sched_strategy_rank(&w->policy, &w->facts[other], RUN_NS, w->now_ns, &b);

    double rounding = 1e-9 * (1 + fabs(a.value) * 1e-6);
    if (b.value > a.value + rounding) return true;
    return b.value == a.value && w->facts[other].order < w->facts[best].order;
}

static void check_best(world *w)
{
    uint32_t best = td_sched_order_best(&w->order, w->now_ns);
    uint32_t count = 0;
    for (uint32_t i = 0; i < NUMBERS; i++) {
        if (!w->in[i]) continue;
        count++;
        if (outdone(w, best, i))
            fail_msg("at %lld ns %u goes before %u", (long long)w->now_ns, i,
                     best);
    }
    assert_int_equal(w->order.count, count);
    assert_int_equal(best == TD_SCHED_NOBODY, count == 0);
}

static void live(const td_sched_policy *policy, uint64_t seed)
{
    static world w;
    w = (world){.policy = *policy};
    td_rand_init(&w.rand, seed);
    assert_int_equal(td_sched_order_init(&w.order, NUMBERS, &w.policy, w.facts),
                     TD_OK);
    w.order.run_ns = RUN_NS;
    for (int step = 0; step < 4000; step++) {
        w.now_ns += (int64_t)below(&w, 3) * (int64_t)below(&w, 4 * MS);
        bool quiet = step / 100 % 2 > 0; // nothing happens but time
        if (!quiet) change(&w);
        if (below(&w, 3) > 0) check_best(&w);
    }
    td_sched_order_done(&w.order);
}

static void the_best_is_what_a_search_finds_with_every_strategy(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < TD_SCHED_STRATEGY_COUNT; i++) {
        td_sched_policy policy = {.strategy = (td_sched_strategy)i,
                                  .weights = TD_SCHED_WEIGHTS_PUBLISHED};
        for (uint64_t seed = 1; seed <= 4; seed++)
            live(&policy, seed);
    }
}

static void the_best_is_what_a_search_finds_with_an_expression(void **state)
{
    (void)state;
    static const char text[] = "clamp(age_ms / budget_ms, 0, 1) * 15 - "
                               "slack_ms * urgency + (priority < 3) * 20";
    td_sched_policy policy = {.strategy = TD_SCHED_DEADLINE_AWARE,
                              .weights = TD_SCHED_WEIGHTS_PUBLISHED};
    assert_int_equal(td_sched_expr_compile(text, strlen(text),
                                           td_sched_strategy_fields,
                                           &policy.expr, NULL),
                     TD_OK);
    live(&policy, 1);
}

static uint32_t asked; // how often a score of the test's own was

static double counting(void *user, const td_score_request *request)
{
    (void)user;
    asked++;
    return -request->priority;
}

static void one_moment_asks_a_users_score_once_for_each(void **state)
{
    (void)state;
    td_sched_policy policy = {.strategy = TD_SCHED_MODEL_DEADLINE,
                              .score = counting};
    static td_sched_facts facts[NUMBERS];
    td_sched_order order;
    assert_int_equal(td_sched_order_init(&order, NUMBERS, &policy, facts),
                     TD_OK);
    for (uint32_t i = 0; i < NUMBERS; i++) {
        facts[i] = (td_sched_facts){.priority = NUMBERS - i, .budget_ns = 1};
        (void)td_sched_order_put(&order, i, 0);
    }
    asked = 0;
    assert_int_equal(td_sched_order_best(&order, 1), NUMBERS - 1);
    assert_int_equal(td_sched_order_best(&order, 1), NUMBERS - 1);
    assert_int_equal(asked, NUMBERS);
    td_sched_order_done(&order);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_best_is_what_a_search_finds_with_every_strategy),
        cmocka_unit_test(the_best_is_what_a_search_finds_with_an_expression),
        cmocka_unit_test(one_moment_asks_a_users_score_once_for_each),
    };
    return cmocka_run_group_tests_name("sched/order", tests, NULL, NULL);
}
