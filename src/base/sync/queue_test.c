// SPDX-License-Identifier: Apache-2.0
#include "base/sync/queue.h"

#define FIFO td_queue
#include "base/sync/fifo_fixture.h"
#include "base/sync/thread.h"

#include <sched.h>
#include <stdatomic.h>
#include <string.h>

enum { PRODUCERS = 2, CONSUMERS = 2, EACH = 50000 };

static void full_queue_refuses_at_once(void **state)
{
    (void)state;
    refuses_at_once_when_full(1, 1);
    refuses_at_once_when_full(4, 4);
    refuses_at_once_when_full(5, 8); // rounded up to a power of two
}

// `check` follows from the others, so that a torn value shows.
struct item {
    uint32_t producer;
    uint32_t number;
    uint64_t check;
};

static uint64_t check_of(const struct item *item)
{
    return ~((uint64_t)item->producer << 32 | item->number);
}

struct run {
    td_queue *queue;
    _Atomic uint32_t producers; // handed out as producer numbers
    _Atomic uint32_t popped;
    _Atomic uint32_t torn;
    _Atomic uint32_t backward;
    _Atomic uint8_t times_seen[PRODUCERS][EACH];
};

static void produce(void *user)
{
    struct run *run = user;
    struct item item = {.producer = atomic_fetch_add(&run->producers, 1)};
    for (item.number = 0; item.number < EACH; item.number++) {
        item.check = check_of(&item);
        while (td_queue_push(run->queue, &item) != TD_OK)
            sched_yield();
    }
}

static void consume(void *user)
{
    struct run *run = user;
    int64_t last[PRODUCERS] = {-1, -1};
    while (atomic_load(&run->popped) < PRODUCERS * EACH) {
        struct item item;
        if (td_queue_pop(run->queue, &item) != TD_OK) {
            sched_yield();
            continue;
        }
        atomic_fetch_add(&run->popped, 1);
        if (item.check != check_of(&item)) {
            atomic_fetch_add(&run->torn, 1);
            continue;
        }
        if (item.number <= last[item.producer])
            atomic_fetch_add(&run->backward, 1);
        last[item.producer] = item.number;
        atomic_fetch_add(&run->times_seen[item.producer][item.number], 1);
    }
}

static void run_threads(struct run *run)
{
    td_thread *threads[PRODUCERS + CONSUMERS];
    const td_thread_config config = {.name = "worker", .cpu = -1};
    for (size_t i = 0; i < TD_COUNT_OF(threads); i++)
        assert_int_equal(td_thread_start(&config,
                                         i < PRODUCERS ? produce : consume, run,
                                         &threads[i], NULL),
                         TD_OK);
    for (size_t i = 0; i < TD_COUNT_OF(threads); i++)
        td_thread_join(threads[i]);
}

static void many_threads_pass_every_value_once_in_order(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 64};
    for (size_t i = 0; i < TD_COUNT_OF(sizes); i++) {
        TD_AUTO(td_queue) *queue = NULL;
        assert_int_equal(td_queue_new(sizes[i], sizeof(struct item), &queue),
                         TD_OK);
        static struct run run;
        memset(&run, 0, sizeof run);
        run.queue = queue;
        run_threads(&run);

        assert_int_equal(run.torn, 0);
        assert_int_equal(run.backward, 0);
        assert_int_equal(run.popped, PRODUCERS * EACH);
        for (size_t p = 0; p < PRODUCERS; p++)
            for (size_t n = 0; n < EACH; n++)
                assert_int_equal(run.times_seen[p][n], 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(impossible_sizes_are_refused),
        cmocka_unit_test(full_queue_refuses_at_once),
        cmocka_unit_test(values_leave_in_order_lap_after_lap),
        cmocka_unit_test(an_empty_one_leaves_the_output_alone),
        cmocka_unit_test(many_threads_pass_every_value_once_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
