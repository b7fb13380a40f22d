// SPDX-License-Identifier: Apache-2.0
#include "plan/capacity/queue.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

// A batch of n takes 40 + 10 n.
static td_plan_service steady(void)
{
    td_plan_service service = {.most = 8};
    for (uint32_t n = 1; n <= 8; n++)
        for (uint32_t i = 0; i < TD_PLAN_DRAWS; i++)
            service.ms[n][i] = 40 + 10 * n;
    return service;
}

static void assert_near(double is, double should, double by)
{
    if (fabs(is - should) > by) fail_msg("%g is not %g", is, should);
}

static void even_streams_that_fit_never_wait(void **state)
{
    (void)state;
    td_plan_service service = steady();
    double arrivals_ms[400];
    td_plan_queue_even(10, 0, 1, arrivals_ms, 400);
    td_plan_latency latency =
        td_plan_queue_run(&service, arrivals_ms, 400, 1, 0, 99, 400);
    assert_near(latency.mean_ms, 50, 0.01);
    assert_near(latency.tail_ms, 50, 2);
}

static void a_queue_that_grows_has_no_tail(void **state)
{
    (void)state;
    td_plan_service service = steady();
    double arrivals_ms[400];
    td_plan_queue_even(25, 0, 1, arrivals_ms, 400);
    td_plan_latency latency =
        td_plan_queue_run(&service, arrivals_ms, 400, 1, 0, 99, 400);
    assert_true(isinf(latency.tail_ms));
}

static void batches_take_what_one_at_a_time_cannot(void **state)
{
    (void)state;
    td_plan_service service = steady();
    double arrivals_ms[400];
    td_plan_queue_even(25, 0, 1, arrivals_ms, 400);
    td_plan_latency latency =
        td_plan_queue_run(&service, arrivals_ms, 400, 4, 0, 99, 400);
    assert_true(latency.tail_ms < 150);
}

static void a_full_batch_waits_for_its_last(void **state)
{
    (void)state;
    td_plan_service service = steady();
    double arrivals_ms[400];
    td_plan_queue_even(10, 0, 1, arrivals_ms, 400); // one in 100 ms
    td_plan_latency latency =
        td_plan_queue_run(&service, arrivals_ms, 400, 2, INFINITY, 99, 400);
    assert_near(latency.mean_ms, (100 + 60 + 60) / 2.0, 0.01);
    assert_near(latency.tail_ms, 160, 2);
}

// Pairs 20 ms apart, which is as long as a batch waits, or longer.
static void a_batch_waits_so_long_for_the_rest_and_no_longer(void **state)
{
    (void)state;
    static const struct {
        double wait_ms, mean_ms;
    } cases[] = {{20, (80 + 60) / 2.0}, {10, (60 + 90) / 2.0}};
    td_plan_service service = steady();
    double arrivals_ms[400];
    for (size_t pair = 0; pair < 200; pair++) {
        arrivals_ms[2 * pair] = 200.0 * (double)pair;
        arrivals_ms[2 * pair + 1] = 200.0 * (double)pair + 20;
    }
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++)
        assert_near(td_plan_queue_run(&service, arrivals_ms, 400, 2,
                                      cases[i].wait_ms, 99, 400)
                        .mean_ms,
                    cases[i].mean_ms, 0.01);
}

static void those_together_come_at_once(void **state)
{
    (void)state;
    double arrivals_ms[6];
    static const double should_ms[] = {0, 0, 200, 200, 400, 400};
    td_plan_queue_even(10, 0, 2, arrivals_ms, 6);
    for (size_t i = 0; i < 6; i++)
        assert_near(arrivals_ms[i], should_ms[i], 1e-9);
}

static void bunched_phases_wait_longer_than_even_ones(void **state)
{
    (void)state;
    td_plan_service service = steady();
    double even_ms[800], phases_ms[800];
    td_plan_queue_even(16, 0, 1, even_ms, 800);
    td_plan_queue_phases(8, 2, 3, phases_ms, 800);
    assert_true(
        td_plan_queue_run(&service, phases_ms, 800, 1, 0, 99, 4000).mean_ms >
        td_plan_queue_run(&service, even_ms, 800, 1, 0, 99, 4000).mean_ms);
}

static void arrivals_never_go_back(void **state)
{
    (void)state;
    double arrivals_ms[400];
    td_plan_queue_even(100, 20, 1, arrivals_ms, 400);
    for (size_t i = 1; i < 400; i++)
        assert_true(arrivals_ms[i] >= arrivals_ms[i - 1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(even_streams_that_fit_never_wait),
        cmocka_unit_test(a_queue_that_grows_has_no_tail),
        cmocka_unit_test(batches_take_what_one_at_a_time_cannot),
        cmocka_unit_test(a_full_batch_waits_for_its_last),
        cmocka_unit_test(a_batch_waits_so_long_for_the_rest_and_no_longer),
        cmocka_unit_test(those_together_come_at_once),
        cmocka_unit_test(bunched_phases_wait_longer_than_even_ones),
        cmocka_unit_test(arrivals_never_go_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
