// SPDX-License-Identifier: Apache-2.0
#include "sched/batch.h"

#include "sched/strategy/heap.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#define MS 1000000LL
#define NEVER TD_SCHED_NEVER_NS

// 10 ms alone, 1 ms more for each more, known to 8.
static td_sched_batch_times profile(void)
{
    td_sched_batch_times times = {0};
    for (uint32_t n = 1; n <= 8; n++)
        td_sched_batch_measured(&times, n, (9 + n) * MS);
    return times;
}

static void times_between_and_beyond_what_was_measured(void **state)
{
    (void)state;
    td_sched_batch_times times = {0};
    assert_int_equal(td_sched_batch_time_ns(&times, 4), 0);
    td_sched_batch_measured(&times, 2, 20 * MS);
    td_sched_batch_measured(&times, 6, 40 * MS);
    assert_int_equal(td_sched_batch_time_ns(&times, 1), 20 * MS);
    assert_int_equal(td_sched_batch_time_ns(&times, 2), 20 * MS);
    assert_int_equal(td_sched_batch_time_ns(&times, 3), 25 * MS);
    assert_int_equal(td_sched_batch_time_ns(&times, 12), 80 * MS);
    td_sched_batch_measured(&times, 2, 30 * MS);
    assert_int_equal(td_sched_batch_time_ns(&times, 2), 22 * MS);
}

static const struct {
    const char *name;
    td_sched_batch_rule rule;
    td_sched_batch_state batch;
    int64_t start_ns; // now is 100 ms
} starts[] = {
    {"none: at once",
     {TD_SCHED_WAIT_NONE, 8, 0},
     {.count = 1,
      .oldest_ns = 100 * MS,
      .due_ns = NEVER,
      .arriving = 1,
      .arriving_ns = {101 * MS}},
     100 * MS},
    {"fixed: when the first has waited",
     {TD_SCHED_WAIT_FIXED, 8, 10 * MS},
     {.count = 3, .oldest_ns = 95 * MS, .due_ns = NEVER},
     105 * MS},
    {"fixed: full at once",
     {TD_SCHED_WAIT_FIXED, 3, 10 * MS},
     {.count = 3, .oldest_ns = 95 * MS, .due_ns = NEVER},
     100 * MS},
    {"full: never alone",
     {TD_SCHED_WAIT_FULL, 8, 0},
     {.count = 7,
      .oldest_ns = 0,
      .due_ns = 100 * MS,
      .arriving = 1,
      .arriving_ns = {101 * MS}},
     NEVER},
    {"full: when full",
     {TD_SCHED_WAIT_FULL, 8, 0},
     {.count = 8, .oldest_ns = 0, .due_ns = NEVER},
     100 * MS},
    {"slack: for one who comes soon",
     {TD_SCHED_WAIT_SLACK, 8, 0},
     {.count = 1,
      .oldest_ns = 100 * MS,
      .due_ns = 120 * MS,
      .arriving = 1,
      .arriving_ns = {102 * MS}},
     102 * MS},
    {"slack: until the last moment that one more allows",
     {TD_SCHED_WAIT_SLACK, 8, 0},
     {.count = 1,
      .oldest_ns = 100 * MS,
      .due_ns = 113 * MS,
      .arriving = 1,
      .arriving_ns = {102 * MS}},
     102 * MS},
    {"slack: not a moment longer",
     {TD_SCHED_WAIT_SLACK, 8, 0},
     {.count = 1,
      .oldest_ns = 100 * MS,
      .due_ns = 113 * MS - 1,
      .arriving = 1,
      .arriving_ns = {102 * MS}},
     100 * MS},
    {"slack: for nobody",
     {TD_SCHED_WAIT_SLACK, 8, 0},
     {.count = 1, .oldest_ns = 100 * MS, .due_ns = NEVER},
     100 * MS},
    {"slack: not for one who is late himself",
     {TD_SCHED_WAIT_SLACK, 8, 0},
     {.count = 1,
      .oldest_ns = 90 * MS,
      .due_ns = NEVER,
      .arriving = 1,
      .arriving_ns = {99 * MS}},
     100 * MS},
    {"slack: not where many wait for little",
     {TD_SCHED_WAIT_SLACK, 8, 0},
     {.count = 6,
      .oldest_ns = 100 * MS,
      .due_ns = NEVER,
      .arriving = 1,
      .arriving_ns = {105 * MS}},
     100 * MS},
    {"slack: four do not wait for one",
     {TD_SCHED_WAIT_SLACK, 8, 0},
     {.count = 4,
      .oldest_ns = 100 * MS,
      .due_ns = NEVER,
      .arriving = 1,
      .arriving_ns = {101 * MS}},
     100 * MS},
    {"slack: four wait for four who come together",
     {TD_SCHED_WAIT_SLACK, 8, 0},
     {.count = 4,
      .oldest_ns = 100 * MS,
      .due_ns = NEVER,
      .arriving = 4,
      .arriving_ns = {101 * MS, 101 * MS, 101 * MS, 101 * MS}},
     101 * MS},
    {"slack: four do not wait for them for long",
     {TD_SCHED_WAIT_SLACK, 8, 0},
     {.count = 4,
      .oldest_ns = 100 * MS,
      .due_ns = NEVER,
      .arriving = 4,
      .arriving_ns = {103 * MS, 103 * MS, 103 * MS, 103 * MS}},
     100 * MS},
    {"slack: but do if they would come again while those run",
     {TD_SCHED_WAIT_SLACK, 8, 0},
     {.count = 4,
      .oldest_ns = 100 * MS,
      .due_ns = NEVER,
      .arriving = 4,
      .arriving_ns = {103 * MS, 103 * MS, 103 * MS, 103 * MS},
      .returning = 4,
      .return_ns = MS},
     103 * MS},
    {"slack: for as many as pays most",
     {TD_SCHED_WAIT_SLACK, 8, 0},
     {.count = 4,
      .oldest_ns = 100 * MS,
      .due_ns = NEVER,
      .arriving = 4,
      .arriving_ns = {101 * MS, 101 * MS, 101 * MS, 109 * MS}},
     101 * MS},
    {"slack: for as many as the least slack bears",
     {TD_SCHED_WAIT_SLACK, 8, 0},
     {.count = 4,
      .oldest_ns = 100 * MS,
      .due_ns = 117 * MS,
      .arriving = 4,
      .arriving_ns = {101 * MS, 101 * MS, 101 * MS, 102 * MS}},
     101 * MS},
    {"slack: then even for one",
     {TD_SCHED_WAIT_SLACK, 8, 0},
     {.count = 4,
      .oldest_ns = 100 * MS,
      .due_ns = NEVER,
      .arriving = 1,
      .arriving_ns = {104 * MS},
      .returning = 4,
      .return_ns = MS},
     104 * MS},
    {"slack: not if they come again later than that takes",
     {TD_SCHED_WAIT_SLACK, 8, 0},
     {.count = 4,
      .oldest_ns = 100 * MS,
      .due_ns = NEVER,
      .arriving = 1,
      .arriving_ns = {104 * MS},
      .returning = 4,
      .return_ns = 10 * MS},
     100 * MS},
    {"slack: nor for as long as that takes",
     {TD_SCHED_WAIT_SLACK, 8, 0},
     {.count = 4,
      .oldest_ns = 100 * MS,
      .due_ns = NEVER,
      .arriving = 1,
      .arriving_ns = {110 * MS},
      .returning = 4,
      .return_ns = 0},
     100 * MS},
};

