// SPDX-License-Identifier: Apache-2.0
#ifndef TD_BASE_SYNC_FIFO_FIXTURE_H
#define TD_BASE_SYNC_FIFO_FIXTURE_H

// What ring and queue promise alike, as tests of one thread. Whoever includes
// this has said what is under test: FIFO is td_ring or td_queue.

#include "base/err.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#define FIFO_JOIN_(a, b) a##b
#define FIFO_JOIN(a, b) FIFO_JOIN_(a, b)
#define FIFO_CALL(verb) FIFO_JOIN(FIFO, _##verb)

typedef FIFO fifo;
TD_AUTO_FREE(fifo, FIFO_CALL(free))

static fifo *fifo_new(size_t capacity)
{
    fifo *made = NULL;
    assert_int_equal(FIFO_CALL(new)(capacity, sizeof(uint32_t), &made), TD_OK);
    return made;
}

static td_err fifo_push(fifo *to, uint32_t value)
{
    return FIFO_CALL(push)(to, &value);
}

static uint32_t fifo_pop(fifo *from)
{
    uint32_t value = 0;
    assert_int_equal(FIFO_CALL(pop)(from, &value), TD_OK);
    return value;
}

static void impossible_sizes_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        size_t capacity;
        size_t value_bytes;
        td_err err;
    } refusals[] = {
        {"no capacity", 0, 4, TD_ERR_INVALID},
        {"no value", 4, 0, TD_ERR_INVALID},
        {"capacity overflows", SIZE_MAX, 1, TD_ERR_NOMEM},
        {"value overflows", 1, SIZE_MAX, TD_ERR_NOMEM},
        {"product overflows", SIZE_MAX / 4, 8, TD_ERR_NOMEM},
    };
    for (size_t i = 0; i < TD_COUNT_OF(refusals); i++) {
        fifo *made = NULL;
        td_err err = FIFO_CALL(new)(refusals[i].capacity,
                                    refusals[i].value_bytes, &made);
        if (err != refusals[i].err || made)
            fail_msg("%s: %s", refusals[i].name, td_err_name(err));
    }
}

// `room` is what a capacity has room for.
static void refuses_at_once_when_full(size_t capacity, uint32_t room)
{
    TD_AUTO(fifo) *it = fifo_new(capacity);
    for (uint32_t i = 0; i < room; i++)
        assert_int_equal(fifo_push(it, i), TD_OK);
    assert_int_equal(fifo_push(it, 99), TD_ERR_FULL);
    assert_int_equal(fifo_pop(it), 0);
    assert_int_equal(fifo_push(it, room), TD_OK);
    assert_int_equal(fifo_push(it, 99), TD_ERR_FULL);
}

static void pass_in_order(uint32_t capacity, uint32_t at_a_time)
{
    TD_AUTO(fifo) *it = fifo_new(capacity);
    for (uint32_t i = 0; i < 20 * at_a_time; i += at_a_time) {
        for (uint32_t k = 0; k < at_a_time; k++)
            assert_int_equal(fifo_push(it, i + k), TD_OK);
        for (uint32_t k = 0; k < at_a_time; k++)
            assert_int_equal(fifo_pop(it), i + k);
    }
}

static void values_leave_in_order_lap_after_lap(void **state)
{
    (void)state;
    for (uint32_t capacity = 1; capacity <= 4; capacity++)
        for (uint32_t at_a_time = 1; at_a_time <= capacity; at_a_time++)
            pass_in_order(capacity, at_a_time);
}

static void an_empty_one_leaves_the_output_alone(void **state)
{
    (void)state;
    TD_AUTO(fifo) *it = fifo_new(2);
    uint32_t value = 7;
    assert_int_equal(FIFO_CALL(pop)(it, &value), TD_ERR_EMPTY);
    assert_int_equal(value, 7);
    assert_int_equal(fifo_push(it, 1), TD_OK);
    assert_int_equal(fifo_pop(it), 1);
    assert_int_equal(FIFO_CALL(pop)(it, &value), TD_ERR_EMPTY);
    assert_int_equal(value, 7);
}

#endif
