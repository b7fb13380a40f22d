// SPDX-License-Identifier: Apache-2.0
#include "edge/record/recorder.h"

#include "base/sync/thread.h"
#include "edge/record/episode_writer_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define PERIOD_NS TD_NS_PER_S // so that the ring is short
#define RING 31
#define WAIT_NS (30 * TD_NS_PER_S)

static memory_store stored;
static td_edge_episode_sink sink;
static td_edge_recorder *recorder;
static _Atomic bool blocked, inside; // an add

static td_err add_unless_blocked(void *user, const td_dataset_frame *frame,
                                 td_errinfo *info)
{
    atomic_store(&inside, true);
    while (atomic_load(&blocked))
        td_clock_sleep_until(td_clock_monotonic_ns() + TD_NS_PER_MS);
    atomic_store(&inside, false);
    return store_add(user, frame, info);
}

static void tell_task(void *user, char ret_task[TD_DATASET_MAX_TASK])
{
    (void)user;
    memcpy(ret_task, "wave", sizeof "wave");
}

static int setup(void **state)
{
    (void)state;
    memset(&stored, 0, sizeof stored);
    sink = store_sink(&stored);
    sink.add = add_unless_blocked;
    atomic_store(&blocked, false);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    atomic_store(&blocked, false);
    if (recorder) td_edge_recorder_close(TD_TAKE(recorder));
    return 0;
}

static td_err open_recorder(bool begin)
{
    const td_edge_recorder_config config = {
        .writer =
            {
                .states = 1,
                .channels = 1,
                .period_ns = PERIOD_NS,
                .sink = sink,
                .clock = &td_clock_monotonic,
            },
        .substeps = 1,
        .begin = begin,
        .task = tell_task,
    };
    return td_edge_recorder_open(&config, &recorder, NULL);
}

static void begin_recorder(void)
{
    assert_int_equal(open_recorder(true), TD_OK);
}

static void tick(float number)
{
    static const td_edge_gate_hits no_hits;
    const td_edge_step step = {
        .command = &number, .hits = &no_hits, .fresh = true, .substep = 1};
    const td_edge_rows_tick seen = {.now_ns = td_clock_monotonic_ns(),
                                    .episode = 1,
                                    .state = &number,
                                    .step = &step};
    td_edge_recorder_tick(recorder, &seen);
}

static void tick_times(int count)
{
    for (int i = 0; i < count; i++)
        tick((float)i);
}

static td_err execute(td_edge_episode_command command)
{
    return td_edge_recorder_execute(recorder, command, NULL);
}

static void every_tick_until_the_end_is_recorded(void **state)
{
    (void)state;
    begin_recorder();
    tick_times(20);
    assert_int_equal(execute(TD_EDGE_EPISODE_END), TD_OK);
    assert_int_equal(stored.count, 20);
    for (int i = 0; i < 20; i++)
        assert_true(stored.frames[i].action == (float)i);
    assert_int_equal(stored.saved, 1);
}

static void nothing_is_recorded_before_the_begin(void **state)
{
    (void)state;
    assert_int_equal(open_recorder(false), TD_OK);
    assert_int_equal(td_edge_recorder_status(recorder).state,
                     TD_EDGE_RECORD_WAITING);
    tick_times(5);
    assert_int_equal(execute(TD_EDGE_EPISODE_BEGIN), TD_OK);
    tick_times(2);
    assert_int_equal(execute(TD_EDGE_EPISODE_END), TD_OK);
    assert_int_equal(stored.count, 2);
}

static void the_close_saves_the_episode(void **state)
{
    (void)state;
    begin_recorder();
    tick_times(3);
    td_edge_recorder_close(TD_TAKE(recorder));
    assert_int_equal(stored.count, 3);
    assert_int_equal(stored.saved, 1);
    assert_int_equal(stored.closed, 1);
}

static void each_order_does_what_its_word_says(void **state)
{
    static const struct {
        const char *word;
        td_err waiting, recording; // what it returns then
        uint32_t saved, discarded; // when it was recording
        td_edge_record_state after;
    } cases[] = {
        {"begin", TD_OK, TD_ERR_EXISTS, 0, 0, TD_EDGE_RECORD_RECORDING},
        {"end", TD_ERR_EMPTY, TD_OK, 1, 0, TD_EDGE_RECORD_WAITING},
        {"discard", TD_ERR_EMPTY, TD_OK, 0, 1, TD_EDGE_RECORD_WAITING},
        {"next", TD_OK, TD_OK, 1, 0, TD_EDGE_RECORD_RECORDING},
        {"again", TD_OK, TD_OK, 0, 1, TD_EDGE_RECORD_RECORDING},
        {"jump", TD_ERR_INVALID, TD_ERR_INVALID, 0, 0,
         TD_EDGE_RECORD_RECORDING},
    };
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        td_edge_episode_command command =
            td_edge_episode_command_find(cases[i].word, strlen(cases[i].word));
        assert_int_equal(open_recorder(false), TD_OK);
        td_err waiting = execute(command);
        teardown(state);
        setup(state);
        begin_recorder();
        tick(1);
        td_err recording = execute(command);
        if (waiting != cases[i].waiting || recording != cases[i].recording ||
            stored.saved != cases[i].saved ||
            stored.discarded != cases[i].discarded ||
            td_edge_recorder_status(recorder).state != cases[i].after)
            fail_msg("%s: %s, %s", cases[i].word, td_err_name(waiting),
                     td_err_name(recording));
        teardown(state);
        setup(state);
    }
}

