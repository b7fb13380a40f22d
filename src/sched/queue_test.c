// SPDX-License-Identifier: Apache-2.0
#include "sched/queue.h"

#include "sched/strategy/order.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#define MS 1000000LL

static td_sched_queue *queue_new(void)
{
    td_sched_queue *queue = NULL;
    assert_int_equal(td_sched_queue_new(8, 3, &queue), TD_OK);
    return queue;
}

static void the_victim_is_the_oldest_of_the_lowest_tier(void **state)
{
    (void)state;
    TD_AUTO(td_sched_queue) *queue = queue_new();
    assert_int_equal(td_sched_queue_victim(queue, 0), TD_SCHED_NOBODY);
    td_sched_queue_put(queue, 4, 0, 1);
    td_sched_queue_put(queue, 5, 1, 2);
    td_sched_queue_put(queue, 6, 1, 3);
    assert_int_equal(td_sched_queue_victim(queue, 0), 5);
    assert_int_equal(td_sched_queue_victim(queue, 1), 5);
    assert_int_equal(td_sched_queue_victim(queue, 2), TD_SCHED_NOBODY);
    td_sched_queue_take(queue, 5, 1);
    assert_int_equal(td_sched_queue_victim(queue, 0), 6);
    td_sched_queue_take(queue, 6, 1);
    assert_int_equal(td_sched_queue_victim(queue, 0), 4);
    assert_int_equal(queue->count, 1);
}

static void one_that_comes_back_takes_its_old_place(void **state)
{
    (void)state;
    TD_AUTO(td_sched_queue) *queue = queue_new();
    for (uint32_t i = 0; i < 4; i++)
        td_sched_queue_put(queue, i, 0, i);
    td_sched_queue_take(queue, 1, 0);
    td_sched_queue_take(queue, 0, 0);
    td_sched_queue_put(queue, 1, 0, 1);
    td_sched_queue_put(queue, 0, 0, 0);
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(td_sched_queue_victim(queue, 0), i);
        td_sched_queue_take(queue, i, 0);
    }
    assert_int_equal(queue->count, 0);
}

static void each_retry_waits_twice_as_long(void **state)
{
    (void)state;
    td_sched_queue_settings settings = TD_SCHED_QUEUE_DEFAULTS;
    assert_int_equal(td_sched_queue_backoff_ns(&settings, 1), 10 * MS);
    assert_int_equal(td_sched_queue_backoff_ns(&settings, 2), 20 * MS);
    assert_int_equal(td_sched_queue_backoff_ns(&settings, 4), 80 * MS);
    assert_true(td_sched_queue_backoff_ns(&settings, 4000000) > 0);
}

static void overflows_go_by_their_names(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < TD_SCHED_OVERFLOW_COUNT; i++) {
        td_sched_overflow overflow;
        const char *name = td_sched_queue_overflow_name((td_sched_overflow)i);
        assert_int_equal(td_sched_queue_overflow_find(name, &overflow), TD_OK);
        assert_int_equal(overflow, i);
    }
    td_sched_overflow overflow;
    assert_int_equal(td_sched_queue_overflow_find("block", &overflow),
                     TD_ERR_NOTFOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_victim_is_the_oldest_of_the_lowest_tier),
        cmocka_unit_test(one_that_comes_back_takes_its_old_place),
        cmocka_unit_test(each_retry_waits_twice_as_long),
        cmocka_unit_test(overflows_go_by_their_names),
    };
    return cmocka_run_group_tests_name("sched/queue", tests, NULL, NULL);
}
