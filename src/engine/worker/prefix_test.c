// SPDX-License-Identifier: Apache-2.0
#include "engine/worker/prefix.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static td_worker_offer offer;
static td_worker_hello hello;

static int clear(void **state)
{
    (void)state;
    offer.dropped = 0;
    hello.dropped = 0;
    return 0;
}

static void drop_new(td_engine_worker_prefixes *prefixes)
{
    td_engine_worker_prefix_drop(
        prefixes, td_engine_worker_prefix_new(prefixes, prefixes->life), &offer,
        &hello);
}

static void what_is_dropped_goes_into_the_offer_at_once(void **state)
{
    (void)state;
    td_engine_worker_prefixes prefixes = {0};
    drop_new(&prefixes);
    drop_new(&prefixes);
    assert_int_equal(offer.dropped, 2);
    assert_int_equal(offer.drops[0], 1);
    assert_int_equal(offer.drops[1], 2);
    assert_true(td_engine_worker_prefix_hand_over(&prefixes, &offer, &hello));
    hello.dropped = 2; // the process has let both go
    assert_false(td_engine_worker_prefix_hand_over(&prefixes, &offer, &hello));
}

static void more_than_there_is_room_for_waits(void **state)
{
    (void)state;
    td_engine_worker_prefixes prefixes = {0};
    for (int i = 0; i < TD_WORKER_DROPS + 3; i++)
        drop_new(&prefixes);
    assert_int_equal(offer.dropped, TD_WORKER_DROPS);
    hello.dropped = 2;
    assert_true(td_engine_worker_prefix_hand_over(&prefixes, &offer, &hello));
    assert_int_equal(offer.dropped, TD_WORKER_DROPS + 2);
    td_engine_worker_prefix_forget(&prefixes);
    assert_null(prefixes.drop);
}

static void what_another_process_kept_is_not_dropped_in_this_one(void **state)
{
    (void)state;
    td_engine_worker_prefixes prefixes = {0};
    td_engine_prefix *old =
        td_engine_worker_prefix_new(&prefixes, prefixes.life);
    td_engine_worker_prefix_forget(&prefixes);
    td_engine_worker_prefix_drop(&prefixes, old, &offer, &hello);
    td_engine_worker_prefix_drop(
        &prefixes, td_engine_worker_prefix_new(&prefixes, prefixes.life), NULL,
        NULL); // none runs
    assert_int_equal(offer.dropped, 0);
    assert_false(td_engine_worker_prefix_hand_over(&prefixes, &offer, &hello));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(what_is_dropped_goes_into_the_offer_at_once,
                               clear),
        cmocka_unit_test_setup(more_than_there_is_room_for_waits, clear),
        cmocka_unit_test_setup(
            what_another_process_kept_is_not_dropped_in_this_one, clear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
