// SPDX-License-Identifier: Apache-2.0
#include "server/dispatch/score.h"

#include "base/clock.h"
#include "base/log.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>

#include <cmocka.h>

static _Atomic unsigned warnings;
static td_server_score score;
static td_server_stats *stats;

static void count_line(void *user, td_log_level level, const char *line)
{
    (void)user;
    (void)line;
    if (level == TD_LOG_WARN) warnings++;
}

static int setup(void **state)
{
    (void)state;
    score = (td_server_score){.calls = 0};
    warnings = 0;
    if (td_log_start_sink(count_line, NULL, TD_LOG_INFO) != TD_OK) return -1;
    return td_server_stats_new(1, &stats);
}

static int teardown(void **state)
{
    (void)state;
    td_log_stop();
    td_server_stats_free(stats);
    return 0;
}

static double give(void *user, const td_score_request *request)
{
    (void)request;
    return *(double *)user;
}

static double take_long(void *user, const td_score_request *request)
{
    (void)user;
    (void)request;
    int64_t now_ns = td_clock_now_ns(&td_clock_monotonic);
    td_clock_sleep_until(now_ns + 2 * TD_NS_PER_MS);
    return 1;
}

static double ask(const td_sched_policy *policy)
{
    const td_score_request request = {.urgency = 1};
    return policy->score(policy->score_user, &request);
}

static uint64_t counted(td_server_counter_id counter)
{
    return td_server_stats_counter(stats, counter);
}

static void its_answers_pass_and_are_counted_with_the_batch(void **state)
{
    (void)state;
    double value = 4;
    td_sched_policy policy = {.score = give, .score_user = &value};
    td_server_score_wrap(&score, &policy);
    assert_true(ask(&policy) == 4);
    assert_true(ask(&policy) == 4);
    assert_int_equal(counted(TD_SERVER_COUNT_SCORE_CALLS), 0);
    td_server_score_record(&score, stats, TD_NS_PER_S);
    td_server_score_record(&score, stats, TD_NS_PER_S); // nobody asked since
    assert_int_equal(counted(TD_SERVER_COUNT_SCORE_CALLS), 2);
    assert_int_equal(counted(TD_SERVER_COUNT_SCORE_NOT_FINITE), 0);
    td_server_numbers numbers;
    td_server_stats_model(stats, TD_NS_PER_S, 60 * TD_NS_PER_S, &numbers);
    assert_int_equal(numbers.spreads[TD_SERVER_SPREAD_SCORE].count, 1);
}

static void what_is_no_number_is_counted_and_warned_of_once(void **state)
{
    (void)state;
    double value = INFINITY;
    td_sched_policy policy = {.score = give, .score_user = &value};
    td_server_score_wrap(&score, &policy);
    for (int i = 0; i < 3; i++)
        (void)ask(&policy);
    td_server_score_record(&score, stats, TD_NS_PER_S);
    assert_int_equal(counted(TD_SERVER_COUNT_SCORE_NOT_FINITE), 3);
    td_log_stop(); // every line is out
    assert_int_equal(warnings, 1);
}

static void
a_slow_one_is_warned_of_once_however_often_it_is_wrapped(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        td_sched_policy policy = {.score = take_long};
        td_server_score_wrap(&score, &policy);
        (void)ask(&policy);
        (void)ask(&policy);
    }
    td_log_stop();
    assert_int_equal(warnings, 1);
}

static void without_a_function_nothing_is_in_the_way(void **state)
{
    (void)state;
    td_sched_policy policy = {.strategy = TD_SCHED_ROUND_ROBIN};
    td_server_score_wrap(&score, &policy);
    assert_null(policy.score);
    td_server_score_record(&score, stats, TD_NS_PER_S);
    assert_int_equal(counted(TD_SERVER_COUNT_SCORE_CALLS), 0);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(its_answers_pass_and_are_counted_with_the_batch),
        TEST(what_is_no_number_is_counted_and_warned_of_once),
        TEST(a_slow_one_is_warned_of_once_however_often_it_is_wrapped),
        TEST(without_a_function_nothing_is_in_the_way),
    };
    return cmocka_run_group_tests_name("server/score", tests, NULL, NULL);
}
