// SPDX-License-Identifier: Apache-2.0
#include "engine/synthetic/serial.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void one_alone_takes_both_times(void **state)
{
    (void)state;
    td_engine_synthetic_serial serial = {0};
    assert_int_equal(td_engine_synthetic_serial_take(&serial, 100, 7, 30), 137);
    assert_int_equal(td_engine_synthetic_serial_take(&serial, 500, 7, 30), 537);
}

static void the_next_is_prepared_while_one_runs(void **state)
{
    (void)state;
    td_engine_synthetic_serial serial = {0};
    assert_int_equal(td_engine_synthetic_serial_take(&serial, 0, 7, 30), 37);
    assert_int_equal(td_engine_synthetic_serial_take(&serial, 10, 7, 30), 67);
    assert_int_equal(td_engine_synthetic_serial_take(&serial, 65, 7, 30), 102);
}

// Where there is always work, each is submitted when the one `inflight` before
// it is through.
static int64_t all_through(int inflight, int64_t prepare_ns, int64_t device_ns)
{
    td_engine_synthetic_serial serial = {0};
    int64_t ends_ns[100];
    for (int i = 0; i < 100; i++)
        ends_ns[i] = td_engine_synthetic_serial_take(
            &serial, i < inflight ? 0 : ends_ns[i - inflight], prepare_ns,
            device_ns);
    return ends_ns[99];
}

static void two_in_flight_keep_the_slower_of_the_two_busy(void **state)
{
    (void)state;
    assert_int_equal(all_through(1, 10, 30), 100 * 40);
    assert_int_equal(all_through(2, 10, 30), 10 + 100 * 30);
    assert_int_equal(all_through(2, 30, 10), 100 * 30 + 10);
    assert_int_equal(all_through(2, 0, 30), all_through(1, 0, 30));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_alone_takes_both_times),
        cmocka_unit_test(the_next_is_prepared_while_one_runs),
        cmocka_unit_test(two_in_flight_keep_the_slower_of_the_two_busy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
