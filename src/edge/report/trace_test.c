// SPDX-License-Identifier: Apache-2.0
#include "edge/report/trace.h"

#include "base/sync/thread.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>

#include <cmocka.h>

enum { STRESS_RECORDS = 100000 };

static td_edge_trace *new_trace(size_t ring, size_t max)
{
    const td_edge_trace_config config = {.ring_ticks = ring,
                                         .ring_merges = ring,
                                         .max_ticks = max,
                                         .max_merges = max};
    td_edge_trace *trace = NULL;
    assert_int_equal(td_edge_trace_new(&config, &trace), TD_OK);
    return trace;
}

static void push_tick(td_edge_trace *trace, uint64_t cursor)
{
    td_edge_trace_tick(trace, &(td_edge_traced_tick){.cursor = cursor});
}

static void push_merge(td_edge_trace *trace, uint64_t seq)
{
    td_edge_trace_merge(trace, &(td_edge_traced_merge){.seq = seq});
}

static void drain_keeps_the_order(void **state)
{
    (void)state;
    TD_AUTO(td_edge_trace) *trace = new_trace(3, 5000);
    for (uint64_t i = 0; i < 5000; i++) {
        push_tick(trace, i);
        push_merge(trace, 2 * i);
        if (i % 3 == 2) td_edge_trace_drain(trace);
    }
    td_edge_trace_drain(trace);
    td_edge_traced traced = td_edge_trace_read(trace);
    assert_int_equal(traced.tick_count, 5000);
    assert_int_equal(traced.merge_count, 5000);
    for (uint64_t i = 0; i < 5000; i++) {
        assert_int_equal(traced.ticks[i].cursor, i);
        assert_int_equal(traced.merges[i].seq, 2 * i);
    }
}

static void full_ring_drops_the_newest_and_counts(void **state)
{
    (void)state;
    TD_AUTO(td_edge_trace) *trace = new_trace(3, 100);
    for (uint64_t i = 0; i < 10; i++)
        push_tick(trace, i);
    for (uint64_t i = 0; i < 5; i++)
        push_merge(trace, i);
    td_edge_trace_drain(trace);
    td_edge_traced traced = td_edge_trace_read(trace);
    assert_int_equal(traced.tick_count, 3);
    assert_int_equal(traced.ticks[2].cursor, 2);
    assert_int_equal(traced.ticks_dropped, 7);
    assert_int_equal(traced.merge_count, 3);
    assert_int_equal(traced.merges_dropped, 2);
    assert_int_equal(traced.ticks_past_max, 0);
}

static void what_comes_past_the_limit_is_counted(void **state)
{
    (void)state;
    TD_AUTO(td_edge_trace) *trace = new_trace(10, 4);
    for (uint64_t i = 0; i < 10; i++)
        push_tick(trace, i);
    push_merge(trace, 1);
    td_edge_trace_drain(trace);
    td_edge_traced traced = td_edge_trace_read(trace);
    assert_int_equal(traced.tick_count, 4);
    assert_int_equal(traced.ticks[3].cursor, 3);
    assert_int_equal(traced.ticks_past_max, 6);
    assert_int_equal(traced.ticks_dropped, 0);
    assert_int_equal(traced.merge_count, 1);
    assert_int_equal(traced.merges_past_max, 0);
}

static void undrained_trace_reads_as_empty(void **state)
{
    (void)state;
    TD_AUTO(td_edge_trace) *trace = new_trace(4, 4);
    push_tick(trace, 1);
    td_edge_traced traced = td_edge_trace_read(trace);
    assert_int_equal(traced.tick_count, 0);
    assert_int_equal(traced.merge_count, 0);
}

static void ring_without_room_is_refused(void **state)
{
    (void)state;
    td_edge_trace *trace = NULL;
    td_edge_trace_config config = td_edge_trace_defaults;
    config.ring_merges = 0;
    assert_int_equal(td_edge_trace_new(&config, &trace), TD_ERR_INVALID);
    assert_null(trace);
}

static void channels_are_named_and_cut_to_eight(void **state)
{
    (void)state;
    char longest[200];
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = 0;
    const char *names[] = {"pan", longest, "c", "d", "e", "f", "g", "h", "i"};
    td_edge_trace_config config = td_edge_trace_defaults;
    config.channels = TD_COUNT_OF(names);
    config.names = names;
    TD_AUTO(td_edge_trace) *trace = NULL;
    assert_int_equal(td_edge_trace_new(&config, &trace), TD_OK);
    td_edge_traced traced = td_edge_trace_read(trace);
    assert_int_equal(traced.robot_channels, 9);
    assert_int_equal(traced.channels, 8);
    assert_string_equal(traced.names[0], "pan");
    assert_int_equal(strlen(traced.names[1]), TD_EDGE_TRACE_NAME_BYTES - 1);
    assert_string_equal(traced.names[7], "h");

    config.names = NULL;
    TD_AUTO(td_edge_trace) *bare = NULL;
    assert_int_equal(td_edge_trace_new(&config, &bare), TD_OK);
    assert_string_equal(td_edge_trace_read(bare).names[7], "channel 7");
}

struct pushers {
    td_edge_trace *trace;
    _Atomic int running;
};

static void push_ticks(void *user)
{
    struct pushers *pushers = user;
    for (uint64_t i = 0; i < STRESS_RECORDS; i++)
        push_tick(pushers->trace, i);
    atomic_fetch_sub(&pushers->running, 1);
}

static void push_merges(void *user)
{
    struct pushers *pushers = user;
    for (uint64_t i = 0; i < STRESS_RECORDS; i++)
        push_merge(pushers->trace, i);
    atomic_fetch_sub(&pushers->running, 1);
}

static td_thread *start(void (*run)(void *user), struct pushers *pushers)
{
    const td_thread_config config = {.name = "pusher", .cpu = -1};
    td_thread *thread = NULL;
    assert_int_equal(td_thread_start(&config, run, pushers, &thread, NULL),
                     TD_OK);
    return thread;
}

static void three_threads_lose_nothing_uncounted(void **state)
{
    (void)state;
    TD_AUTO(td_edge_trace) *trace = new_trace(64, STRESS_RECORDS);
    struct pushers pushers = {.trace = trace, .running = 2};
    td_thread *ticks = start(push_ticks, &pushers);
    td_thread *merges = start(push_merges, &pushers);
    while (atomic_load(&pushers.running)) {
        td_edge_trace_drain(trace);
        sched_yield();
    }
    td_thread_join(ticks);
    td_thread_join(merges);
    td_edge_trace_drain(trace);

    td_edge_traced traced = td_edge_trace_read(trace);
    assert_int_equal(traced.tick_count + traced.ticks_dropped, STRESS_RECORDS);
    assert_int_equal(traced.merge_count + traced.merges_dropped,
                     STRESS_RECORDS);
    for (size_t i = 1; i < traced.tick_count; i++)
        assert_true(traced.ticks[i].cursor > traced.ticks[i - 1].cursor);
    for (size_t i = 1; i < traced.merge_count; i++)
        assert_true(traced.merges[i].seq > traced.merges[i - 1].seq);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drain_keeps_the_order),
        cmocka_unit_test(full_ring_drops_the_newest_and_counts),
        cmocka_unit_test(what_comes_past_the_limit_is_counted),
        cmocka_unit_test(undrained_trace_reads_as_empty),
        cmocka_unit_test(ring_without_room_is_refused),
        cmocka_unit_test(channels_are_named_and_cut_to_eight),
        cmocka_unit_test(three_threads_lose_nothing_uncounted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
