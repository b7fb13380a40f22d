// SPDX-License-Identifier: Apache-2.0
#include "server/report/window.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/rand.h"
#include "base/sync/thread.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { VALUES = 20000, CONCURRENT = 200000 };

#define MINUTE_NS (60 * TD_NS_PER_S)
#define START_NS (1000 * TD_NS_PER_S)

static td_server_window window;

static int setup(void **state)
{
    (void)state;
    memset(&window, 0, sizeof window);
    return 0;
}

static td_server_stats_spread spread_at(int64_t now_ns, int64_t window_ns)
{
    td_server_stats_spread spread;
    td_server_window_read(&window, now_ns, window_ns, &spread);
    return spread;
}

static void an_empty_window_is_all_zero(void **state)
{
    (void)state;
    td_server_stats_spread spread = spread_at(START_NS, MINUTE_NS);
    const td_server_stats_spread zero = {0};
    assert_memory_equal(&spread, &zero, sizeof zero);
}

static void small_values_are_exact(void **state)
{
    (void)state;
    for (uint64_t value = 1; value <= 16; value++)
        td_server_window_record(&window, START_NS, value % 16);
    td_server_stats_spread spread = spread_at(START_NS, MINUTE_NS);
    assert_int_equal(spread.count, 16);
    assert_true(spread.min == 0 && spread.max == 15 && spread.mean == 7.5);
    assert_true(spread.p50 == 7 && spread.p95 == 15 && spread.p99 == 15);
}

static void few_values_are_exact(void **state)
{
    (void)state;
    // Older ones, in a slice that is over.
    for (uint64_t i = 0; i < 100; i++)
        td_server_window_record(&window, START_NS - 10 * MINUTE_NS, 1);
    for (uint64_t i = 1; i <= TD_SERVER_WINDOW_EXACT; i++)
        td_server_window_record(&window, START_NS, i * 1001);
    td_server_stats_spread spread = spread_at(START_NS, MINUTE_NS);
    assert_int_equal(spread.count, 64);
    assert_true(spread.p50 == 32 * 1001 && spread.p95 == 61 * 1001 &&
                spread.p99 == 64 * 1001);
    // One more, and they are near.
    td_server_window_record(&window, START_NS, 65 * 1001);
    spread = spread_at(START_NS, MINUTE_NS);
    assert_true(spread.p50 != 33 * 1001);
    assert_true(fabs(spread.p50 - 33 * 1001) < 33 * 1001 / 8.0);
}

static void few_values_of_two_windows_are_exact(void **state)
{
    (void)state;
    static td_server_window other;
    td_server_sum sum = TD_SERVER_SUM_EMPTY;
    td_server_stats_spread spread;
    td_server_window_record(&window, START_NS, 5003);
    td_server_window_record(&other, START_NS, 1009);
    td_server_window_record(&other, START_NS, 3001);
    td_server_window_add(&window, START_NS, MINUTE_NS, &sum);
    td_server_window_add(&other, START_NS, MINUTE_NS, &sum);
    td_server_window_spread(&sum, &spread);
    assert_true(spread.p50 == 3001 && spread.p99 == 5003);
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static uint64_t draw(td_rand *rand, int kind, size_t index)
{
    double u = td_rand_unit(rand);
    switch (kind) {
    case 0: // even
        return (uint64_t)(u * 1e6);
    case 1: // with a long tail
        return (uint64_t)(30000 * exp(3 * u * u * u));
    case 2: // always the same
        return 12345;
    case 3: // two heaps
        return index % 10 == 0 ? 250000 : 3000;
    default: // beyond what the buckets reach
        return (uint64_t)(u * 1e12);
    }
}

static void assert_near(double value, const uint64_t *sorted, double q)
{
    double exact = (double)sorted[(size_t)ceil(q * VALUES) - 1];
    if (fabs(value - exact) > exact / 8 + 1)
        fail_msg("%g at %g is %g", value, q, exact);
}

static void quantiles_are_near_the_exact_ones(void **state)
{
    (void)state;
    static uint64_t values[VALUES];
    for (int kind = 0; kind < 4; kind++) {
        td_rand rand;
        td_rand_init(&rand, (uint64_t)kind + 1);
        td_server_window_clear(&window);
        uint64_t sum = 0;
        for (size_t i = 0; i < VALUES; i++) {
            values[i] = draw(&rand, kind, i);
            sum += values[i];
            td_server_window_record(&window, START_NS, values[i]);
        }
        qsort(values, VALUES, sizeof values[0], compare);
        td_server_stats_spread spread = spread_at(START_NS, MINUTE_NS);
        assert_int_equal(spread.count, VALUES);
        assert_true(spread.mean == (double)sum / VALUES);
        assert_true(spread.min == (double)values[0]);
        assert_true(spread.max == (double)values[VALUES - 1]);
        assert_near(spread.p50, values, 0.5);
        assert_near(spread.p95, values, 0.95);
        assert_near(spread.p99, values, 0.99);
        assert_near(spread.p999, values, 0.999);
    }
}

static void values_without_measure_stay_in_order(void **state)
{
    (void)state;
    td_rand rand;
    td_rand_init(&rand, 7);
    for (size_t i = 0; i < 100; i++)
        td_server_window_record(&window, START_NS, draw(&rand, 9, i));
    td_server_window_record(&window, START_NS, UINT64_MAX / 2);
    td_server_stats_spread s = spread_at(START_NS, MINUTE_NS);
    assert_int_equal(s.count, 101);
    assert_true(s.min <= s.p50 && s.p50 <= s.p95 && s.p95 <= s.p99 &&
                s.p99 <= s.p999 && s.p999 <= s.max);
}

static void what_is_old_falls_out(void **state)
{
    static const struct {
        const char *name;
        int64_t age_s, window_s;
        bool counts;
    } cases[] = {
        {"now", 0, 1, true},
        {"within a second", 1, 1, true},
        {"within a minute", 60, 60, true},
        {"two slices before a second", 21, 1, false},
        {"a slice before a minute", 71, 60, false},
        {"within two minutes", 120, 120, true},
        {"before two minutes", 181, 120, false},
        {"within ten minutes", 600, 600, true},
        {"before ten minutes", 661, 600, false},
        {"a day ago", 86400, 600, false},
    };
    (void)state;
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        td_server_window_clear(&window);
        int64_t now_ns = 200000 * TD_NS_PER_S + (int64_t)i * TD_NS_PER_S;
        td_server_window_record(&window, now_ns - cases[i].age_s * TD_NS_PER_S,
                                5);
        uint64_t count =
            spread_at(now_ns, cases[i].window_s * TD_NS_PER_S).count;
        if (count != cases[i].counts) fail_msg("%s", cases[i].name);
    }
}

