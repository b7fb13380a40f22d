// SPDX-License-Identifier: Apache-2.0
#include "sched/strategy/heap.h"

#include "base/rand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

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

static int by_key(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void check_keys(const td_sched_heap *heap, const int64_t *keys,
                       const bool *in, int64_t to, uint32_t most)
{
    int64_t sorted[NUMBERS], found[NUMBERS];
    uint32_t count = 0;
    for (uint32_t i = 0; i < NUMBERS; i++)
        if (in[i] && keys[i] <= to) sorted[count++] = keys[i];
    qsort(sorted, count, sizeof *sorted, by_key);
    if (count > most) count = most;
    assert_int_equal(td_sched_heap_keys(heap, to, most, found), count);
    assert_memory_equal(found, sorted, count * sizeof *found);
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
        check_keys(&heap, keys, in, (int64_t)(td_rand_u64(&rand) % 20),
                   (uint32_t)(td_rand_u64(&rand) % NUMBERS));
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
