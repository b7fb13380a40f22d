// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"

#include "base/err.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void monotonic_never_goes_back(void **state)
{
    (void)state;
    int64_t last_ns = td_clock_monotonic_ns();
    assert_true(last_ns > 0);
    for (int i = 0; i < 100000; i++) {
        int64_t now_ns = td_clock_monotonic_ns();
        assert_true(now_ns >= last_ns);
        last_ns = now_ns;
    }
}

static void virtual_stands_still_until_advanced(void **state)
{
    (void)state;
    td_clock_virtual clock;
    td_clock_virtual_init(&clock, 5);
    assert_int_equal(td_clock_now_ns(&clock.clock), 5);
    assert_int_equal(td_clock_now_ns(&clock.clock), 5);
}

static const struct {
    const char *name;
    int64_t start_ns, to_ns, at_ns;
} advances[] = {
    {"forward", 10, 25, 25},
    {"to the same time", 10, 10, 10},
    {"back changes nothing", 10, 9, 10},
    {"from a negative time", -7, -3, -3},
    {"to the end of time", 0, INT64_MAX, INT64_MAX},
};

static void virtual_moves_forward_only(void **state)
{
    (void)state;
    for (size_t i = 0; i < TD_COUNT_OF(advances); i++) {
        td_clock_virtual clock;
        td_clock_virtual_init(&clock, advances[i].start_ns);
        td_clock_virtual_advance_to(&clock, advances[i].to_ns);
        int64_t now_ns = td_clock_now_ns(&clock.clock);
        if (now_ns != advances[i].at_ns)
            fail_msg("%s: at %ld", advances[i].name, (long)now_ns);
    }
}

static void sleep_does_not_end_before_its_time(void **state)
{
    (void)state;
    int64_t until_ns = td_clock_monotonic_ns() + 2 * TD_NS_PER_MS;
    td_clock_sleep_until(until_ns);
    assert_true(td_clock_monotonic_ns() >= until_ns);
}

static void sleep_until_the_past_returns(void **state)
{
    (void)state;
    td_clock_sleep_until(0);
    td_clock_sleep_until(-1);
    td_clock_sleep_until(td_clock_monotonic_ns());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(monotonic_never_goes_back),
        cmocka_unit_test(virtual_stands_still_until_advanced),
        cmocka_unit_test(virtual_moves_forward_only),
        cmocka_unit_test(sleep_does_not_end_before_its_time),
        cmocka_unit_test(sleep_until_the_past_returns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
