// SPDX-License-Identifier: Apache-2.0
#include "base/ring.h"

#include "base/thread.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { STRESS_VALUES = 200000 };

static td_ring *new_ring(size_t capacity)
{
    td_ring *ring = NULL;
    assert_int_equal(td_ring_new(capacity, sizeof(uint32_t), &ring), TD_OK);
    return ring;
}

static td_err push(td_ring *ring, uint32_t value)
{
    return td_ring_push(ring, &value);
}

static uint32_t pop(td_ring *ring)
{
    uint32_t value = 0;
    assert_int_equal(td_ring_pop(ring, &value), TD_OK);
    return value;
}

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

static void impossible_sizes_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < TD_COUNT_OF(refusals); i++) {
        td_ring *ring = NULL;
        td_err err =
            td_ring_new(refusals[i].capacity, refusals[i].value_bytes, &ring);
        if (err != refusals[i].err || ring)
            fail_msg("%s: %s", refusals[i].name, td_err_name(err));
    }
}

static void values_leave_in_order_across_the_end(void **state)
{
    (void)state;
    TD_AUTO(td_ring) *ring = new_ring(3);
    for (uint32_t round = 0; round < 10; round++) {
        assert_int_equal(push(ring, 2 * round), TD_OK);
        assert_int_equal(push(ring, 2 * round + 1), TD_OK);
        assert_int_equal(pop(ring), 2 * round);
        assert_int_equal(pop(ring), 2 * round + 1);
    }
}

static void full_ring_refuses_at_once(void **state)
{
    (void)state;
    for (uint32_t capacity = 1; capacity <= 5; capacity++) {
        TD_AUTO(td_ring) *ring = new_ring(capacity);
        for (uint32_t i = 0; i < capacity; i++)
            assert_int_equal(push(ring, i), TD_OK);
        assert_int_equal(push(ring, 99), TD_ERR_FULL);
        assert_int_equal(pop(ring), 0);
        assert_int_equal(push(ring, capacity), TD_OK);
        assert_int_equal(push(ring, 99), TD_ERR_FULL);
    }
}

static void empty_ring_leaves_the_output_alone(void **state)
{
    (void)state;
    TD_AUTO(td_ring) *ring = new_ring(2);
    uint32_t value = 7;
    assert_int_equal(td_ring_pop(ring, &value), TD_ERR_EMPTY);
    assert_int_equal(value, 7);
}

static void count_follows_pushes_and_pops(void **state)
{
    (void)state;
    TD_AUTO(td_ring) *ring = new_ring(3);
    for (uint32_t round = 0; round < 8; round++) {
        assert_int_equal(td_ring_count(ring), 0);
        assert_int_equal(push(ring, 1), TD_OK);
        assert_int_equal(push(ring, 2), TD_OK);
        assert_int_equal(push(ring, 3), TD_OK);
        assert_int_equal(td_ring_count(ring), 3);
        pop(ring);
        assert_int_equal(td_ring_count(ring), 2);
        pop(ring);
        pop(ring);
    }
}

// The words of a value differ by known amounts, so that a torn one shows.
struct value {
    uint64_t words[5];
};

static void push_many(void *user)
{
    for (uint64_t i = 0; i < STRESS_VALUES; i++) {
        const struct value value = {{i, i + 1, i + 2, i + 3, ~i}};
        while (td_ring_push(user, &value) != TD_OK)
            sched_yield();
    }
}

static bool is_number(const struct value *value, uint64_t i)
{
    const uint64_t want[] = {i, i + 1, i + 2, i + 3, ~i};
    for (size_t k = 0; k < TD_COUNT_OF(want); k++)
        if (value->words[k] != want[k]) return false;
    return true;
}

static void two_threads_pass_every_value_in_order(void **state)
{
    (void)state;
    TD_AUTO(td_ring) *ring = NULL;
    assert_int_equal(td_ring_new(100, sizeof(struct value), &ring), TD_OK);
    const td_thread_config config = {.name = "producer", .cpu = -1};
    td_thread *thread = NULL;
    assert_int_equal(td_thread_start(&config, push_many, ring, &thread, NULL),
                     TD_OK);

    uint64_t wrong = 0;
    for (uint64_t i = 0; i < STRESS_VALUES; i++) {
        struct value value;
        while (td_ring_pop(ring, &value) != TD_OK)
            sched_yield();
        wrong += !is_number(&value, i);
    }
    td_thread_join(thread);
    assert_int_equal(wrong, 0);
    assert_int_equal(td_ring_count(ring), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(impossible_sizes_are_refused),
        cmocka_unit_test(values_leave_in_order_across_the_end),
        cmocka_unit_test(full_ring_refuses_at_once),
        cmocka_unit_test(empty_ring_leaves_the_output_alone),
        cmocka_unit_test(count_follows_pushes_and_pops),
        cmocka_unit_test(two_threads_pass_every_value_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
