// SPDX-License-Identifier: Apache-2.0
// What late answers, warnings and failures lead to when they come in a row.
#include "sim/factory_fixture.h"

#define ON_MAX(what)                                                           \
    "  safety_and_slo_violation: {on_max_violation: " what "}\n"
#define REPLANS                                                                \
    SYSTEM1 SYSTEM2 "    safety: {model: Qwen2.5-VL-3B-Instruct, slo_ms: "     \
                    "500, freq_hz: 2, "                                        \
                    "fallback: stop_and_replan}\n"

// 16 robots ask one server for three times what it can give.
static shop_hand crowd(const char *more)
{
    return (shop_hand){.components = P1,
                       .robots = 16,
                       .servers = {1},
                       .batch = 1,
                       .wait = TD_CONFIG_WAIT_NONE,
                       .more = more};
}

// Four robots for which there is more than enough.
static shop_hand calm(const char *more)
{
    return (shop_hand){.components = P4,
                       .robots = 4,
                       .servers = {4, 1, 1, 1},
                       .batch = 1,
                       .wait = TD_CONFIG_WAIT_NONE,
                       .more = more};
}

static td_sim_factory_result run(const shop_hand *hand, double unsafe,
                                 double failing)
{
    td_sim_factory_options options = td_sim_factory_defaults;
    options.unsafe = unsafe;
    options.failing = failing;
    options.trace = true;
    return shop_try(hand, &options);
}

static size_t times(const char *text, const char *what)
{
    size_t count = 0;
    for (; (text = strstr(text, what)); text++)
        count++;
    return count;
}

static void three_late_answers_in_a_row_stop_a_robot(void **state)
{
    (void)state;
    shop_hand hand = crowd(NULL);
    td_sim_factory_result result = run(&hand, 0, 0);
    const td_sim_factory_class *all = &result.classes[0];
    assert_true(all->stopped > 0 && all->stopped < 16);
    assert_true(result.qualified_hz > 0);
    for (unsigned i = 0; i < 16; i++) {
        char stops[32], asks[32], misses[32];
        (void)snprintf(stops, sizeof stops, "robot %u stops", i);
        (void)snprintf(asks, sizeof asks, "robot %u asks", i);
        (void)snprintf(misses, sizeof misses, "robot %u system1 missed", i);
        const char *end = strstr(result.trace, stops);
        if (!end) continue;
        assert_true(times(result.trace, misses) >= 3);
        assert_null(strstr(end, asks));
    }
    td_sim_factory_result_done(&result);
}

static void the_task_says_what_too_many_late_answers_lead_to(void **state)
{
    (void)state;
    static const struct {
        const char *more;
        bool stops, restarts;
    } cases[] = {
        {ON_MAX("stop_and_call_human"), true, false},
        {ON_MAX("stop"), true, false},
        {ON_MAX("retry_task"), false, true},
        {ON_MAX("return_to_safe_state"), false, true},
        {ON_MAX("stop_and_resend"), false, false},
        {"  on_miss: count\n", false, false},
    };
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        shop_hand hand = crowd(cases[i].more);
        td_sim_factory_result result = run(&hand, 0, 0);
        const td_sim_factory_class *all = &result.classes[0];
        if ((all->stopped > 0) != cases[i].stops ||
            (all->restarts > 0) != cases[i].restarts || !(all->actions_hz > 0))
            fail_msg("%s: %llu stopped, %llu restarts", cases[i].more,
                     (unsigned long long)all->stopped,
                     (unsigned long long)all->restarts);
        td_sim_factory_result_done(&result);
    }
}

static void a_warning_stops_the_motion_until_it_is_safe(void **state)
{
    (void)state;
    shop_hand hand = calm(NULL);
    td_sim_factory_result safe = run(&hand, 0, 0);
    td_sim_factory_result warned = run(&hand, 0.2, 0);
    assert_int_equal(warned.classes[0].stopped, 0);
    assert_true(warned.qualified_hz < 0.95 * safe.qualified_hz);
    assert_true(warned.qualified_hz > 0.6 * safe.qualified_hz);
    td_sim_factory_result_done(&safe);
    td_sim_factory_result_done(&warned);
}

