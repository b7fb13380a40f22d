// SPDX-License-Identifier: Apache-2.0
#include "engine/traffic.h"

#include "base/clock.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define START_NS (5 * TD_NS_PER_S)

static td_engine_traffic made(double rate_hz, size_t count, uint32_t batch)
{
    td_engine_traffic traffic;
    assert_int_equal(
        td_engine_traffic_init(&traffic, rate_hz, count, batch, 7, START_NS),
        TD_OK);
    return traffic;
}

static void requests_come_at_the_rate_on_average(void **state)
{
    (void)state;
    td_engine_traffic traffic = made(50, 20000, 1);
    double seconds =
        (double)(traffic.arrival_ns[traffic.count - 1] - START_NS) /
        TD_NS_PER_S;
    assert_true(fabs(20000 / seconds - 50) < 1.5);
    assert_int_equal(td_engine_traffic_next_ns(&traffic), START_NS);
    td_engine_traffic_done(&traffic);
}

static void who_waits_goes_in_order_and_in_batches(void **state)
{
    (void)state;
    td_engine_traffic traffic = made(1000, 5, 2);
    assert_int_equal(td_engine_traffic_take(&traffic, START_NS - 1), 0);
    int64_t late_ns = START_NS + TD_NS_PER_S;
    assert_int_equal(td_engine_traffic_take(&traffic, late_ns), 2);
    td_engine_traffic_answer(&traffic, late_ns + TD_NS_PER_MS);
    assert_true(fabs(traffic.latency_ms[0] - 1001) < 1e-6);
    assert_int_equal(td_engine_traffic_take(&traffic, late_ns), 2);
    td_engine_traffic_answer(&traffic, late_ns);
    assert_int_equal(td_engine_traffic_take(&traffic, late_ns), 1);
    td_engine_traffic_answer(&traffic, late_ns);
    assert_int_equal(traffic.done, 5);
    assert_true(td_engine_traffic_next_ns(&traffic) == INT64_MAX);
    assert_true(fabs(td_engine_traffic_quantile_ms(&traffic, 1) - 1001) < 1e-6);
    assert_true(td_engine_traffic_quantile_ms(&traffic, 0) < 1001);
    td_engine_traffic_done(&traffic);
}

// Half loaded, M/D/1: who comes waits rho / (2 (1 - rho)) service times.
static void queueing_is_as_the_books_say(void **state)
{
    (void)state;
    td_engine_traffic traffic = made(50, 50000, 1);
    int64_t now_ns = START_NS;
    double sum_ms = 0;
    while (traffic.done < traffic.count) {
        if (td_engine_traffic_take(&traffic, now_ns)) {
            now_ns += 10 * TD_NS_PER_MS;
            td_engine_traffic_answer(&traffic, now_ns);
            sum_ms += traffic.latency_ms[traffic.done - 1];
        } else {
            now_ns = td_engine_traffic_next_ns(&traffic);
        }
    }
    assert_true(fabs(sum_ms / 50000 - 15) < 0.5);
    td_engine_traffic_done(&traffic);
}

static void nothing_at_all_is_refused(void **state)
{
    (void)state;
    td_engine_traffic traffic;
    assert_int_equal(td_engine_traffic_init(&traffic, 0, 1, 1, 0, 0),
                     TD_ERR_INVALID);
    assert_int_equal(td_engine_traffic_init(&traffic, NAN, 1, 1, 0, 0),
                     TD_ERR_INVALID);
    assert_int_equal(td_engine_traffic_init(&traffic, 1, 0, 1, 0, 0),
                     TD_ERR_INVALID);
    assert_int_equal(td_engine_traffic_init(&traffic, 1, 1, 0, 0, 0),
                     TD_ERR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_come_at_the_rate_on_average),
        cmocka_unit_test(who_waits_goes_in_order_and_in_batches),
        cmocka_unit_test(queueing_is_as_the_books_say),
        cmocka_unit_test(nothing_at_all_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
