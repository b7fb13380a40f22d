// SPDX-License-Identifier: Apache-2.0
#include "edge/pacing/rate.h"

#include "base/clock.h"
#include "base/rand.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { TAKES = 400 };

static td_edge_rate rate_of(double hz, double phase, int64_t tolerance_ns,
                            int64_t now_ns)
{
    td_edge_rate rate;
    assert_int_equal(td_edge_rate_init(&rate, hz, phase, tolerance_ns, now_ns),
                     TD_OK);
    return rate;
}

static bool take(td_edge_rate *rate, int64_t now_ns)
{
    if (!td_edge_rate_allows(rate, now_ns)) return false;
    td_edge_rate_take(rate, now_ns);
    return true;
}

// Every pair of takes is the two ends of a window.
static void assert_average(const int64_t *taken_ns, int count, double hz,
                           int64_t tolerance_ns)
{
    for (int first = 0; first < count; first++) {
        for (int last = first; last < count; last++) {
            double window_s =
                (double)(taken_ns[last] - taken_ns[first] + tolerance_ns) / 1e9;
            if (last - first + 1 > 1 + window_s * hz + 1e-3)
                fail_msg("%d tokens in %.6f s at %.3f Hz", last - first + 1,
                         window_s, hz);
        }
    }
}

static void no_window_holds_more_than_its_share(void **state)
{
    (void)state;
    td_rand rand;
    td_rand_init(&rand, 11);
    for (int run = 0; run < 40; run++) {
        double hz = 0.5 + 50 * td_rand_unit(&rand);
        int64_t tolerance_ns = (int64_t)(td_rand_unit(&rand) * 0.5e9);
        int64_t now_ns = 0;
        td_edge_rate rate =
            rate_of(hz, td_rand_unit(&rand), tolerance_ns, now_ns);
        int64_t taken_ns[TAKES];
        int count = 0;
        while (count < TAKES) {
            bool idle = td_rand_u64(&rand) % 50 == 0;
            now_ns += (int64_t)(td_rand_unit(&rand) * (idle ? 5e9 : 3e7));
            if (take(&rate, now_ns)) taken_ns[count++] = now_ns;
        }
        assert_average(taken_ns, count, hz, tolerance_ns);
    }
}

// At 30 ticks a second, 7 tokens a second fall between the ticks.
static void tolerance_of_a_tick_keeps_the_average(void **state)
{
    (void)state;
    const int64_t period_ns = TD_NS_PER_S / 30;
    td_edge_rate kept = rate_of(7, 0, period_ns, 0);
    td_edge_rate rounded = rate_of(7, 0, 0, 0);
    int with = 0, without = 0;
    for (int tick = 0; tick < 30 * 100; tick++) {
        with += take(&kept, tick * period_ns);
        without += take(&rounded, tick * period_ns);
    }
    assert_in_range(with, 699, 701);
    assert_true(without < 650);
}

static void phases_stagger_robots(void **state)
{
    (void)state;
    enum { ROBOTS = 10, TICKS = 1000 };
    td_edge_rate rates[ROBOTS];
    for (int i = 0; i < ROBOTS; i++)
        rates[i] = rate_of(10, (double)i / ROBOTS, 0, 0);
    int taken[ROBOTS] = {0};
    for (int ms = 0; ms < TICKS; ms++) {
        int together = 0;
        for (int i = 0; i < ROBOTS; i++) {
            bool took = take(&rates[i], ms * TD_NS_PER_MS);
            if (took) assert_int_equal(ms % 100, 10 * i);
            taken[i] += took;
            together += took;
        }
        assert_true(together <= 1);
    }
    for (int i = 0; i < ROBOTS; i++)
        assert_int_equal(taken[i], TICKS / 100);
}

static void unlimited_has_always_a_token(void **state)
{
    (void)state;
    td_edge_rate rate = rate_of(0, 0.5, 0, 7);
    for (int i = 0; i < 1000; i++)
        assert_true(take(&rate, 7));
}

static void clock_far_ahead_brings_no_more_than_the_tolerance(void **state)
{
    (void)state;
    const int64_t far_ns = INT64_C(1) << 60;
    td_edge_rate rate = rate_of(10, 0, 250 * TD_NS_PER_MS, 0);
    assert_true(take(&rate, 0));
    int burst = 0;
    while (take(&rate, far_ns))
        burst++;
    assert_int_equal(burst, 3); // 1 + 0.25 s * 10 Hz
    assert_true(take(&rate, far_ns + 100 * TD_NS_PER_MS));
    assert_false(take(&rate, far_ns + 100 * TD_NS_PER_MS));
}

