// SPDX-License-Identifier: Apache-2.0
#include "edge/pacing/latency.h"

#include "base/clock.h"
#include "base/rand.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static const int64_t no_cap_ns = 3600 * TD_NS_PER_S;

static void warm_up(td_edge_latency *latency)
{
    td_edge_latency_init(latency);
    assert_false(td_edge_latency_add(latency, 5 * TD_NS_PER_S));
}

static int ascending(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

// The last samples of `all`, sorted.
static uint32_t obvious_window(const int64_t *all, uint32_t count,
                               int64_t *ret_sorted)
{
    uint32_t size =
        count < TD_EDGE_LATENCY_WINDOW ? count : TD_EDGE_LATENCY_WINDOW;
    for (uint32_t i = 0; i < size; i++)
        ret_sorted[i] = all[count - size + i];
    qsort(ret_sorted, size, sizeof *ret_sorted, ascending);
    return size;
}

static void window_is_the_last_samples_sorted(void **state)
{
    (void)state;
    enum { SAMPLES = 3 * TD_EDGE_LATENCY_WINDOW };
    static int64_t all[SAMPLES], sorted[TD_EDGE_LATENCY_WINDOW];
    static td_edge_latency latency;
    td_rand rand;
    td_rand_init(&rand, 21);
    warm_up(&latency);
    for (uint32_t i = 0; i < SAMPLES; i++) {
        all[i] = (int64_t)(td_rand_u64(&rand) % 500); // many are equal
        assert_true(td_edge_latency_add(&latency, all[i]));
        if (i % 37 != 0) continue;
        uint32_t size = obvious_window(all, i + 1, sorted);
        assert_int_equal(latency.size, size);
        assert_memory_equal(latency.sorted, sorted, size * sizeof *sorted);
        double quantile = td_rand_unit(&rand);
        uint32_t rank = (uint32_t)ceil(quantile * size);
        assert_int_equal(td_edge_latency_quantile(&latency, quantile),
                         sorted[rank > 0 ? rank - 1 : 0]);
    }
}

static void quantiles_of_0_and_1_are_the_ends(void **state)
{
    (void)state;
    td_edge_latency latency;
    warm_up(&latency);
    assert_int_equal(td_edge_latency_quantile(&latency, 0.5), 0);
    for (int64_t i = 1; i <= 10; i++)
        td_edge_latency_add(&latency, i);
    assert_int_equal(td_edge_latency_quantile(&latency, 0), 1);
    assert_int_equal(td_edge_latency_quantile(&latency, 0.5), 5);
    assert_int_equal(td_edge_latency_quantile(&latency, 1), 10);
}

static void cold_start_of_each_connection_is_left_out(void **state)
{
    (void)state;
    td_edge_latency latency;
    td_edge_latency_init(&latency);
    for (int connection = 0; connection < 3; connection++) {
        assert_false(td_edge_latency_add(&latency, 9 * TD_NS_PER_S));
        assert_int_equal(latency.size, 0);
        assert_int_equal(latency.late_ns, 0);
        for (int i = 0; i < 20; i++)
            assert_true(td_edge_latency_add(&latency, TD_NS_PER_MS));
        assert_int_equal(td_edge_latency_bound(&latency, 0.001, no_cap_ns),
                         TD_NS_PER_MS);
        td_edge_latency_reconnect(&latency);
        assert_int_equal(td_edge_latency_quantile(&latency, 1), 0);
    }
}

static void longest_of_late_rises_at_once_and_falls_slowly(void **state)
{
    (void)state;
    td_edge_latency latency;
    warm_up(&latency);
    td_edge_latency_add(&latency, 100);
    td_edge_latency_add(&latency, 1600);
    assert_int_equal(latency.late_ns, 1600);
    td_edge_latency_add(&latency, 100);
    assert_int_equal(latency.late_ns, 1500);
    for (int i = 0; i < 100; i++)
        td_edge_latency_add(&latency, 100);
    assert_in_range(latency.late_ns, 100, 110);
}

static void one_long_silence_does_not_make_the_mean(void **state)
{
    (void)state;
    td_edge_latency latency;
    warm_up(&latency);
    for (int i = 0; i < 9; i++)
        td_edge_latency_add(&latency, 100);
    td_edge_latency_add(&latency, 1000000);
    assert_int_equal(td_edge_latency_mean(&latency), 130);
}

static void bound_of_what_never_varies_is_that(void **state)
{
    (void)state;
    td_edge_latency latency;
    warm_up(&latency);
    assert_int_equal(td_edge_latency_bound(&latency, 0.001, no_cap_ns), 0);
    td_edge_latency_add(&latency, 1000);
    assert_int_equal(td_edge_latency_bound(&latency, 0.001, no_cap_ns), 9000);
    assert_int_equal(td_edge_latency_bound(&latency, 0.001, 5000), 5000);
    for (int i = 1; i < 8; i++) {
        int64_t before = td_edge_latency_bound(&latency, 0.001, no_cap_ns);
        td_edge_latency_add(&latency, 1000);
        assert_true(td_edge_latency_bound(&latency, 0.001, no_cap_ns) < before);
    }
    assert_int_equal(td_edge_latency_bound(&latency, 0.001, no_cap_ns), 1000);
}

static const struct {
    const char *name;
    double sigma;
    uint32_t samples;
    double least, most; // of the true quantile, in 19 of 20 windows
} tails[] = {
    {"few", 0.3, 16, 0.7, 4},
    {"some", 0.3, 128, 0.8, 1.8},
    {"narrow", 0.1, TD_EDGE_LATENCY_WINDOW, 0.95, 1.12},
    {"wide", 0.3, TD_EDGE_LATENCY_WINDOW, 0.9, 1.3},
    {"very wide", 0.5, TD_EDGE_LATENCY_WINDOW, 0.8, 1.5},
};

// One sample in a thousand of a lognormal lies above exp(3.09 sigma).
static void bound_is_near_the_rare_quantile(void **state)
{
    (void)state;
    static td_edge_latency latency;
    td_rand rand;
    td_rand_init(&rand, 22);
    for (size_t i = 0; i < TD_COUNT_OF(tails); i++) {
        enum { WINDOWS = 200 };
        double truth = 1e8 * exp(3.09 * tails[i].sigma);
        int outside = 0;
        for (int window = 0; window < WINDOWS; window++) {
            warm_up(&latency);
            for (uint32_t k = 0; k < tails[i].samples; k++)
                td_edge_latency_add(
                    &latency, (int64_t)(1e8 * exp(tails[i].sigma *
                                                  td_rand_normal(&rand))));
            double ratio =
                (double)td_edge_latency_bound(&latency, 0.001, no_cap_ns) /
                truth;
            outside += ratio < tails[i].least || ratio > tails[i].most;
        }
        if (outside > WINDOWS / 20)
            fail_msg("%s: %d of %d outside", tails[i].name, outside, WINDOWS);
    }
}

static void one_slow_answer_is_believed_at_once(void **state)
{
    (void)state;
    static td_edge_latency latency;
    warm_up(&latency);
    for (int i = 0; i < 500; i++)
        td_edge_latency_add(&latency, 100);
    td_edge_latency_add(&latency, 900);
    assert_true(td_edge_latency_bound(&latency, 0.001, no_cap_ns) >= 900);
    assert_int_equal(td_edge_latency_bound(&latency, 0.001, 700), 700);
}

// One in fifty takes four times as long, and none longer.
static void two_humps_are_no_long_tail(void **state)
{
    (void)state;
    static td_edge_latency latency;
    warm_up(&latency);
    for (int i = 0; i < TD_EDGE_LATENCY_WINDOW; i++)
        td_edge_latency_add(&latency, i % 50 == 0 ? 400 : 100);
    assert_int_equal(td_edge_latency_bound(&latency, 0.001, no_cap_ns), 400);
}

static const struct {
    const char *name;
    int64_t took_ns, period_ns;
    uint64_t executed;
    uint32_t steps;
} delays[] = {
    {"nothing", 0, 10, 5, 0},
    {"before", -7, 10, 5, 0},
    {"a part of a step", 1, 10, 5, 1},
    {"a step", 10, 10, 5, 1},
    {"more than a step", 11, 10, 5, 2},
    {"more than was executed", 999, 10, 5, 5},
    {"held all the while", 999, 10, 0, 0},
    {"for ever", INT64_MAX, 1, UINT64_MAX, UINT32_MAX},
};

static void delay_is_rounded_up_and_clamped_to_what_was_executed(void **state)
{
    (void)state;
    for (size_t i = 0; i < TD_COUNT_OF(delays); i++)
        if (td_edge_latency_steps(delays[i].took_ns, delays[i].period_ns,
                                  delays[i].executed) != delays[i].steps)
            fail_msg("%s", delays[i].name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(window_is_the_last_samples_sorted),
        cmocka_unit_test(quantiles_of_0_and_1_are_the_ends),
        cmocka_unit_test(cold_start_of_each_connection_is_left_out),
        cmocka_unit_test(longest_of_late_rises_at_once_and_falls_slowly),
        cmocka_unit_test(one_long_silence_does_not_make_the_mean),
        cmocka_unit_test(bound_of_what_never_varies_is_that),
        cmocka_unit_test(bound_is_near_the_rare_quantile),
        cmocka_unit_test(one_slow_answer_is_believed_at_once),
        cmocka_unit_test(two_humps_are_no_long_tail),
        cmocka_unit_test(delay_is_rounded_up_and_clamped_to_what_was_executed),
    };
    return cmocka_run_group_tests_name("edge/latency", tests, NULL, NULL);
}
