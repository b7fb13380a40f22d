// SPDX-License-Identifier: Apache-2.0
#include "net/inproc/heap.h"

#include "base/rand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { COUNT = 1000, DUE_TIMES = 50 };

static int fill(void **state)
{
    td_inproc_heap *heap = calloc(1, sizeof *heap);
    if (!heap) return -1;
    td_rand rand;
    td_rand_init(&rand, 1);
    for (int i = 0; i < COUNT; i++) {
        td_inproc_delivery delivery = {
            .due_ns = (int64_t)(td_rand_u64(&rand) % DUE_TIMES)};
        if (td_inproc_heap_push(heap, &delivery) != TD_OK) return -1;
    }
    *state = heap;
    return 0;
}

static int clear(void **state)
{
    td_inproc_heap *heap = *state;
    free(heap->items);
    free(heap);
    return 0;
}

static void assert_leaves_in_order(td_inproc_heap *heap)
{
    td_inproc_delivery last = td_inproc_heap_pop(heap);
    while (heap->count) {
        td_inproc_delivery next = td_inproc_heap_pop(heap);
        assert_true(last.due_ns < next.due_ns ||
                    (last.due_ns == next.due_ns && last.order < next.order));
        last = next;
    }
}

static void soonest_leaves_first_and_ties_in_order(void **state)
{
    td_inproc_heap *heap = *state;
    assert_int_equal(heap->count, COUNT);
    assert_leaves_in_order(heap);
}

static void order_holds_after_removal_from_the_middle(void **state)
{
    td_inproc_heap *heap = *state;
    size_t kept = 0;
    for (size_t i = 0; i < heap->count; i++)
        if (heap->items[i].due_ns % 3) heap->items[kept++] = heap->items[i];
    assert_in_range(kept, 1, COUNT - 1);
    heap->count = kept;
    td_inproc_heap_restore(heap);
    assert_leaves_in_order(heap);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(soonest_leaves_first_and_ties_in_order,
                                        fill, clear),
        cmocka_unit_test_setup_teardown(
            order_holds_after_removal_from_the_middle, fill, clear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
