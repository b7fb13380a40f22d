// SPDX-License-Identifier: Apache-2.0
#include "base/sync/slot.h"

#include "base/sync/thread.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { WORDS = 32, PUBLISHES = 200000 };

// Every word holds the same number, so that a torn value shows.
struct value {
    uint64_t words[WORDS];
};

static td_slot *new_slot(void)
{
    td_slot *slot = NULL;
    assert_int_equal(td_slot_new(sizeof(struct value), &slot), TD_OK);
    return slot;
}

static bool publish(td_slot *slot, uint64_t number)
{
    struct value *back = td_slot_back(slot);
    for (size_t i = 0; i < WORDS; i++)
        back->words[i] = number;
    return td_slot_publish(slot);
}

static uint64_t front(const td_slot *slot)
{
    return ((const struct value *)td_slot_front(slot))->words[0];
}

static void impossible_sizes_are_refused(void **state)
{
    (void)state;
    td_slot *slot = NULL;
    assert_int_equal(td_slot_new(0, &slot), TD_ERR_INVALID);
    assert_int_equal(td_slot_new(SIZE_MAX, &slot), TD_ERR_NOMEM);
    assert_null(slot);
}

static void front_is_zeros_before_the_first_value(void **state)
{
    (void)state;
    TD_AUTO(td_slot) *slot = new_slot();
    assert_false(td_slot_refresh(slot));
    static const struct value zeros;
    assert_memory_equal(td_slot_front(slot), &zeros, sizeof zeros);
}

static void the_newest_value_wins(void **state)
{
    (void)state;
    TD_AUTO(td_slot) *slot = new_slot();
    publish(slot, 1);
    publish(slot, 2);
    publish(slot, 3);
    assert_true(td_slot_refresh(slot));
    assert_int_equal(front(slot), 3);
}

static void refresh_is_true_once_a_value(void **state)
{
    (void)state;
    TD_AUTO(td_slot) *slot = new_slot();
    publish(slot, 1);
    assert_true(td_slot_refresh(slot));
    assert_false(td_slot_refresh(slot));
    assert_int_equal(front(slot), 1);
    publish(slot, 2);
    assert_true(td_slot_refresh(slot));
    assert_int_equal(front(slot), 2);
}

static void publish_tells_whether_the_last_was_read(void **state)
{
    (void)state;
    TD_AUTO(td_slot) *slot = new_slot();
    assert_false(publish(slot, 1));
    assert_true(publish(slot, 2));
    assert_true(td_slot_refresh(slot));
    assert_false(publish(slot, 3));
}

static void front_stays_while_the_writer_goes_on(void **state)
{
    (void)state;
    TD_AUTO(td_slot) *slot = new_slot();
    publish(slot, 1);
    assert_true(td_slot_refresh(slot));
    for (uint64_t number = 2; number < 10; number++)
        publish(slot, number);
    assert_int_equal(front(slot), 1);
}

struct writer {
    td_slot *slot;
    uint64_t unread;
};

static void write_many(void *user)
{
    struct writer *writer = user;
    for (uint64_t number = 1; number <= PUBLISHES; number++)
        writer->unread += publish(writer->slot, number);
}

static bool is_whole(const struct value *value)
{
    for (size_t i = 1; i < WORDS; i++)
        if (value->words[i] != value->words[0]) return false;
    return true;
}

static void two_threads_see_whole_values_in_order(void **state)
{
    (void)state;
    TD_AUTO(td_slot) *slot = new_slot();
    struct writer writer = {.slot = slot};
    const td_thread_config config = {.name = "writer", .cpu = -1};
    td_thread *thread = NULL;
    assert_int_equal(
        td_thread_start(&config, write_many, &writer, &thread, NULL), TD_OK);

    uint64_t reads = 0, torn = 0, backward = 0, last = 0;
    while (last < PUBLISHES) {
        if (!td_slot_refresh(slot)) {
            sched_yield();
            continue;
        }
        reads++;
        torn += !is_whole(td_slot_front(slot));
        backward += front(slot) <= last;
        last = front(slot);
    }
    td_thread_join(thread);
    assert_int_equal(torn, 0);
    assert_int_equal(backward, 0);
    assert_int_equal(reads + writer.unread, PUBLISHES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(impossible_sizes_are_refused),
        cmocka_unit_test(front_is_zeros_before_the_first_value),
        cmocka_unit_test(the_newest_value_wins),
        cmocka_unit_test(refresh_is_true_once_a_value),
        cmocka_unit_test(publish_tells_whether_the_last_was_read),
        cmocka_unit_test(front_stays_while_the_writer_goes_on),
        cmocka_unit_test(two_threads_see_whole_values_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