static void a_warning_asks_for_a_new_plan_where_it_says_so(void **state)
{
    (void)state;
    shop_hand hand = {.components = REPLANS,
                      .robots = 4,
                      .servers = {4, 1, 1},
                      .batch = 1,
                      .wait = TD_CONFIG_WAIT_NONE};
    td_sim_factory_result safe = run(&hand, 0, 0);
    td_sim_factory_result warned = run(&hand, 0.2, 0);
    assert_true(times(warned.trace, "asks system2") >
                1.2 * (double)times(safe.trace, "asks system2"));
    td_sim_factory_result_done(&safe);
    td_sim_factory_result_done(&warned);
}

static void warnings_without_end_call_a_human(void **state)
{
    (void)state;
    shop_hand hand = calm(NULL);
    td_sim_factory_result result = run(&hand, 1, 0);
    assert_int_equal(result.classes[0].stopped, 4);
    assert_true(times(result.trace, "is unsafe") >= 4 * 11);
    assert_int_equal(times(result.trace, " stops"), 4);
    td_sim_factory_result_done(&result);
}

static void a_task_that_failed_is_begun_again_as_often_as_it_says(void **state)
{
    (void)state;
    static const struct {
        const char *more;
        uint64_t restarts;
    } cases[] = {
        {NULL, 4 * 3},
        {"  task_retry: {max_task_retries: 0}\n", 0},
        {"  task_retry: {max_task_retries: 5}\n", 4 * 5},
        {"  execution: async\n", 4 * 3},
    };
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        shop_hand hand = calm(cases[i].more);
        td_sim_factory_result result = run(&hand, 0, 1);
        assert_int_equal(result.classes[0].stopped, 4);
        assert_int_equal(result.classes[0].restarts, cases[i].restarts);
        assert_true(result.actions_hz ==
                    0); // all stand before the warm-up ends
        td_sim_factory_result_done(&result);
    }
}

static void a_task_that_is_retried_for_ever_goes_on(void **state)
{
    (void)state;
    shop_hand hand = calm("  task_retry: {on_max_task_retries: retry_task}\n");
    td_sim_factory_result well = run(&hand, 0, 0);
    td_sim_factory_result failing = run(&hand, 0, 1);
    assert_int_equal(failing.classes[0].stopped, 0);
    assert_true(failing.classes[0].restarts > 4 * 30);
    assert_true(failing.actions_hz > 0);
    assert_true(failing.actions_hz < well.actions_hz);
    td_sim_factory_result_done(&well);
    td_sim_factory_result_done(&failing);
}

static void a_plan_whose_robots_stop_does_not_hold(void **state)
{
    (void)state;
    shop_hand hand = calm(NULL);
    td_sim_factory_options options = td_sim_factory_defaults;
    td_errinfo info = {.text = ""};
    shop made;
    shop_open(&made, &hand);
    td_sim_factory_result result = shop_run(&made, &options);
    assert_int_equal(
        td_sim_factory_holds(made.factory, &made.plan, &result, &info), TD_OK);
    td_sim_factory_result_done(&result);
    options.failing = 1;
    result = shop_run(&made, &options);
    assert_int_equal(
        td_sim_factory_holds(made.factory, &made.plan, &result, &info),
        TD_ERR_MISMATCH);
    assert_non_null(strstr(info.text, "stopped for good"));
    td_sim_factory_result_done(&result);
    shop_close(&made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(three_late_answers_in_a_row_stop_a_robot),
        cmocka_unit_test(the_task_says_what_too_many_late_answers_lead_to),
        cmocka_unit_test(a_warning_stops_the_motion_until_it_is_safe),
        cmocka_unit_test(a_warning_asks_for_a_new_plan_where_it_says_so),
        cmocka_unit_test(warnings_without_end_call_a_human),
        cmocka_unit_test(a_task_that_failed_is_begun_again_as_often_as_it_says),
        cmocka_unit_test(a_task_that_is_retried_for_ever_goes_on),
        cmocka_unit_test(a_plan_whose_robots_stop_does_not_hold),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