static const struct {
    const char *name;
    double from_hz, to_hz, phase;
    int64_t next_ms; // after a token taken just before the grant
} grants[] = {
    {"faster", 1, 10, 0, 100},
    {"faster, at its phase", 1, 10, 0.5, 150},
    {"slower", 10, 2, 0, 500},
    {"much slower before", 1e-6, 10, 0, 100},
    {"unlimited before", 0, 10, 0, 100},
    {"unlimited now", 10, 0, 0.5, 0},
};

static void new_grant_brings_no_burst(void **state)
{
    (void)state;
    for (size_t i = 0; i < TD_COUNT_OF(grants); i++) {
        const int64_t now_ns = 100 * TD_NS_PER_S;
        const int64_t next_ns = now_ns + grants[i].next_ms * TD_NS_PER_MS;
        td_edge_rate rate = rate_of(grants[i].from_hz, 0, TD_NS_PER_S, 0);
        assert_true(take(&rate, now_ns)); // with a second saved up
        assert_int_equal(
            td_edge_rate_set(&rate, grants[i].to_hz, grants[i].phase, now_ns),
            TD_OK);
        bool early =
            grants[i].next_ms > 0 && td_edge_rate_allows(&rate, next_ns - 1);
        if (early || !td_edge_rate_allows(&rate, next_ns))
            fail_msg("%s: %s", grants[i].name, early ? "early" : "late");
    }
}

static void average_holds_over_changes_of_the_rate(void **state)
{
    (void)state;
    td_rand rand;
    td_rand_init(&rand, 12);
    const int64_t tolerance_ns = 40 * TD_NS_PER_MS;
    td_edge_rate rate = rate_of(5, 0, tolerance_ns, 0);
    int64_t taken_ns[TAKES];
    int count = 0;
    for (int64_t now_ns = 0; count < TAKES; now_ns += 3 * TD_NS_PER_MS) {
        if (td_rand_u64(&rand) % 20 == 0)
            assert_int_equal(td_edge_rate_set(&rate,
                                              1 + 9 * td_rand_unit(&rand),
                                              td_rand_unit(&rand), now_ns),
                             TD_OK);
        if (take(&rate, now_ns)) taken_ns[count++] = now_ns;
    }
    assert_average(taken_ns, count, 10, tolerance_ns);
}

static void same_grant_again_changes_nothing(void **state)
{
    (void)state;
    td_edge_rate rate = rate_of(10, 0.3, 0, 0);
    int taken = 0;
    for (int ms = 0; ms < 10000; ms++) {
        assert_int_equal(td_edge_rate_set(&rate, 10, 0.3, ms * TD_NS_PER_MS),
                         TD_OK);
        taken += take(&rate, ms * TD_NS_PER_MS);
    }
    assert_int_equal(taken, 100);
}

static void what_is_no_rate_is_refused(void **state)
{
    (void)state;
    static const double bad[][2] = {{-1, 0},   {NAN, 0}, {INFINITY, 0},
                                    {1, -0.1}, {1, 1.1}, {1, NAN}};
    td_edge_rate rate = rate_of(10, 0, 0, 0);
    for (size_t i = 0; i < TD_COUNT_OF(bad); i++)
        assert_int_equal(td_edge_rate_set(&rate, bad[i][0], bad[i][1], 0),
                         TD_ERR_INVALID);
    assert_int_equal(td_edge_rate_init(&rate, 1, 0, -1, 0), TD_ERR_INVALID);
    assert_true(take(&rate, 0));
    assert_false(take(&rate, 99 * TD_NS_PER_MS));
    assert_true(take(&rate, 100 * TD_NS_PER_MS));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_window_holds_more_than_its_share),
        cmocka_unit_test(tolerance_of_a_tick_keeps_the_average),
        cmocka_unit_test(phases_stagger_robots),
        cmocka_unit_test(unlimited_has_always_a_token),
        cmocka_unit_test(clock_far_ahead_brings_no_more_than_the_tolerance),
        cmocka_unit_test(new_grant_brings_no_burst),
        cmocka_unit_test(average_holds_over_changes_of_the_rate),
        cmocka_unit_test(same_grant_again_changes_nothing),
        cmocka_unit_test(what_is_no_rate_is_refused),
    };
    return cmocka_run_group_tests_name("edge/rate", tests, NULL, NULL);
}
