// SPDX-License-Identifier: Apache-2.0
#include "edge/pacing/components.h"

#include "base/clock.h"
#include "base/rand.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { ALL = 0xffff };

// System 1, a planner at 2 Hz, a check with every fourth ask, and another with
// every fourth, half way between.
static const td_edge_component four[] = {
    {.deadline_ns = 100 * TD_NS_PER_MS},
    {.rate_hz = 2, .phase = 0.5, .deadline_ns = 400 * TD_NS_PER_MS},
    {.every = 4},
    {.every = 4, .phase = 0.5},
};

static td_edge_components components_of(const td_edge_component *settings,
                                        uint32_t count)
{
    td_edge_components components;
    assert_int_equal(
        td_edge_components_init(&components, settings, count, 0, 0), TD_OK);
    return components;
}

static void each_goes_at_its_own_rate_and_phase(void **state)
{
    (void)state;
    td_edge_components components = components_of(four, 4);
    uint64_t asks = 0;
    for (int64_t ms = 0; ms < 10000; ms += 10) {
        bool primary = ms % 50 == 0;
        uint32_t due = td_edge_components_due(&components, ms * TD_NS_PER_MS,
                                              primary, ALL);
        uint32_t wanted = primary | (ms % 500 == 250) << 1 |
                          (primary && asks % 4 == 0) << 2 |
                          (primary && asks % 4 == 2) << 3;
        asks += primary;
        assert_int_equal(due, wanted);
    }
}

static void one_that_cannot_be_asked_stays_due_once(void **state)
{
    (void)state;
    td_edge_components components = components_of(four, 4);
    for (int i = 0; i < 9; i++)
        assert_int_equal(td_edge_components_due(&components, i, true, 0), 1);
    int64_t later_ns = 5 * TD_NS_PER_S;
    assert_int_equal(td_edge_components_due(&components, later_ns, false, ALL),
                     0xe);
    assert_int_equal(td_edge_components_due(&components, later_ns, false, ALL),
                     0);
}

static void component_0_goes_when_the_caller_says(void **state)
{
    (void)state;
    td_edge_components components = components_of(four, 1);
    assert_int_equal(td_edge_components_due(&components, 0, false, ALL), 0);
    for (int i = 0; i < 100; i++)
        assert_int_equal(td_edge_components_due(&components, 0, true, ALL), 1);
}

// Counted one by one over random asks.
static void every_nth_is_every_nth(void **state)
{
    (void)state;
    td_rand rand;
    td_rand_init(&rand, 51);
    for (uint32_t every = 1; every < 20; every++) {
        td_edge_component settings[2] = {
            {0}, {.every = every, .phase = td_rand_unit(&rand)}};
        td_edge_components components = components_of(settings, 2);
        uint32_t first = (uint32_t)(settings[1].phase * every);
        uint32_t asks = 0, followed = 0;
        for (int i = 0; i < 1000; i++) {
            bool primary = td_rand_u64(&rand) % 2 == 0;
            followed +=
                td_edge_components_due(&components, i, primary, ALL) >> 1;
            asks += primary;
            uint32_t wanted = asks > first ? (asks - first - 1) / every + 1 : 0;
            assert_int_equal(followed, wanted);
        }
    }
}

static void late_is_what_was_not_answered_by_its_deadline(void **state)
{
    (void)state;
    td_edge_components components = components_of(four, 4);
    (void)td_edge_components_due(&components, 0, true, ALL);
    assert_int_equal(td_edge_components_late(&components, 100 * TD_NS_PER_MS),
                     0);
    assert_int_equal(td_edge_components_late(&components, 101 * TD_NS_PER_MS),
                     1);
    // Asking again does not make the oldest one younger.
    (void)td_edge_components_due(&components, 90 * TD_NS_PER_MS, true, ALL);
    assert_int_equal(td_edge_components_late(&components, 101 * TD_NS_PER_MS),
                     1);
    td_edge_components_answered(&components, 0);
    assert_int_equal(td_edge_components_late(&components, 500 * TD_NS_PER_MS),
                     0);
    (void)td_edge_components_due(&components, 250 * TD_NS_PER_MS, false, ALL);
    assert_int_equal(td_edge_components_late(&components, 651 * TD_NS_PER_MS),
                     2);
}

static void settings_that_make_no_sense_are_refused(void **state)
{
    (void)state;
    static const td_edge_component bad[] = {
        {0},
        {.rate_hz = 1, .every = 2},
        {.rate_hz = -1},
        {.rate_hz = NAN},
        {.every = 2, .phase = 1.5},
        {.every = 2, .deadline_ns = -1},
    };
    td_edge_components components;
    for (size_t i = 0; i < TD_COUNT_OF(bad); i++) {
        td_edge_component settings[2] = {{0}, bad[i]};
        if (td_edge_components_init(&components, settings, 2, 0, 0) !=
            TD_ERR_INVALID)
            fail_msg("bad[%zu] was taken", i);
    }
    td_edge_component many[TD_WIRE_MAX_COMPONENTS + 1] = {{.rate_hz = 1}};
    assert_int_equal(td_edge_components_init(&components, many, 1, 0, 0),
                     TD_ERR_INVALID);
    assert_int_equal(td_edge_components_init(&components, many, 0, 0, 0),
                     TD_ERR_INVALID);
    many[0].rate_hz = 0;
    assert_int_equal(td_edge_components_init(&components, many,
                                             TD_WIRE_MAX_COMPONENTS + 1, 0, 0),
                     TD_ERR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_goes_at_its_own_rate_and_phase),
        cmocka_unit_test(one_that_cannot_be_asked_stays_due_once),
        cmocka_unit_test(component_0_goes_when_the_caller_says),
        cmocka_unit_test(every_nth_is_every_nth),
        cmocka_unit_test(late_is_what_was_not_answered_by_its_deadline),
        cmocka_unit_test(settings_that_make_no_sense_are_refused),
    };
    return cmocka_run_group_tests_name("edge/components", tests, NULL, NULL);
}
