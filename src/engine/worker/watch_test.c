// SPDX-License-Identifier: Apache-2.0
#include "engine/worker/watch.h"

#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define MS TD_NS_PER_MS

static const td_engine_worker_limits limits = {.start_ns = 500 * MS,
                                               .answer_ns = 200 * MS};
static td_engine_worker_watch watch;

static int setup(void **state)
{
    (void)state;
    td_engine_worker_watch_init(&watch, &limits, 0);
    return 0;
}

static void bring_up(int64_t now_ns)
{
    td_engine_worker_watch_started(&watch, now_ns);
    td_engine_worker_watch_came_up(&watch, now_ns, 0);
}

static td_engine_worker_verdict look(int64_t now_ns, uint64_t beat,
                                     int64_t *ret_until_ns)
{
    return td_engine_worker_watch_decide(&watch, now_ns, beat, ret_until_ns);
}

static void the_first_start_is_at_once(void **state)
{
    (void)state;
    int64_t until_ns = -1;
    assert_int_equal(look(0, 0, &until_ns), TD_ENGINE_WORKER_START);
    assert_int_equal(td_engine_worker_watch_health(&watch), TD_ENGINE_WARMING);
}

static void what_does_not_become_ready_is_too_late(void **state)
{
    (void)state;
    int64_t until_ns = 0;
    td_engine_worker_watch_started(&watch, 10 * MS);
    assert_int_equal(look(509 * MS, 0, &until_ns), TD_ENGINE_WORKER_WAIT);
    assert_int_equal(until_ns, 510 * MS);
    assert_int_equal(look(510 * MS, 0, &until_ns), TD_ENGINE_WORKER_TOO_LATE);
}

static void an_idle_worker_never_hangs(void **state)
{
    (void)state;
    int64_t until_ns = 0;
    bring_up(0);
    assert_int_equal(look(INT64_C(1) << 50, 0, &until_ns),
                     TD_ENGINE_WORKER_WAIT);
    assert_int_equal(until_ns, INT64_MAX);
    assert_int_equal(td_engine_worker_watch_health(&watch), TD_ENGINE_READY);
}

static void a_batch_that_stands_still_hangs(void **state)
{
    (void)state;
    int64_t until_ns = 0;
    bring_up(0);
    td_engine_worker_watch_submitted(&watch, 1000 * MS);
    assert_int_equal(look(1199 * MS, 0, &until_ns), TD_ENGINE_WORKER_WAIT);
    assert_int_equal(until_ns, 1200 * MS);
    assert_int_equal(look(1200 * MS, 0, &until_ns), TD_ENGINE_WORKER_HANGS);
}

static void a_batch_that_goes_forward_does_not(void **state)
{
    (void)state;
    int64_t until_ns = 0;
    bring_up(0);
    td_engine_worker_watch_submitted(&watch, 0);
    for (uint64_t beat = 1; beat < 20; beat++) {
        int64_t now_ns = (int64_t)beat * 190 * MS;
        assert_int_equal(look(now_ns, beat, &until_ns), TD_ENGINE_WORKER_WAIT);
        assert_int_equal(until_ns, now_ns + 200 * MS);
    }
}

static void the_second_batch_has_its_own_time(void **state)
{
    (void)state;
    int64_t until_ns = 0;
    bring_up(0);
    td_engine_worker_watch_submitted(&watch, 0);
    td_engine_worker_watch_submitted(&watch, 100 * MS);
    td_engine_worker_watch_answered(&watch, 150 * MS, 10 * MS);
    assert_int_equal(look(349 * MS, 0, &until_ns), TD_ENGINE_WORKER_WAIT);
    assert_int_equal(look(350 * MS, 0, &until_ns), TD_ENGINE_WORKER_HANGS);
    td_engine_worker_watch_answered(&watch, 350 * MS, 10 * MS);
    assert_int_equal(look(9000 * MS, 0, &until_ns), TD_ENGINE_WORKER_WAIT);
}

static void the_limit_follows_its_own_times(void **state)
{
    (void)state;
    bring_up(0);
    assert_int_equal(td_engine_worker_watch_hang_ns(&watch), 200 * MS);
    for (int i = 0; i < 200; i++) {
        td_engine_worker_watch_submitted(&watch, 0);
        td_engine_worker_watch_answered(&watch, 0, 100 * MS);
    }
    int64_t hang_ns = td_engine_worker_watch_hang_ns(&watch);
    assert_true(hang_ns >= 1000 * MS && hang_ns < 1010 * MS);
}

static void each_rest_is_twice_as_long_up_to_a_limit(void **state)
{
    (void)state;
    int64_t now_ns = 0, until_ns = 0;
    static const int64_t rests_ms[] = {100,  200,   400,   800,   1600, 3200,
                                       6400, 12800, 25600, 30000, 30000};
    for (size_t i = 0; i < TD_COUNT_OF(rests_ms); i++) {
        td_engine_worker_watch_started(&watch, now_ns);
        td_engine_worker_watch_ended(&watch, now_ns);
        now_ns += rests_ms[i] * MS;
        assert_int_equal(look(now_ns - 1, 0, &until_ns), TD_ENGINE_WORKER_WAIT);
        assert_int_equal(until_ns, now_ns);
        assert_int_equal(look(now_ns, 0, &until_ns), TD_ENGINE_WORKER_START);
    }
}

static void what_stayed_up_begins_with_a_short_rest(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++)
        td_engine_worker_watch_ended(&watch, 0);
    bring_up(0);
    td_engine_worker_watch_ended(&watch, TD_ENGINE_WORKER_STEADY_NS - 1);
    assert_int_equal(td_engine_worker_watch_rest_ns(&watch), 1600 * MS);
    bring_up(0);
    td_engine_worker_watch_ended(&watch, TD_ENGINE_WORKER_STEADY_NS);
    assert_int_equal(td_engine_worker_watch_rest_ns(&watch), 100 * MS);
}

static void after_five_failures_it_is_broken_and_still_tried(void **state)
{
    (void)state;
    int64_t until_ns = 0;
    for (int i = 0; i < TD_ENGINE_WORKER_HOPELESS; i++) {
        assert_int_equal(td_engine_worker_watch_health(&watch),
                         TD_ENGINE_WARMING);
        td_engine_worker_watch_ended(&watch, 0);
    }
    assert_int_equal(td_engine_worker_watch_health(&watch), TD_ENGINE_BROKEN);
    assert_int_equal(look(3600 * TD_NS_PER_S, 0, &until_ns),
                     TD_ENGINE_WORKER_START);
    bring_up(0);
    assert_int_equal(td_engine_worker_watch_health(&watch), TD_ENGINE_READY);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup(test, setup)
    const struct CMUnitTest tests[] = {
        TEST(the_first_start_is_at_once),
        TEST(what_does_not_become_ready_is_too_late),
        TEST(an_idle_worker_never_hangs),
        TEST(a_batch_that_stands_still_hangs),
        TEST(a_batch_that_goes_forward_does_not),
        TEST(the_second_batch_has_its_own_time),
        TEST(the_limit_follows_its_own_times),
        TEST(each_rest_is_twice_as_long_up_to_a_limit),
        TEST(what_stayed_up_begins_with_a_short_rest),
        TEST(after_five_failures_it_is_broken_and_still_tried),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
