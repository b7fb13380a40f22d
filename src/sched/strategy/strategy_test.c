// SPDX-License-Identifier: Apache-2.0
#include "sched/strategy/strategy.h"

#include "sched/strategy/heap.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define MS 1000000LL
#define NEVER TD_SCHED_NEVER_NS
#define UNSET TD_SCHED_STEPS_UNSET

static td_sched_policy published(void)
{
    return (td_sched_policy){.strategy = TD_SCHED_DEADLINE_AWARE,
                             .weights = TD_SCHED_WEIGHTS_PUBLISHED,
                             .tiers = 3};
}

static td_sched_facts plain(void)
{
    return (td_sched_facts){.budget_ns = 50 * MS,
                            .due_ns = NEVER,
                            .expected_ns = NEVER,
                            .priority = 10,
                            .steps = UNSET};
}

static void the_published_score_has_the_published_values(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int64_t since_ns, expected_ns; // now is 1 s
        uint32_t priority, steps;
        float urgency;
        double score;
    } cases[] = {
        {"nothing", 1000 * MS, NEVER, 10, UNSET, 0, 0},
        {"full urgency", 1000 * MS, NEVER, 10, UNSET, 1, 25},
        {"highest priority", 1000 * MS, NEVER, 0, UNSET, 0, 10},
        {"priority of the SDK", 1000 * MS, NEVER, 1, UNSET, 0, 9},
        {"priority beyond ten", 1000 * MS, NEVER, 99, UNSET, 0, 0},
        {"no steps left", 1000 * MS, NEVER, 10, 0, 0, 15},
        {"two steps left", 1000 * MS, NEVER, 10, 2, 0, 10.5},
        {"four steps left", 1000 * MS, NEVER, 10, 4, 0, 6},
        {"five steps left", 1000 * MS, NEVER, 10, 5, 0, 0},
        {"half the budget", 975 * MS, NEVER, 10, UNSET, 0, 7.5},
        {"twice the budget", 900 * MS, NEVER, 10, UNSET, 0, 15},
        {"next not yet expected", 1000 * MS, 1001 * MS, 10, UNSET, 0, 0},
        {"overdue by 50 ms", 1000 * MS, 950 * MS, 10, UNSET, 0, 22.5},
        {"overdue by 1 s", 1000 * MS, 0, 10, UNSET, 0, 450},
        {"all of it", 975 * MS, 900 * MS, 0, 0, 1, 102.5},
    };
    td_sched_policy policy = published();
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        td_sched_facts facts = plain();
        facts.since_ns = cases[i].since_ns;
        facts.expected_ns = cases[i].expected_ns;
        facts.priority = cases[i].priority;
        facts.steps = cases[i].steps;
        facts.urgency = cases[i].urgency;
        td_sched_strategy_fix(&policy, &facts);
        double score = td_sched_strategy_score(&policy, &facts, 1000 * MS);
        if (fabs(score - cases[i].score) > 1e-9)
            fail_msg("%s: %g", cases[i].name, score);
    }
}

static void a_stand_holds_until_it_says(void **state)
{
    (void)state;
    td_sched_policy policy = published();
    td_sched_facts facts = plain();
    facts.expected_ns = 20 * MS;
    td_sched_strategy_fix(&policy, &facts);
    for (int64_t now_ns = 0; now_ns < 60 * MS;) {
        td_sched_rank rank;
        td_sched_strategy_rank(&policy, &facts, 0, now_ns, &rank);
        assert_true(rank.until_ns > now_ns);
        int64_t last_ns =
            rank.until_ns < 100 * MS ? rank.until_ns - 1 : 100 * MS;
        double then = rank.value + rank.slope * (double)(last_ns - now_ns);
        double score = td_sched_strategy_score(&policy, &facts, last_ns);
        assert_true(fabs(then - score) < 1e-9);
        now_ns = last_ns + 1;
    }
}

