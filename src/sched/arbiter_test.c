// SPDX-License-Identifier: Apache-2.0
#include "sched/arbiter.h"

#include "sched/strategy/heap.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#define MS 1000000LL
#define NEVER TD_SCHED_NEVER_NS
#define A UINT64_C(1)
#define B UINT64_C(2)

static td_sched_batch_times times; // 10 ms for each that runs

static td_sched_arbiter device(uint32_t inflight, bool continuous)
{
    td_sched_arbiter arbiter = {0};
    const td_sched_arbiter_model how = {
        .most_inflight = inflight,
        .continuous = continuous,
        .rule = {TD_SCHED_WAIT_SLACK, 4, 0},
        .times = &times,
    };
    for (int64_t n = 1; n <= 4; n++)
        times.ns[n] = n * 10 * MS;
    td_sched_arbiter_set(&arbiter, 0, &how);
    td_sched_arbiter_set(&arbiter, 1, &how);
    return arbiter;
}

static void any_model_may_start_on_an_idle_device(void **state)
{
    (void)state;
    td_sched_arbiter arbiter = device(1, false);
    td_sched_grant grant = td_sched_arbiter_grant(&arbiter, 0, A | B);
    assert_int_equal(grant.models, A | B);
    assert_int_equal(grant.full, 0);
    assert_int_equal(td_sched_arbiter_grant(&arbiter, 0, 0).models, 0);
}

static void one_model_runs_at_a_time(void **state)
{
    (void)state;
    td_sched_arbiter arbiter = device(4, false);
    uint32_t run = td_sched_arbiter_start(&arbiter, 0, 0, NEVER);
    assert_int_equal(td_sched_arbiter_grant(&arbiter, 0, B).models, 0);
    (void)td_sched_arbiter_end(&arbiter, 10 * MS, run);
    assert_int_equal(td_sched_arbiter_grant(&arbiter, 10 * MS, B).models, B);
}

static void a_further_batch_is_full_and_nobody_elses_turn(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint32_t inflight, running;
        uint64_t waiting, granted;
    } cases[] = {
        {"the engine takes one", 1, 1, A, 0},
        {"room for a second", 2, 1, A, A},
        {"no room for a third", 2, 2, A, 0},
        {"another model waits", 2, 1, A | B, 0},
        {"only another model waits", 2, 1, B, 0},
    };
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        td_sched_arbiter arbiter = device(cases[i].inflight, false);
        for (uint32_t n = 0; n < cases[i].running; n++)
            (void)td_sched_arbiter_start(&arbiter, 0, 0, NEVER);
        td_sched_grant grant =
            td_sched_arbiter_grant(&arbiter, 0, cases[i].waiting);
        if (grant.models != 0 || grant.full != cases[i].granted)
            fail_msg("%s", cases[i].name);
    }
}

static void models_on_processors_run_side_by_side(void **state)
{
    (void)state;
    td_sched_arbiter arbiter = device(2, false);
    arbiter.side_by_side = true;
    (void)td_sched_arbiter_start(&arbiter, 0, 0, NEVER);
    td_sched_grant grant = td_sched_arbiter_grant(&arbiter, 0, A | B);
    assert_int_equal(grant.models, B);
    assert_int_equal(grant.full, A); // beside its own, as ever
    (void)td_sched_arbiter_start(&arbiter, 0, 1, NEVER);
    assert_int_equal(td_sched_arbiter_grant(&arbiter, 0, A | B).models, 0);
}

static void a_parallel_engine_has_as_many_as_it_may(void **state)
{
    (void)state;
    td_sched_arbiter arbiter = device(3, false);
    arbiter.models[0].parallel = true;
    uint32_t last = 0;
    for (int i = 0; i < 3; i++) {
        // Not only full ones, and whoever else waits.
        assert_int_equal(td_sched_arbiter_grant(&arbiter, 0, A | B).models,
                         A | B);
        last = td_sched_arbiter_start(&arbiter, 0, 0, NEVER);
    }
    assert_int_equal(td_sched_arbiter_grant(&arbiter, 0, A | B).models, B);
    uint32_t other = td_sched_arbiter_start(&arbiter, 0, 1, NEVER);
    (void)td_sched_arbiter_end(&arbiter, MS, last);
    assert_int_equal(td_sched_arbiter_grant(&arbiter, MS, A | B).models, A);
    (void)td_sched_arbiter_end(&arbiter, MS, other);
    assert_int_equal(td_sched_arbiter_grant(&arbiter, MS, A | B).models, A | B);
}

static void one_joins_a_continuous_engine_up_to_its_size(void **state)
{
    (void)state;
    td_sched_arbiter arbiter = device(1, true);
    for (uint32_t n = 0; n < 4; n++) {
        td_sched_grant grant = td_sched_arbiter_grant(&arbiter, 0, A);
        assert_int_equal(grant.models, A);
        assert_int_equal(grant.full, 0);
        (void)td_sched_arbiter_start(&arbiter, 0, 0, NEVER);
    }
    assert_int_equal(td_sched_arbiter_grant(&arbiter, 0, A).models, 0);
}

