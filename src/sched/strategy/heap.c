// SPDX-License-Identifier: Apache-2.0
#include "sched/strategy/heap.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

td_err td_sched_heap_init(td_sched_heap *heap, uint32_t capacity)
{
    *heap = (td_sched_heap){
        .capacity = capacity,
        .cells = calloc(capacity, sizeof *heap->cells),
        .places = malloc(capacity * sizeof *heap->places),
    };
    if (heap->cells && heap->places) {
        memset(heap->places, 0xff, capacity * sizeof *heap->places);
        return TD_OK;
    }
    td_sched_heap_done(heap);
    return TD_ERR_NOMEM;
}

void td_sched_heap_done(td_sched_heap *heap)
{
    free(heap->cells);
    free(heap->places);
    *heap = (td_sched_heap){0};
}

static bool before(td_sched_heap_cell a, td_sched_heap_cell b)
{
    return a.key < b.key || (a.key == b.key && a.number < b.number);
}

static void set(td_sched_heap *heap, uint32_t at, td_sched_heap_cell cell)
{
    heap->cells[at] = cell;
    heap->places[cell.number] = at;
}

static void sift_up(td_sched_heap *heap, uint32_t at, td_sched_heap_cell cell)
{
    while (at > 0) {
        uint32_t parent = (at - 1) / 2;
        if (!before(cell, heap->cells[parent])) break;
        set(heap, at, heap->cells[parent]);
        at = parent;
    }
    set(heap, at, cell);
}

static void sift_down(td_sched_heap *heap, uint32_t at, td_sched_heap_cell cell)
{
    const td_sched_heap_cell *cells = heap->cells;
    for (uint32_t child; (child = 2 * at + 1) < heap->count; at = child) {
        if (child + 1 < heap->count)
            child += before(cells[child + 1], cells[child]);
        if (!before(cells[child], cell)) break;
        set(heap, at, cells[child]);
    }
    set(heap, at, cell);
}

static void settle(td_sched_heap *heap, uint32_t at, td_sched_heap_cell cell)
{
    if (at > 0 && before(cell, heap->cells[(at - 1) / 2]))
        sift_up(heap, at, cell);
    else
        sift_down(heap, at, cell);
}

void td_sched_heap_put(td_sched_heap *heap, uint32_t number, int64_t key)
{
    assert(number < heap->capacity);
    uint32_t at = heap->places[number];
    if (at == UINT32_MAX) at = heap->count++;
    settle(heap, at, (td_sched_heap_cell){key, number});
}

void td_sched_heap_take(td_sched_heap *heap, uint32_t number)
{
    if (!td_sched_heap_has(heap, number)) return;
    uint32_t at = heap->places[number];
    heap->places[number] = UINT32_MAX;
    td_sched_heap_cell last = heap->cells[--heap->count];
    if (at < heap->count) settle(heap, at, last);
}

static uint32_t take_least(const td_sched_heap *heap, uint32_t *open,
                           uint32_t *count)
{
    uint32_t least = 0;
    for (uint32_t i = 1; i < *count; i++)
        if (before(heap->cells[open[i]], heap->cells[open[least]])) least = i;
    uint32_t at = open[least];
    open[least] = open[--*count];
    return at;
}

uint32_t td_sched_heap_keys(const td_sched_heap *heap, int64_t to,
                            uint32_t most, int64_t *ret_keys)
{
    uint32_t open[TD_SCHED_HEAP_KEYS + 1] = {0}; // whose parents were taken
    uint32_t open_count = heap->count > 0, count = 0;
    assert(most <= TD_SCHED_HEAP_KEYS);
    while (open_count > 0 && count < most) {
        uint32_t at = take_least(heap, open, &open_count);
        if (heap->cells[at].key > to) break;
        ret_keys[count++] = heap->cells[at].key;
        for (uint32_t child = 2 * at + 1; child <= 2 * at + 2; child++)
            if (child < heap->count) open[open_count++] = child;
    }
    return count;
}