static void a_begin_that_fails_fails_the_start(void **state)
{
    (void)state;
    stored.fail_begin = TD_ERR_IO;
    assert_int_equal(open_recorder(true), TD_ERR_IO);
    assert_null(recorder);
    assert_int_equal(stored.closed, 1);
}

static void wait_until(bool (*is_so)(void))
{
    int64_t until_ns = td_clock_monotonic_ns() + WAIT_NS;
    while (!is_so()) {
        if (td_clock_monotonic_ns() > until_ns) fail_msg("waited in vain");
        td_clock_sleep_until(td_clock_monotonic_ns() + TD_NS_PER_MS);
    }
}

static bool is_inside(void)
{
    return atomic_load(&inside);
}

static _Atomic int order_result; // -1: not yet

static void order_done(void *user, td_err err, const td_errinfo *why)
{
    (void)user;
    (void)why;
    atomic_store(&order_result, (int)err);
}

static bool is_ordered(void)
{
    return atomic_load(&order_result) >= 0;
}

static void a_disk_that_hangs_delays_no_tick(void **state)
{
    (void)state;
    begin_recorder();
    atomic_store(&blocked, true);
    atomic_store(&order_result, -1);
    tick(0);
    assert_int_equal(td_edge_recorder_submit(recorder, TD_EDGE_EPISODE_END,
                                             order_done, NULL),
                     TD_OK);
    wait_until(is_inside); // with the one row that it has taken
    tick_times(RING + 10);
    atomic_store(&blocked, false);
    wait_until(is_ordered);
    assert_int_equal(atomic_load(&order_result), TD_OK);
    assert_int_equal(stored.count, 1);
    assert_int_equal(stored.saved, 1);
}

// Whether the order is obeyed before or while it closes is chance.
static void an_end_before_the_close_has_no_later_row(void **state)
{
    for (int i = 0; i < 20; i++) {
        begin_recorder();
        tick(0);
        assert_int_equal(td_edge_recorder_submit(recorder, TD_EDGE_EPISODE_END,
                                                 order_done, NULL),
                         TD_OK);
        tick(1);
        td_edge_recorder_close(TD_TAKE(recorder));
        assert_int_equal(stored.count, 1);
        assert_int_equal(stored.saved, 1);
        setup(state);
    }
}

static size_t lost_frames(void)
{
    size_t lost = 0;
    for (size_t i = 0; i < stored.count; i++)
        lost += stored.frames[i].lost;
    return lost;
}

// An invalid command makes room.
static void what_found_no_room_is_in_the_dataset_as_lost(void **state)
{
    (void)state;
    begin_recorder();
    atomic_store(&blocked, true);
    tick_times(RING + 10); // of which one may be on its way to the disk
    atomic_store(&blocked, false);
    assert_int_equal(execute(TD_EDGE_EPISODE_COUNT), TD_ERR_INVALID);
    tick(1);
    assert_int_equal(execute(TD_EDGE_EPISODE_END), TD_OK);
    assert_int_equal(stored.count, RING + 10 + 1);
    assert_true(lost_frames() >= 9);
    assert_int_equal(td_edge_recorder_status(recorder).lost, lost_frames());
}

static _Atomic bool ticks_are_over;

static void tick_on(void *user)
{
    (void)user;
    tick_times(200);
    atomic_store(&ticks_are_over, true);
}

static void orders_may_come_while_ticks_run(void **state)
{
    const td_thread_config config = {.name = "ticks", .cpu = -1};
    td_thread *thread = NULL;
    (void)state;
    atomic_store(&ticks_are_over, false);
    begin_recorder();
    assert_int_equal(td_thread_start(&config, tick_on, NULL, &thread, NULL),
                     TD_OK);
    while (!atomic_load(&ticks_are_over))
        assert_int_equal(execute(TD_EDGE_EPISODE_NEXT), TD_OK);
    td_thread_join(thread);
    assert_int_equal(execute(TD_EDGE_EPISODE_END), TD_OK);
    assert_int_equal(td_edge_recorder_status(recorder).episodes, stored.saved);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(every_tick_until_the_end_is_recorded),
        TEST(nothing_is_recorded_before_the_begin),
        TEST(the_close_saves_the_episode),
        TEST(each_order_does_what_its_word_says),
        TEST(a_begin_that_fails_fails_the_start),
        TEST(a_disk_that_hangs_delays_no_tick),
        TEST(an_end_before_the_close_has_no_later_row),
        TEST(what_found_no_room_is_in_the_dataset_as_lost),
        TEST(orders_may_come_while_ticks_run),
    };
    return cmocka_run_group_tests_name("edge/recorder", tests, NULL, NULL);
}
