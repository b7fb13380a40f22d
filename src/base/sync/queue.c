// SPDX-License-Identifier: Apache-2.0
#include "base/sync/queue.h"

#include "base/sync/cacheline.h"

#include <stdatomic.h>
#include <stdbool.h>

// Positions count up for ever; position p is cell p mod 2^lap_bits in lap
// p >> lap_bits. In lap n a cell's turn is 2n while it waits to be filled and
// 2n + 1 while it waits to be taken, so that even a queue of one cell can tell
// a full one from the next lap's empty one.
struct td_queue {
    unsigned lap_bits;
    size_t value_bytes;
    size_t cell_bytes;
    unsigned char *cells;
    TD_CACHELINE_ALIGNED _Atomic uint64_t tail; // next position to fill
    TD_CACHELINE_ALIGNED _Atomic uint64_t head; // next position to take
};

struct cell {
    _Atomic uint64_t turn;
    unsigned char value[];
};

static td_err cells_new(td_queue *queue, size_t value_bytes)
{
    const size_t align = _Alignof(struct cell);
    if (value_bytes > SIZE_MAX - 2 * align) return TD_ERR_NOMEM;
    queue->value_bytes = value_bytes;
    queue->cell_bytes =
        (sizeof(struct cell) + value_bytes + align - 1) & ~(align - 1);
    queue->cells =
        td_cacheline_calloc((size_t)1 << queue->lap_bits, queue->cell_bytes);
    return queue->cells ? TD_OK : TD_ERR_NOMEM;
}

td_err td_queue_new(size_t capacity, size_t value_bytes, td_queue **ret_queue)
{
    if (capacity == 0 || value_bytes == 0) return TD_ERR_INVALID;
    if (capacity > SIZE_MAX / 2) return TD_ERR_NOMEM;

    TD_AUTO(td_queue) *queue = td_cacheline_calloc(1, sizeof *queue);
    if (!queue) return TD_ERR_NOMEM;
    while ((size_t)1 << queue->lap_bits < capacity)
        queue->lap_bits++;
    TD_TRY(cells_new(queue, value_bytes));

    *ret_queue = TD_TAKE(queue);
    return TD_OK;
}

void td_queue_free(td_queue *queue)
{
    free(queue->cells);
    free(queue);
}

static uint64_t lap_of(const td_queue *queue, uint64_t position)
{
    return position >> queue->lap_bits;
}

static struct cell *cell_at(const td_queue *queue, uint64_t position)
{
    size_t index = position & (((size_t)1 << queue->lap_bits) - 1);
    return (struct cell *)(queue->cells + index * queue->cell_bytes);
}

// Takes the next position whose cell is at its turn: 2 * lap + `filled`. False
// if that cell is not there yet.
static bool claim(const td_queue *queue, _Atomic uint64_t *next,
                  uint64_t filled, uint64_t *ret_position)
{
    uint64_t position = atomic_load_explicit(next, memory_order_relaxed);
    for (;;) {
        uint64_t turn = atomic_load_explicit(&cell_at(queue, position)->turn,
                                             memory_order_acquire);
        uint64_t due = 2 * lap_of(queue, position) + filled;
        if (turn < due) return false;

        if (turn > due) {
            position = atomic_load_explicit(next, memory_order_relaxed);
        } else if (atomic_compare_exchange_weak_explicit(
                       next, &position, position + 1, memory_order_relaxed,
                       memory_order_relaxed)) {
            *ret_position = position;
            return true;
        }
    }
}

static void pass_turn(struct cell *cell)
{
    uint64_t turn = atomic_load_explicit(&cell->turn, memory_order_relaxed);
    atomic_store_explicit(&cell->turn, turn + 1, memory_order_release);
}

td_err td_queue_push(td_queue *queue, const void *value)
{
    uint64_t position;
    if (!claim(queue, &queue->tail, 0, &position)) return TD_ERR_FULL;

    struct cell *cell = cell_at(queue, position);
    memcpy(cell->value, value, queue->value_bytes);
    pass_turn(cell);
    return TD_OK;
}

td_err td_queue_pop(td_queue *queue, void *ret_value)
{
    uint64_t position;
    if (!claim(queue, &queue->head, 1, &position)) return TD_ERR_EMPTY;

    struct cell *cell = cell_at(queue, position);
    memcpy(ret_value, cell->value, queue->value_bytes);
    pass_turn(cell);
    return TD_OK;
}