static void a_deadline_has_the_documented_values(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int64_t due_ms, expected_ms; // now is 1 s, the engine takes 30 ms
        bool renews;
        uint32_t priority;
        float urgency;
        double value;
        int64_t until_ns;
    } cases[] = {
        {"its last moment", 1030, 0, true, 10, 0, 15, 1000 * MS + 1},
        {"25 ms before", 1055, 0, true, 10, 0, 7.5, 1025 * MS + 1},
        {"100 ms before", 1130, 0, true, 10, 0, -15, 1100 * MS + 1},
        {"with claims", 1130, 0, true, 0, 1, 20, 1100 * MS + 1},
        {"too late", 1029, 0, true, 10, 0, -45, NEVER},
        {"too late, half urgent", 1029, 0, true, 10, 0.5F, -2.5, NEVER},
        {"too late, an emergency", 900, 0, true, 0, 1, 50, NEVER},
        {"asks anew before", 1130, 1120, true, 10, 0, -75, 1100 * MS + 1},
        {"asks anew soon", 1130, 1040, true, 10, 0, -75, 1100 * MS + 1},
        {"should have asked anew", 1130, 990, true, 10, 0, -75, 1100 * MS + 1},
        {"asks anew after", 1130, 1131, true, 10, 0, -15, 1100 * MS + 1},
        {"wants every answer", 1130, 1120, false, 10, 0, -15, 1100 * MS + 1},
    };
    td_sched_policy policy = published();
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        td_sched_facts facts = plain();
        facts.due_ns = cases[i].due_ms * MS;
        if (cases[i].expected_ms > 0)
            facts.expected_ns = cases[i].expected_ms * MS;
        facts.renews = cases[i].renews;
        facts.priority = cases[i].priority;
        facts.urgency = cases[i].urgency;
        facts.steps = 0; // the deadline says more
        td_sched_strategy_fix(&policy, &facts);
        td_sched_rank rank;
        td_sched_strategy_rank(&policy, &facts, 30 * MS, 1000 * MS, &rank);
        if (fabs(rank.value - cases[i].value) > 1e-9)
            fail_msg("%s: %g", cases[i].name, rank.value);
        if (rank.until_ns != cases[i].until_ns)
            fail_msg("%s: until %lld", cases[i].name, (long long)rank.until_ns);
    }
}

static void strategies_go_by_their_names(void **state)
{
    (void)state;
    static const char *const names[] = {"deadline_aware",  "model_deadline",
                                        "tiered_deadline", "priority_tiered",
                                        "batch_optimized", "round_robin"};
    assert_int_equal(TD_COUNT_OF(names), TD_SCHED_STRATEGY_COUNT);
    for (size_t i = 0; i < TD_COUNT_OF(names); i++) {
        td_sched_strategy strategy;
        assert_int_equal(td_sched_strategy_find(names[i], &strategy, NULL),
                         TD_OK);
        assert_string_equal(td_sched_strategy_name(strategy), names[i]);
    }
    td_sched_strategy strategy;
    td_errinfo info;
    assert_int_equal(td_sched_strategy_find("fifo", &strategy, &info),
                     TD_ERR_NOTFOUND);
    assert_non_null(strstr(info.text, "round_robin"));
}

static void every_field_reaches_an_expression(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double value;
    } cases[] = {
        {"age_ms", 30},
        {"budget_ms", 50},
        {"urgency", 0.5},
        {"priority", 3},
        {"overdue_ms", 10},
        {"steps_remaining", 2},
        {"slack_ms", 70},
        {"score",
         12.5 + 10.5 + 7 + 9 + 4.5}, // urgency, steps, priority, age, cadence,
    };
    td_sched_facts facts = plain();
    facts.since_ns = 70 * MS;
    facts.expected_ns = 90 * MS;
    facts.due_ns = 170 * MS;
    facts.urgency = 0.5F;
    facts.priority = 3;
    facts.steps = 2;
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        td_sched_policy policy = published();
        assert_int_equal(
            td_sched_expr_compile(cases[i].text, strlen(cases[i].text),
                                  td_sched_strategy_fields, &policy.expr, NULL),
            TD_OK);
        td_sched_strategy_fix(&policy, &facts);
        td_sched_rank rank;
        td_sched_strategy_rank(&policy, &facts, 0, 100 * MS, &rank);
        if (fabs(rank.value - cases[i].value) > 1e-9)
            fail_msg("%s is %g", cases[i].text, rank.value);
    }
}

static double not_a_number(void *user, const td_score_request *request)
{
    (void)user;
    (void)request;
    return NAN;
}

static void a_function_without_a_value_goes_last(void **state)
{
    (void)state;
    td_sched_policy policy = published();
    policy.score = not_a_number;
    td_sched_facts facts = plain();
    td_sched_rank rank;
    td_sched_strategy_rank(&policy, &facts, 0, 0, &rank);
    assert_true(rank.value < -1e300 && isfinite(rank.value));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_published_score_has_the_published_values),
        cmocka_unit_test(a_stand_holds_until_it_says),
        cmocka_unit_test(a_deadline_has_the_documented_values),
        cmocka_unit_test(strategies_go_by_their_names),
        cmocka_unit_test(every_field_reaches_an_expression),
        cmocka_unit_test(a_function_without_a_value_goes_last),
    };
    return cmocka_run_group_tests_name("sched/strategy", tests, NULL, NULL);
}
