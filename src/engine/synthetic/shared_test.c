// SPDX-License-Identifier: Apache-2.0
#include "engine/synthetic/shared.h"

#include "base/clock.h"
#include "base/rand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#define NEVER TD_ENGINE_SYNTHETIC_NEVER_NS
#define MS TD_NS_PER_MS

static td_engine_synthetic_shared shared;
static char names[] = "abcdefgh"; // each share's user is one of these

// t(n) = 30 ms + 10 ms for each further one.
static int setup(void **state)
{
    (void)state;
    shared = (td_engine_synthetic_shared){0};
    for (int n = 1; n <= TD_ENGINE_MAX_BATCH; n++)
        shared.time_ns[n] = (30 + 10 * (n - 1)) * MS;
    return 0;
}

static void join(char name, int64_t start_ns, uint32_t members, double work)
{
    td_engine_synthetic_share share = {.user = &names[name - 'a'],
                                       .members = members,
                                       .start_ns = start_ns,
                                       .left = work};
    td_engine_synthetic_shared_join(&shared, &share);
}

static void assert_ended(char name, int64_t at_ns)
{
    char *ended = td_engine_synthetic_shared_ended(&shared, NEVER - 1);
    assert_non_null(ended);
    assert_int_equal(*ended, name);
    assert_int_equal(shared.now_ns, at_ns);
}

static void one_alone_takes_its_time(void **state)
{
    (void)state;
    join('a', 5 * MS, 1, 1);
    assert_int_equal(td_engine_synthetic_shared_next_ns(&shared), 5 * MS);
    assert_null(td_engine_synthetic_shared_ended(&shared, 5 * MS));
    assert_int_equal(td_engine_synthetic_shared_next_ns(&shared), 35 * MS);
    assert_null(td_engine_synthetic_shared_ended(&shared, 35 * MS - 1));
    assert_ended('a', 35 * MS);
    assert_int_equal(td_engine_synthetic_shared_next_ns(&shared), NEVER);
}

static void two_from_the_start_end_together(void **state)
{
    (void)state;
    join('a', 0, 1, 1);
    join('b', 0, 1, 1);
    assert_ended('a', 40 * MS);
    assert_ended('b', 40 * MS);
}

// 15 ms alone is a half; the other half takes 20 ms of two. By then the second
// has done a half too, and ends 15 ms later, alone again.
static void who_joins_late_slows_both_while_both_run(void **state)
{
    (void)state;
    join('a', 0, 1, 1);
    assert_null(td_engine_synthetic_shared_ended(&shared, 15 * MS));
    assert_int_equal(td_engine_synthetic_shared_next_ns(&shared), 30 * MS);
    join('b', 15 * MS, 1, 1);
    assert_int_equal(td_engine_synthetic_shared_next_ns(&shared), 35 * MS);
    assert_ended('a', 35 * MS);
    assert_ended('b', 50 * MS);
}

static void a_start_that_is_announced_comes_in_its_time(void **state)
{
    (void)state;
    join('a', 0, 1, 1);
    join('b', 15 * MS, 1, 1);
    assert_ended('a', 35 * MS);
    assert_ended('b', 50 * MS);
}

static void some_that_stay_together_count_each_and_end_at_once(void **state)
{
    (void)state;
    join('a', 0, 4, 1);
    assert_ended('a', 60 * MS);
    join('b', 60 * MS, 3, 1);
    join('c', 60 * MS, 1, 0.5);
    assert_int_equal(shared.members, 4);
    assert_ended('c', 90 * MS);
    assert_ended('b', 90 * MS + 25 * MS);
    assert_int_equal(shared.members, 0);
}

static void more_work_takes_longer(void **state)
{
    (void)state;
    join('a', 0, 1, 2);
    join('b', 0, 1, 1);
    assert_ended('b', 40 * MS);
    assert_ended('a', 70 * MS);
}

static void what_takes_no_time_ends_where_it_starts(void **state)
{
    (void)state;
    shared = (td_engine_synthetic_shared){0};
    join('a', 7, 1, 1);
    join('b', 7, 2, 1);
    assert_ended('a', 7);
    assert_ended('b', 7);
    join('c', 9, 1, 0);
    assert_ended('c', 9);
}

static void how_often_one_looks_changes_nothing(void **state)
{
    (void)state;
    td_rand rand;
    td_rand_init(&rand, 4);
    int64_t want_ns[8];
    for (int looks = 0; looks < 2; looks++) {
        setup(NULL);
        for (int i = 0; i < 8; i++)
            join((char)('a' + i), 7 * MS * i, 1, 1);
        int64_t now_ns = 0;
        for (int ended = 0; ended < 8;) {
            now_ns += looks ? (int64_t)(td_rand_u64(&rand) % MS) : 1000 * MS;
            for (char *name;
                 (name = td_engine_synthetic_shared_ended(&shared, now_ns));
                 ended++) {
                int64_t *want = &want_ns[name - names];
                if (!looks) *want = shared.now_ns;
                assert_true(llabs(shared.now_ns - *want) <= 8); // rounding
            }
        }
    }
}

// Work is conserved: with t(n) = n t(1) the device is as busy as in turns.
static void nothing_is_gained_where_sharing_gains_nothing(void **state)
{
    (void)state;
    for (int n = 1; n <= TD_ENGINE_MAX_BATCH; n++)
        shared.time_ns[n] = 10 * MS * n;
    for (int i = 0; i < 8; i++)
        join((char)('a' + i), i * MS, 1, 1);
    for (int i = 0; i < 8; i++)
        assert_non_null(td_engine_synthetic_shared_ended(&shared, NEVER - 1));
    assert_true(llabs(shared.now_ns - 80 * MS) <= 8);
}

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
#define TEST(name) cmocka_unit_test_setup(name, setup)
    const struct CMUnitTest tests[] = {
        TEST(one_alone_takes_its_time),
        TEST(two_from_the_start_end_together),
        TEST(who_joins_late_slows_both_while_both_run),
        TEST(a_start_that_is_announced_comes_in_its_time),
        TEST(some_that_stay_together_count_each_and_end_at_once),
        TEST(more_work_takes_longer),
        TEST(what_takes_no_time_ends_where_it_starts),
        TEST(how_often_one_looks_changes_nothing),
        TEST(nothing_is_gained_where_sharing_gains_nothing),
        cmocka_unit_test(one_alone_takes_both_times),
        cmocka_unit_test(the_next_is_prepared_while_one_runs),
        cmocka_unit_test(two_in_flight_keep_the_slower_of_the_two_busy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
