// SPDX-License-Identifier: Apache-2.0
#include "net/inproc/heap.h"

#include <assert.h>
#include <stdlib.h>

static bool before(const td_inproc_delivery *a, const td_inproc_delivery *b)
{
    if (a->due_ns != b->due_ns) return a->due_ns < b->due_ns;
    return a->order < b->order;
}

static void swap(td_inproc_delivery *a, td_inproc_delivery *b)
{
    td_inproc_delivery held = *a;
    *a = *b;
    *b = held;
}

static void sift_up(td_inproc_heap *heap, size_t at)
{
    while (at > 0) {
        size_t parent = (at - 1) / 2;
        if (!before(&heap->items[at], &heap->items[parent])) return;
        swap(&heap->items[at], &heap->items[parent]);
        at = parent;
    }
}

static void sift_down(td_inproc_heap *heap, size_t at)
{
    for (;;) {
        size_t soonest = at;
        for (size_t child = 2 * at + 1;
             child <= 2 * at + 2 && child < heap->count; child++)
            if (before(&heap->items[child], &heap->items[soonest]))
                soonest = child;
        if (soonest == at) return;
        swap(&heap->items[at], &heap->items[soonest]);
        at = soonest;
    }
}

td_err td_inproc_heap_push(td_inproc_heap *heap,
                           const td_inproc_delivery *delivery)
{
    if (heap->count == heap->capacity) {
        size_t capacity = heap->capacity ? 2 * heap->capacity : 64;
        td_inproc_delivery *items =
            reallocarray(heap->items, capacity, sizeof *items);
        if (!items) return TD_ERR_NOMEM;
        heap->items = items;
        heap->capacity = capacity;
    }
    heap->items[heap->count] = *delivery;
    heap->items[heap->count].order = ++heap->last_order;
    sift_up(heap, heap->count++);
    return TD_OK;
}

td_inproc_delivery td_inproc_heap_pop(td_inproc_heap *heap)
{
    assert(heap->count > 0);
    td_inproc_delivery first = heap->items[0];
    heap->items[0] = heap->items[--heap->count];
    sift_down(heap, 0);
    return first;
}

void td_inproc_heap_restore(td_inproc_heap *heap)
{
    for (size_t i = heap->count / 2; i > 0; i--)
        sift_down(heap, i - 1);
}
