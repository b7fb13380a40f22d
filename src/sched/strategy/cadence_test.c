// SPDX-License-Identifier: Apache-2.0
#include "sched/strategy/cadence.h"

#include "sched/strategy/heap.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#define MS 1000000LL

static td_sched_cadence *cadence_new(void)
{
    td_sched_cadence *cadence = NULL;
    assert_int_equal(
        td_sched_cadence_new(&td_sched_cadence_defaults, 4, &cadence), TD_OK);
    return cadence;
}

// Every 100 ms, `count` times from 0.
static void arrive(td_sched_cadence *cadence, uint32_t client, int count)
{
    for (int i = 0; i < count; i++)
        td_sched_cadence_arrived(cadence, client, (int64_t)i * 100 * MS);
}

static void the_first_interval_counts_whole_and_later_ones_a_third(void **state)
{
    (void)state;
    TD_AUTO(td_sched_cadence) *cadence = cadence_new();
    assert_int_equal(td_sched_cadence_expected_ns(cadence, 0),
                     TD_SCHED_NEVER_NS);
    td_sched_cadence_arrived(cadence, 0, 0);
    assert_int_equal(td_sched_cadence_expected_ns(cadence, 0),
                     TD_SCHED_NEVER_NS);
    td_sched_cadence_arrived(cadence, 0, 100 * MS);
    assert_int_equal(td_sched_cadence_expected_ns(cadence, 0), 200 * MS);
    td_sched_cadence_arrived(cadence, 0, 300 * MS); // 100 + 0.3 * (200 - 100)
    assert_int_equal(td_sched_cadence_expected_ns(cadence, 0), 430 * MS);
}

static void a_wake_up_comes_once_five_ms_before_the_next(void **state)
{
    (void)state;
    TD_AUTO(td_sched_cadence) *cadence = cadence_new();
    td_sched_cadence_event event;
    arrive(cadence, 2, 5); // four intervals are too few
    assert_int_equal(td_sched_cadence_wake_ns(cadence), 10400 * MS);
    td_sched_cadence_arrived(cadence, 2, 500 * MS);
    assert_int_equal(td_sched_cadence_wake_ns(cadence), 595 * MS);
    assert_false(td_sched_cadence_next(cadence, 595 * MS - 1, &event));
    assert_true(td_sched_cadence_next(cadence, 595 * MS, &event));
    assert_int_equal(event.kind, TD_SCHED_CADENCE_WAKE);
    assert_int_equal(event.client, 2);
    assert_false(td_sched_cadence_next(cadence, 700 * MS, &event));
    td_sched_cadence_arrived(cadence, 2, 700 * MS);
    assert_true(td_sched_cadence_next(cadence, 900 * MS, &event));
    assert_int_equal(event.kind, TD_SCHED_CADENCE_WAKE);
}

static void silent_for_ten_seconds_is_gone_and_forgotten(void **state)
{
    (void)state;
    TD_AUTO(td_sched_cadence) *cadence = cadence_new();
    td_sched_cadence_event event;
    td_sched_cadence_arrived(cadence, 0, 0);
    td_sched_cadence_arrived(cadence, 3, 100 * MS);
    assert_false(td_sched_cadence_next(cadence, 10000 * MS - 1, &event));
    assert_true(td_sched_cadence_next(cadence, 10000 * MS, &event));
    assert_int_equal(event.kind, TD_SCHED_CADENCE_GONE);
    assert_int_equal(event.client, 0);
    assert_false(td_sched_cadence_next(cadence, 10000 * MS, &event));

    td_sched_cadence_arrived(cadence, 0, 10050 * MS); // back, as a new one
    assert_int_equal(td_sched_cadence_expected_ns(cadence, 0),
                     TD_SCHED_NEVER_NS);
    assert_true(td_sched_cadence_next(cadence, 10100 * MS, &event));
    assert_int_equal(event.client, 3);
}

static void who_left_in_good_order_is_no_event(void **state)
{
    (void)state;
    TD_AUTO(td_sched_cadence) *cadence = cadence_new();
    td_sched_cadence_event event;
    arrive(cadence, 0, 20);
    td_sched_cadence_forget(cadence, 0);
    assert_false(td_sched_cadence_next(cadence, 99999 * MS, &event));
    assert_int_equal(td_sched_cadence_wake_ns(cadence), TD_SCHED_NEVER_NS);
}

static void other_settings_hold_for_those_who_are_here(void **state)
{
    (void)state;
    TD_AUTO(td_sched_cadence) *cadence = cadence_new();
    td_sched_cadence_settings sooner = td_sched_cadence_defaults;
    td_sched_cadence_event event;
    sooner.gone_ns = 500 * MS;
    arrive(cadence, 2, 3); // the last at 200 ms
    assert_int_equal(td_sched_cadence_wake_ns(cadence), 10200 * MS);
    assert_int_equal(td_sched_cadence_use(cadence, &sooner), TD_OK);
    assert_int_equal(td_sched_cadence_wake_ns(cadence), 700 * MS);
    assert_int_equal(td_sched_cadence_expected_ns(cadence, 2), 300 * MS);
    assert_true(td_sched_cadence_next(cadence, 700 * MS, &event));
    assert_int_equal(event.kind, TD_SCHED_CADENCE_GONE);
    sooner.gone_ns = 0;
    assert_int_equal(td_sched_cadence_use(cadence, &sooner), TD_ERR_INVALID);
}

static void settings_without_sense_are_refused(void **state)
{
    (void)state;
    td_sched_cadence_settings bad = td_sched_cadence_defaults;
    td_sched_cadence *cadence = NULL;
    assert_int_equal(td_sched_cadence_new(&bad, 0, &cadence), TD_ERR_INVALID);
    bad.alpha = 0;
    assert_int_equal(td_sched_cadence_new(&bad, 1, &cadence), TD_ERR_INVALID);
    bad = td_sched_cadence_defaults;
    bad.gone_ns = 0;
    assert_int_equal(td_sched_cadence_new(&bad, 1, &cadence), TD_ERR_INVALID);
    assert_null(cadence);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            the_first_interval_counts_whole_and_later_ones_a_third),
        cmocka_unit_test(a_wake_up_comes_once_five_ms_before_the_next),
        cmocka_unit_test(silent_for_ten_seconds_is_gone_and_forgotten),
        cmocka_unit_test(who_left_in_good_order_is_no_event),
        cmocka_unit_test(other_settings_hold_for_those_who_are_here),
        cmocka_unit_test(settings_without_sense_are_refused),
    };
    return cmocka_run_group_tests_name("sched/cadence", tests, NULL, NULL);
}
