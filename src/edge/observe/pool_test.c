// SPDX-License-Identifier: Apache-2.0
#include "edge/observe/pool.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define FRAMES 3
#define BYTES 100

static void a_pool_of_nothing_is_refused(void **state)
{
    (void)state;
    td_edge_pool *pool = NULL;
    assert_int_equal(td_edge_pool_new(0, BYTES, &pool), TD_ERR_INVALID);
    assert_int_equal(td_edge_pool_new(FRAMES, 0, &pool), TD_ERR_INVALID);
    assert_null(pool);
}

static void frames_do_not_overlap(void **state)
{
    (void)state;
    TD_AUTO(td_edge_pool) *pool = NULL;
    td_edge_frame *frames[FRAMES];
    assert_int_equal(td_edge_pool_new(FRAMES, BYTES, &pool), TD_OK);
    for (int i = 0; i < FRAMES; i++) {
        frames[i] = td_edge_pool_take(pool);
        assert_non_null(frames[i]);
        memset(frames[i]->bytes, i + 1, BYTES);
    }
    for (int i = 0; i < FRAMES; i++)
        for (int k = 0; k < BYTES; k++)
            assert_int_equal(frames[i]->bytes[k], i + 1);
    assert_null(td_edge_pool_take(pool));
}

static void a_frame_is_free_when_its_last_holder_lets_go(void **state)
{
    (void)state;
    TD_AUTO(td_edge_pool) *pool = NULL;
    assert_int_equal(td_edge_pool_new(1, BYTES, &pool), TD_OK);
    td_edge_frame *frame = td_edge_pool_take(pool);
    td_edge_pool_hold(frame);
    td_edge_pool_drop(frame);
    assert_null(td_edge_pool_take(pool));
    td_edge_pool_drop(frame);
    assert_ptr_equal(td_edge_pool_take(pool), frame);
}

static int ended; // loans

static void end(td_net_loan *loan)
{
    (void)loan;
    ended++;
}

static const td_net_ops lender = {.loan_free = end};

static void a_loan_ends_when_nobody_holds_its_frame(void **state)
{
    (void)state;
    uint8_t place[BYTES];
    td_net_loan loans[] = {{&lender, place}, {&lender, place}};
    TD_AUTO(td_edge_pool) *pool = NULL;
    assert_int_equal(td_edge_pool_new(FRAMES, BYTES, &pool), TD_OK);
    ended = 0;
    td_edge_frame *first = td_edge_pool_take(pool);
    td_edge_frame *second = td_edge_pool_take(pool);
    const uint8_t *own = first->bytes;
    td_edge_pool_lend(first, &loans[0]);
    td_edge_pool_lend(second, &loans[1]);
    assert_ptr_equal(first->bytes, place);
    td_edge_pool_drop(second);
    assert_int_equal(ended, 0);
    td_edge_frame *third = td_edge_pool_take(pool);
    assert_int_equal(ended, 1);
    assert_ptr_equal(first->loan, &loans[0]);
    td_edge_pool_drop(first);
    td_edge_pool_drop(third);
    first = td_edge_pool_take(pool);
    assert_int_equal(ended, 2);
    assert_null(first->loan);
    assert_ptr_equal(first->bytes, own);
    td_edge_pool_lend(first, &loans[0]);
    td_edge_pool_free(TD_TAKE(pool));
    assert_int_equal(ended, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pool_of_nothing_is_refused),
        cmocka_unit_test(frames_do_not_overlap),
        cmocka_unit_test(a_frame_is_free_when_its_last_holder_lets_go),
        cmocka_unit_test(a_loan_ends_when_nobody_holds_its_frame),
    };
    return cmocka_run_group_tests_name("edge/pool", tests, NULL, NULL);
}
