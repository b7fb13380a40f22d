// SPDX-License-Identifier: Apache-2.0
#include "engine/native/cpu/pool.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>

#include <cmocka.h>

#define TASKS 100
#define THREADS 4

typedef struct work {
    int done[TASKS];
    _Atomic uint32_t highest_thread;
} work;

static void do_task(void *user, uint32_t task, uint32_t thread)
{
    work *self = user;
    self->done[task]++;
    uint32_t seen = self->highest_thread;
    while (thread > seen &&
           !atomic_compare_exchange_weak(&self->highest_thread, &seen, thread))
        continue;
}

static void every_task_is_done_once_in_every_round(void **state)
{
    (void)state;
    for (uint32_t threads = 1; threads <= THREADS; threads++) {
        td_native_cpu_pool *pool = NULL;
        work w = {.highest_thread = 0};
        assert_int_equal(td_native_cpu_pool_new(threads, &pool, NULL), TD_OK);
        for (int round = 1; round <= 200; round++) {
            td_native_cpu_pool_run(pool, TASKS, do_task, &w);
            for (int i = 0; i < TASKS; i++)
                assert_int_equal(w.done[i], round);
        }
        assert_true(w.highest_thread < threads);
        td_native_cpu_pool_free(pool);
    }
}

static void a_round_may_have_fewer_tasks_than_threads(void **state)
{
    (void)state;
    td_native_cpu_pool *pool = NULL;
    work w = {.highest_thread = 0};
    assert_int_equal(td_native_cpu_pool_new(THREADS, &pool, NULL), TD_OK);
    td_native_cpu_pool_run(pool, 0, do_task, &w);
    assert_int_equal(w.done[0], 0);
    td_native_cpu_pool_run(pool, 1, do_task, &w);
    assert_int_equal(w.done[0], 1);
    assert_int_equal(w.done[1], 0);
    td_native_cpu_pool_free(pool);
}

static void a_pool_that_never_ran_can_be_freed(void **state)
{
    (void)state;
    td_native_cpu_pool *pool = NULL;
    assert_int_equal(td_native_cpu_pool_new(THREADS, &pool, NULL), TD_OK);
    td_native_cpu_pool_free(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_task_is_done_once_in_every_round),
        cmocka_unit_test(a_round_may_have_fewer_tasks_than_threads),
        cmocka_unit_test(a_pool_that_never_ran_can_be_freed),
    };
    return cmocka_run_group_tests_name("pool", tests, NULL, NULL);
}
