// SPDX-License-Identifier: Apache-2.0
#include "base/sync/ring.h"

#define FIFO td_ring
#include "base/sync/fifo_fixture.h"
#include "base/sync/thread.h"

#include <sched.h>

enum { STRESS_VALUES = 200000 };

static void full_ring_refuses_at_once(void **state)
{
    (void)state;
    for (uint32_t capacity = 1; capacity <= 5; capacity++)
        refuses_at_once_when_full(capacity, capacity);
}

static void count_follows_pushes_and_pops(void **state)
{
    (void)state;
    TD_AUTO(td_ring) *ring = fifo_new(3);
    for (uint32_t round = 0; round < 8; round++) {
        assert_int_equal(td_ring_count(ring), 0);
        assert_int_equal(fifo_push(ring, 1), TD_OK);
        assert_int_equal(fifo_push(ring, 2), TD_OK);
        assert_int_equal(fifo_push(ring, 3), TD_OK);
        assert_int_equal(td_ring_count(ring), 3);
        fifo_pop(ring);
        assert_int_equal(td_ring_count(ring), 2);
        fifo_pop(ring);
        fifo_pop(ring);
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
        cmocka_unit_test(values_leave_in_order_lap_after_lap),
        cmocka_unit_test(full_ring_refuses_at_once),
        cmocka_unit_test(an_empty_one_leaves_the_output_alone),
        cmocka_unit_test(count_follows_pushes_and_pops),
        cmocka_unit_test(two_threads_pass_every_value_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