// Alone it takes 10 ms, beside another 20 ms.
static void nobody_joins_who_would_make_another_late(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int64_t due_ns, now_ns;
        uint64_t granted;
    } cases[] = {
        {"bears it", 20 * MS, 0, A},
        {"does not bear it", 19 * MS, 0, 0},
        {"half of it is done", 15 * MS, 5 * MS, A},
        {"half of it is done, and it does not bear it", 14 * MS, 5 * MS, 0},
        {"is late already", 9 * MS, 0, A},
    };
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        td_sched_arbiter arbiter = device(1, true);
        (void)td_sched_arbiter_start(&arbiter, 0, 0, cases[i].due_ns);
        if (td_sched_arbiter_grant(&arbiter, cases[i].now_ns, A).models !=
            cases[i].granted)
            fail_msg("%s", cases[i].name);
    }
}

static void a_late_one_does_not_hide_one_that_is_on_time(void **state)
{
    (void)state;
    td_sched_arbiter arbiter = device(1, true);
    (void)td_sched_arbiter_start(&arbiter, 0, 0, 1 * MS);
    (void)td_sched_arbiter_start(&arbiter, 0, 0, 25 * MS); // 20 ms for two
    assert_int_equal(td_sched_arbiter_grant(&arbiter, 0, A).models, 0);
}

static void another_model_waits_until_nothing_joins_any_more(void **state)
{
    (void)state;
    td_sched_arbiter arbiter = device(1, true);
    uint32_t run = td_sched_arbiter_start(&arbiter, 0, 0, NEVER);
    assert_int_equal(td_sched_arbiter_grant(&arbiter, 0, A | B).models, 0);
    (void)td_sched_arbiter_end(&arbiter, 10 * MS, run);
    assert_int_equal(td_sched_arbiter_grant(&arbiter, 10 * MS, A | B).models,
                     A | B);
}

static void the_end_tells_how_many_ran_beside_it(void **state)
{
    (void)state;
    td_sched_arbiter arbiter = device(1, true);
    uint32_t first = td_sched_arbiter_start(&arbiter, 0, 0, NEVER);
    uint32_t second = td_sched_arbiter_start(&arbiter, 2 * MS, 0, NEVER);
    uint32_t third = td_sched_arbiter_start(&arbiter, 2 * MS, 0, NEVER);
    // One for 2 ms, three for 18 ms: 2.8.
    assert_int_equal(td_sched_arbiter_end(&arbiter, 20 * MS, first), 3);
    assert_int_equal(td_sched_arbiter_end(&arbiter, 20 * MS, second), 3);
    // Three for 18 ms, one for 80 ms: 1.4.
    assert_int_equal(td_sched_arbiter_end(&arbiter, 100 * MS, third), 1);
    uint32_t last = td_sched_arbiter_start(&arbiter, 100 * MS, 0, NEVER);
    assert_int_equal(td_sched_arbiter_end(&arbiter, 100 * MS, last), 1);
}

static void how_busy_it_was_is_the_share_of_time(void **state)
{
    (void)state;
    td_sched_arbiter arbiter = device(1, false);
    assert_float_equal(td_sched_arbiter_busy(&arbiter, 0), 0, 0);
    for (int64_t at_ns = 0; at_ns < 10000 * MS; at_ns += 40 * MS) {
        uint32_t run = td_sched_arbiter_start(&arbiter, at_ns, 0, NEVER);
        (void)td_sched_arbiter_end(&arbiter, at_ns + 10 * MS, run);
    }
    double quarter = td_sched_arbiter_busy(&arbiter, 10000 * MS);
    assert_float_equal(quarter, 0.25, 0.02);
    assert_true(td_sched_arbiter_busy(&arbiter, 15000 * MS) < 0.01);
    (void)td_sched_arbiter_start(&arbiter, 15000 * MS, 0, NEVER);
    assert_true(td_sched_arbiter_busy(&arbiter, 20000 * MS) > 0.99);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_model_may_start_on_an_idle_device),
        cmocka_unit_test(one_model_runs_at_a_time),
        cmocka_unit_test(a_further_batch_is_full_and_nobody_elses_turn),
        cmocka_unit_test(models_on_processors_run_side_by_side),
        cmocka_unit_test(a_parallel_engine_has_as_many_as_it_may),
        cmocka_unit_test(one_joins_a_continuous_engine_up_to_its_size),
        cmocka_unit_test(nobody_joins_who_would_make_another_late),
        cmocka_unit_test(a_late_one_does_not_hide_one_that_is_on_time),
        cmocka_unit_test(another_model_waits_until_nothing_joins_any_more),
        cmocka_unit_test(the_end_tells_how_many_ran_beside_it),
        cmocka_unit_test(how_busy_it_was_is_the_share_of_time),
    };
    return cmocka_run_group_tests_name("sched/arbiter", tests, NULL, NULL);
}
