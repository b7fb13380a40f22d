// SPDX-License-Identifier: Apache-2.0
#include "engine/worker/slots.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static td_engine_batch batch = {.count = 2};

static td_engine_worker_slot *take(td_engine_worker_slots *slots)
{
    return td_engine_worker_slots_take(slots, TD_WORKER_WHOLE, &batch, NULL,
                                       NULL);
}

static void run(td_engine_worker_slots *slots, td_engine_worker_slot *slot)
{
    slot->state = TD_ENGINE_WORKER_RUNNING;
    slot->generation = ++slots->generation;
}

static void each_batch_has_a_slot_until_all_are_taken(void **state)
{
    (void)state;
    td_engine_worker_slots slots = {0};
    assert_false(td_engine_worker_slots_busy(&slots, NULL));
    td_engine_worker_slot *first = take(&slots);
    assert_true(first->pending[0] && first->pending[1]);
    assert_true(td_engine_worker_slots_busy(&slots, NULL));
    assert_false(td_engine_worker_slots_busy(&slots, first));
    for (size_t i = 1; i < TD_WORKER_SLOTS; i++)
        assert_non_null(take(&slots));
    assert_null(take(&slots));
    assert_true(td_engine_worker_slots_busy(&slots, first));
    first->state = TD_ENGINE_WORKER_FREE;
    assert_ptr_equal(take(&slots), first);
}

static void the_oldest_that_waits_is_filled_first(void **state)
{
    (void)state;
    td_engine_worker_slots slots = {0};
    assert_null(td_engine_worker_slots_waiting(&slots));
    td_engine_worker_slot *first = take(&slots), *second = take(&slots);
    assert_ptr_equal(td_engine_worker_slots_waiting(&slots), first);
    first->state = TD_ENGINE_WORKER_FREE;
    assert_ptr_equal(take(&slots), first); // newer now, in the same place
    assert_ptr_equal(td_engine_worker_slots_waiting(&slots), second);
}

static void the_batch_that_it_named_is_accused_else_the_oldest(void **state)
{
    (void)state;
    td_engine_worker_slots slots = {0};
    td_engine_worker_slot *first = take(&slots), *second = take(&slots);
    assert_null(td_engine_worker_slots_accused(&slots, 1));
    run(&slots, second);
    run(&slots, first);
    assert_ptr_equal(td_engine_worker_slots_accused(&slots, 2), first);
    assert_ptr_equal(td_engine_worker_slots_accused(&slots, 1), second);
    assert_ptr_equal(td_engine_worker_slots_accused(&slots, 99), second);
}

static void what_waits_or_runs_is_lost_with_the_process(void **state)
{
    (void)state;
    td_engine_worker_slots slots = {0};
    td_engine_worker_slot *lost[TD_WORKER_SLOTS] = {NULL};
    td_engine_worker_slot *first = take(&slots), *second = take(&slots);
    first->state = TD_ENGINE_WORKER_FILLING; // who fills it will see
    assert_int_equal(td_engine_worker_slots_lose(&slots, lost), 1);
    assert_ptr_equal(lost[0], second);
    assert_int_equal(second->state, TD_ENGINE_WORKER_OVER);
    assert_int_equal(first->state, TD_ENGINE_WORKER_FILLING);
    assert_true(first->lost);
    td_engine_worker_slots_begin(&slots);
    assert_false(first->lost);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_batch_has_a_slot_until_all_are_taken),
        cmocka_unit_test(the_oldest_that_waits_is_filled_first),
        cmocka_unit_test(the_batch_that_it_named_is_accused_else_the_oldest),
        cmocka_unit_test(what_waits_or_runs_is_lost_with_the_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