// Values at random times; those of a window are counted, up to a slice more.
static void a_window_is_whole_at_any_rate(void **state)
{
    static int64_t times_ns[VALUES];
    (void)state;
    td_rand rand;
    td_rand_init(&rand, 3);
    int64_t now_ns = START_NS;
    for (size_t i = 0; i < VALUES; i++) {
        // Now a burst, now a pause.
        double gap_s = i % 1000 == 0 ? 40 : 0.1 * td_rand_unit(&rand);
        now_ns += (int64_t)(gap_s * 1e9);
        times_ns[i] = now_ns;
        td_server_window_record(&window, now_ns, i);
        if (i % 97 != 0) continue;
        int64_t window_s = 1 + (int64_t)(td_rand_unit(&rand) * 600);
        if (window_s > 600) window_s = 600;
        int64_t window_ns = window_s * TD_NS_PER_S;
        int64_t since_ns = td_server_window_since_ns(now_ns, window_ns);
        assert_true(since_ns <= now_ns - window_ns);
        assert_true(since_ns > now_ns - window_ns - MINUTE_NS);
        uint64_t expected = 0;
        for (size_t j = 0; j <= i; j++)
            expected += times_ns[j] >= since_ns;
        assert_int_equal(spread_at(now_ns, window_ns).count, expected);
    }
}

static void record_many(void *user)
{
    (void)user;
    for (uint64_t i = 0; i < CONCURRENT; i++)
        td_server_window_record(
            &window, START_NS + (int64_t)i * TD_NS_PER_MS * 10, 1000 + i % 100);
}

static void a_reader_sees_only_what_was_recorded(void **state)
{
    (void)state;
    const td_thread_config config = {.name = "writer", .cpu = -1};
    td_thread *writer = NULL;
    assert_int_equal(td_thread_start(&config, record_many, NULL, &writer, NULL),
                     TD_OK);
    int64_t end_ns = START_NS + (int64_t)CONCURRENT * TD_NS_PER_MS * 10;
    for (int64_t now_ns = START_NS; now_ns < end_ns; now_ns += TD_NS_PER_S) {
        td_server_stats_spread s = spread_at(now_ns, 30 * TD_NS_PER_S);
        if (s.count == 0) continue;
        if (s.min < 1000 || s.max > 1099 || s.p50 < s.min || s.p50 > s.max ||
            s.mean > s.max) {
            td_thread_join(writer);
            fail_msg("%g %g %g %g", s.min, s.p50, s.mean, s.max);
        }
    }
    td_thread_join(writer);
    assert_int_equal(spread_at(end_ns, TD_NS_PER_S).max, 1099);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(an_empty_window_is_all_zero, setup),
        cmocka_unit_test_setup(small_values_are_exact, setup),
        cmocka_unit_test_setup(few_values_are_exact, setup),
        cmocka_unit_test_setup(few_values_of_two_windows_are_exact, setup),
        cmocka_unit_test_setup(quantiles_are_near_the_exact_ones, setup),
        cmocka_unit_test_setup(values_without_measure_stay_in_order, setup),
        cmocka_unit_test_setup(what_is_old_falls_out, setup),
        cmocka_unit_test_setup(a_window_is_whole_at_any_rate, setup),
        cmocka_unit_test_setup(a_reader_sees_only_what_was_recorded, setup),
    };
    return cmocka_run_group_tests_name("server/window", tests, NULL, NULL);
}
