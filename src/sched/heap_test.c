// SPDX-License-Identifier: Apache-2.0
#include "sched/heap.h"

#include "base/rand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#define NUMBERS 50

// Which number a plain search over all keys finds.
static uint32_t slow_first(const int64_t *keys, const bool *in)
{
    uint32_t first = UINT32_MAX;
    for (uint32_t i = 0; i < NUMBERS; i++)
        if (in[i] && (first == UINT32_MAX || keys[i] < keys[first])) first = i;
    return first;
}

static void check_count(const td_sched_heap *heap, const int64_t *keys,
                        const bool *in, int64_t to)
{
    uint32_t count = 0;
    int64_t largest = -1, found = -1;
    for (uint32_t i = 0; i < NUMBERS; i++) {
        if (!in[i] || keys[i] > to) continue;
        count++;
        if (keys[i] > largest) largest = keys[i];
    }
    assert_int_equal(td_sched_heap_count_to(heap, to, NUMBERS, &found), count);
    assert_int_equal(found, largest);
    assert_true(td_sched_heap_count_to(heap, to, 3, &found) <= 3);
}

static void the_first_is_what_a_search_would_find(void **state)
{
    (void)state;
    td_sched_heap heap;
    assert_int_equal(td_sched_heap_init(&heap, NUMBERS), TD_OK);
    int64_t keys[NUMBERS] = {0};
    bool in[NUMBERS] = {false};
    td_rand rand;
    td_rand_init(&rand, 1);
    for (int step = 0; step < 20000; step++) {
        uint32_t number = (uint32_t)(td_rand_u64(&rand) % NUMBERS);
        in[number] = td_rand_u64(&rand) % 3 > 0;
        keys[number] = (int64_t)(td_rand_u64(&rand) % 20);
        if (in[number])
            td_sched_heap_put(&heap, number, keys[number]);
        else
            td_sched_heap_take(&heap, number);
        assert_int_equal(td_sched_heap_has(&heap, number), in[number]);
        check_count(&heap, keys, in, (int64_t)(td_rand_u64(&rand) % 20));
        uint32_t first = slow_first(keys, in);
        if (first == UINT32_MAX) {
            assert_int_equal(td_sched_heap_key(&heap), TD_SCHED_NEVER_NS);
        } else {
            assert_int_equal(td_sched_heap_first(&heap), first);
            assert_int_equal(td_sched_heap_key(&heap), keys[first]);
        }
    }
    td_sched_heap_done(&heap);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_is_what_a_search_would_find),
    };
    return cmocka_run_group_tests_name("sched/heap", tests, NULL, NULL);
}
