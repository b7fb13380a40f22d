// SPDX-License-Identifier: Apache-2.0
#include "edge/pace.h"

#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define HZ 1000
#define STEP_NS TD_NS_PER_MS
#define BURST_NS (4 * STEP_NS)
#define START_NS (7 * TD_NS_PER_S)

static td_edge_pace pace;

static int setup(void **state)
{
    (void)state;
    td_edge_pace_init(&pace, HZ, BURST_NS);
    return 0;
}

static void who_comes_at_the_rate_never_waits(void **state)
{
    (void)state;
    for (int64_t i = 0; i < 1000; i++) {
        int64_t now_ns = START_NS + i * STEP_NS;
        assert_true(td_edge_pace_take(&pace, now_ns) <= now_ns);
    }
}

static void a_burst_is_read_at_once_and_what_follows_waits(void **state)
{
    (void)state;
    for (int64_t i = 0; i < 5; i++)
        assert_int_equal(td_edge_pace_take(&pace, START_NS),
                         START_NS - BURST_NS + i * STEP_NS);
    assert_int_equal(td_edge_pace_take(&pace, START_NS), START_NS + STEP_NS);
    assert_int_equal(td_edge_pace_take(&pace, START_NS + STEP_NS),
                     START_NS + 2 * STEP_NS);
}

// Who waits for each place reads at the rate, however fast they come.
static void a_flood_is_read_at_the_rate(void **state)
{
    (void)state;
    int64_t now_ns = START_NS;
    for (int i = 0; i < 10004; i++) {
        int64_t place_ns = td_edge_pace_take(&pace, now_ns);
        if (place_ns > now_ns) now_ns = place_ns;
    }
    assert_int_equal(now_ns - START_NS, 9999 * STEP_NS);
}

static void a_quiet_time_saves_no_more_than_a_burst(void **state)
{
    (void)state;
    for (int i = 0; i < 100; i++)
        (void)td_edge_pace_take(&pace, START_NS);
    int64_t later_ns = START_NS + TD_NS_PER_S;
    assert_int_equal(td_edge_pace_take(&pace, later_ns), later_ns - BURST_NS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(who_comes_at_the_rate_never_waits, setup),
        cmocka_unit_test_setup(a_burst_is_read_at_once_and_what_follows_waits,
                               setup),
        cmocka_unit_test_setup(a_flood_is_read_at_the_rate, setup),
        cmocka_unit_test_setup(a_quiet_time_saves_no_more_than_a_burst, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