static void a_batch_starts_when_its_rule_says(void **state)
{
    (void)state;
    td_sched_batch_times times = profile();
    for (size_t i = 0; i < TD_COUNT_OF(starts); i++) {
        int64_t start_ns = td_sched_batch_start_ns(&starts[i].rule, &times,
                                                   &starts[i].batch, 100 * MS);
        if (start_ns != starts[i].start_ns)
            fail_msg("%s: starts at %lld ns", starts[i].name,
                     (long long)start_ns);
    }
}

static void a_batch_grows_while_its_tightest_bears_it(void **state)
{
    (void)state;
    td_sched_batch_times times = profile();
    assert_true(td_sched_batch_grows(&times, 3, NEVER, 0));
    assert_true(td_sched_batch_grows(&times, 3, 13 * MS, 0));
    assert_false(td_sched_batch_grows(&times, 3, 13 * MS - 1, 0));
    assert_true(td_sched_batch_grows(&times, 3, 12 * MS - 1, 0)); // lost anyway
}

static void one_joins_what_runs_where_nobody_gets_late(void **state)
{
    (void)state;
    td_sched_batch_times times = profile();
    td_sched_batch_rule rule = {TD_SCHED_WAIT_NONE, 4, 0};
    static const struct {
        const char *name;
        td_sched_batch_running running;
        bool joins;
    } cases[] = {
        {"idle", {0, 0, 0}, true},
        {"full", {4, 0.5, NEVER}, false},
        {"no deadline", {3, 1, NEVER}, true},
        {"slack for it", {3, 0.5, 6500000}, true}, // half of 13 ms
        {"no slack for it", {3, 0.5, 6499999}, false},
        {"late already", {3, 0.5, 5999999}, true}, // half of 12 ms
    };
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++)
        if (td_sched_batch_joins(&rule, &times, &cases[i].running, 0) !=
            cases[i].joins)
            fail_msg("%s", cases[i].name);
}

static void waits_go_by_their_names(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < TD_SCHED_WAIT_COUNT; i++) {
        td_sched_batch_wait wait;
        const char *name = td_sched_batch_wait_name((td_sched_batch_wait)i);
        assert_int_equal(td_sched_batch_wait_find(name, &wait), TD_OK);
        assert_int_equal(wait, i);
    }
    td_sched_batch_wait wait;
    assert_int_equal(td_sched_batch_wait_find("soon", &wait), TD_ERR_NOTFOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_between_and_beyond_what_was_measured),
        cmocka_unit_test(a_batch_starts_when_its_rule_says),
        cmocka_unit_test(a_batch_grows_while_its_tightest_bears_it),
        cmocka_unit_test(one_joins_what_runs_where_nobody_gets_late),
        cmocka_unit_test(waits_go_by_their_names),
    };
    return cmocka_run_group_tests_name("sched/batch", tests, NULL, NULL);
}
