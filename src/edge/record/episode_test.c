// SPDX-License-Identifier: Apache-2.0
// What is recorded of a robot at work.
#include "edge/edge_fixture.h"
#include "edge/record/episode_writer_fixture.h"

static memory_store stored;
static _Atomic bool blocked, inside; // an add

static int setup(void **state)
{
    if (world_setup(state) != 0) return -1;
    world *w = *state;
    memset(&stored, 0, sizeof stored);
    stored.cameras = 2;
    w->config.record = store_sink(&stored);
    w->config.record_begin = true;
    return 0;
}

static int teardown(void **state)
{
    atomic_store(&blocked, false); // a failed test left it so
    return world_teardown(state);
}

// On a busy machine some are held or lost.
static size_t played_frames(void)
{
    size_t played = 0;
    for (size_t i = 0; i < stored.count; i++)
        played += !stored.frames[i].lost && !stored.frames[i].done.held;
    return played;
}

static bool has_recorded_hundred(world *w)
{
    (void)w;
    return played_frames() >= 100;
}

static void stream(world *w)
{
    (void)fake_server_open(w, 0, "gpu-1");
    world_stream(w);
    world_until(w, has_recorded_hundred);
}

static void finish(world *w)
{
    world_stop(w);
    world_close(w);
}

// Row k of a chunk is the step's number, so that no step is missing or twice.
static void assert_every_step_is_recorded(void)
{
    float last = -1;
    for (size_t i = 0; i < stored.count; i++) {
        const stored_frame *frame = &stored.frames[i];
        if (frame->lost || frame->done.held) continue;
        assert_true(frame->action == last + 1);
        assert_true(frame->done.chunk > 0 && frame->done.step >= 0);
        assert_true(frame->done.step < ROWS && frame->done.age_s >= 0);
        last = frame->action;
    }
    assert_true(last >= 99);
}

static void what_was_played_is_recorded(void **state)
{
    world *w = *state;
    stream(w);
    assert_int_equal(w->report.record.state, TD_EDGE_RECORD_RECORDING);
    finish(w);
    assert_every_step_is_recorded();
    assert_string_equal(stored.frames[0].task, "wave");
    assert_int_equal(stored.saved, 1);
    assert_int_equal(stored.closed, 1);
}

static void a_robot_that_blocks_for_ever_costs_no_episode(void **state)
{
    world *w = *state;
    stream(w);
    world_block_driver(w, true);
    world_block_camera(w, 0);
    world_until(w, is_blocked);
    world_stop(w);
    assert_false(td_edge_end(w->edge, 0));
    assert_every_step_is_recorded();
    assert_int_equal(stored.saved, 1);
    assert_int_equal(stored.closed, 1);
}

static bool has_recorded_lost(world *w)
{
    static float state[CHANNELS];
    td_clock_sleep_until(td_clock_monotonic_ns() +
                         3 * w->config.core.period_ns);
    td_edge_step step = td_edge_pull(w->edge, state);
    if (step.command) memcpy(state, step.command, sizeof state);
    for (size_t i = 0; i < stored.count; i++)
        if (stored.frames[i].lost) return true;
    return false;
}

static void periods_that_a_host_misses_are_lost_rows(void **state)
{
    world *w = *state;
    w->config.pull = true;
    (void)fake_server_open(w, 0, "gpu-1");
    world_open(w);
    world_run(w);
    world_until(w, has_recorded_lost);
    finish(w);
}

static void a_faster_control_rate_makes_no_more_rows(void **state)
{
    world *w = *state;
    w->config.core.substeps = 4;
    stream(w);
    finish(w);
    assert_every_step_is_recorded();
}

static bool has_missed_hundred(world *w)
{
    return w->report.record.missing[0] >= 100;
}

static void a_camera_that_fails_is_missing_in_the_frames(void **state)
{
    world *w = *state;
    world_break_camera(w, 0);
    stream(w);
    world_until(w, has_missed_hundred);
    finish(w);
    for (size_t i = 0; i < stored.count; i++)
        assert_int_equal(stored.frames[i].pictures[0], 0);
}

static size_t count_before;
static bool has_recorded_more(world *w)
{
    (void)w;
    return played_frames() >= count_before + 100;
}

static bool has_saved_two(world *w)
{
    (void)w;
    return stored.saved >= 2;
}

static void a_reset_begins_the_next_episode(void **state)
{
    world *w = *state;
    stream(w);
    assert_int_equal(td_edge_reset(w->edge, "", NULL), TD_OK);
    count_before = played_frames();
    world_until(w, has_recorded_more);
    assert_int_equal(td_edge_reset(w->edge, "", NULL), TD_OK);
    world_until(w, has_saved_two);
    finish(w);
    assert_true(stored.frames[stored.count - 1].episode >= 1);
}

static bool has_stopped_recording(world *w)
{
    return w->report.record.state == TD_EDGE_RECORD_STOPPED;
}

static uint64_t fresh_before;
static bool plays_on(world *w)
{
    return w->report.counts.fresh > fresh_before + 100;
}

static void a_disk_that_fails_stops_no_robot(void **state)
{
    world *w = *state;
    stored.fail_add = TD_ERR_IO;
    (void)fake_server_open(w, 0, "gpu-1");
    world_stream(w);
    world_until(w, has_stopped_recording);
    fresh_before = w->report.counts.fresh;
    world_until(w, plays_on);
    td_errinfo info = {.text = ""};
    assert_int_equal(td_edge_episode(w->edge, TD_EDGE_EPISODE_BEGIN, &info),
                     TD_ERR_IO);
    assert_non_null(strstr(info.text, "the store broke"));
}

static void a_start_that_cannot_record_is_refused(void **state)
{
    world *w = *state;
    stored.fail_begin = TD_ERR_FULL;
    assert_int_equal(td_edge_open(w->net, w->robot, &w->config, &w->edge, NULL),
                     TD_ERR_FULL);
    assert_null(w->edge);
    assert_int_equal(stored.closed, 1);
}

static void an_edge_that_does_not_open_closes_the_dataset(void **state)
{
    world *w = *state;
    w->config.core.channels = 0;
    assert_int_equal(td_edge_open(w->net, w->robot, &w->config, &w->edge, NULL),
                     TD_ERR_INVALID);
    assert_int_equal(stored.closed, 1);
}

static void a_robot_that_records_nothing_says_so(void **state)
{
    world *w = *state;
    w->config.record = (td_edge_episode_sink){0};
    world_open(w);
    assert_int_equal(td_edge_episode(w->edge, TD_EDGE_EPISODE_BEGIN, NULL),
                     TD_ERR_UNSUPPORTED);
    td_edge_report_get(w->edge, &w->report);
    assert_int_equal(w->report.record.state, TD_EDGE_RECORD_OFF);
}

// Another program's order.
static char answer[64];
static _Atomic bool answered;

static void on_answer(void *user, const td_net_sample *sample)
{
    (void)user;
    size_t size = sample->head.size;
    if (size >= sizeof answer) size = sizeof answer - 1;
    memcpy(answer, sample->head.data, size);
    answer[size] = 0;
}

static void on_answered(void *user)
{
    world *w = user;
    atomic_store(&answered, true);
    td_event_signal(&w->wake);
}

static bool has_answer(world *w)
{
    (void)w;
    return atomic_load(&answered);
}

static void order(world *w, const char *word)
{
    char key[TD_WIRE_MAX_KEY];
    world_key(w, w->config.client, "episode", key);
    atomic_store(&answered, false);
    assert_int_equal(
        td_net_query(w->stranger, key, (td_slice){word, strlen(word)},
                     30 * TD_NS_PER_S, on_answer, on_answered, w, NULL),
        TD_OK);
    world_until(w, has_answer);
}

static void another_program_may_end_an_episode(void **state)
{
    world *w = *state;
    stream(w);
    order(w, "end");
    assert_string_equal(answer, TD_EDGE_EPISODE_OK);
    assert_int_equal(stored.saved, 1);
    order(w, "end");
    assert_string_equal(answer, "no episode is being recorded");
    order(w, "jump");
    assert_string_equal(answer, "must be begin, end, discard, next or again");
}

static _Atomic uint32_t replies;

static td_err add_unless_blocked(void *user, const td_dataset_frame *frame,
                                 td_errinfo *info)
{
    atomic_store(&inside, true);
    while (atomic_load(&blocked))
        td_clock_sleep_until(td_clock_monotonic_ns() + TD_NS_PER_MS);
    return store_add(user, frame, info);
}

static bool is_inside(world *w)
{
    (void)w;
    return atomic_load(&inside);
}

static void on_replied(void *user)
{
    world *w = user;
    atomic_fetch_add(&replies, 1);
    td_event_signal(&w->wake);
}

#define ORDERS 100
#define MOST_WAITING 16 // as recorder.c has it

static bool has_dropped_orders(world *w)
{
    return w->report.inbox_full == ORDERS - MOST_WAITING;
}

static bool has_all_replies(world *w)
{
    (void)w;
    return atomic_load(&replies) == ORDERS;
}

static void orders_without_room_are_counted(void **state)
{
    world *w = *state;
    char key[TD_WIRE_MAX_KEY];
    world_key(w, w->config.client, "episode", key);
    w->config.record.add = add_unless_blocked;
    atomic_store(&replies, 0);
    atomic_store(&blocked, true);
    (void)fake_server_open(w, 0, "gpu-1");
    world_stream(w);
    world_until(w, is_inside);
    for (int i = 0; i < ORDERS; i++)
        assert_int_equal(td_net_query(w->stranger, key, (td_slice){"jump", 4},
                                      30 * TD_NS_PER_S, on_answer, on_replied,
                                      w, NULL),
                         TD_OK);
    world_until(w, has_dropped_orders);
    atomic_store(&blocked, false);
    world_until(w, has_all_replies);
}

// The policy sees something else than where the joints are.
static td_err policy_state_read(void *user, float *ret_state, uint32_t channels)
{
    (void)user;
    for (uint32_t i = 0; i < channels; i++)
        ret_state[i] = 77;
    return TD_OK;
}

static void what_the_policy_sees_is_the_state(void **state)
{
    world *w = *state;
    w->config.core.policy_states = 1;
    w->config.observe_state = policy_state_read;
    w->config.profile.state_count = 1;
    stream(w);
    finish(w);
    assert_true(stored.count >= 100);
    for (size_t i = 0; i < stored.count; i++)
        assert_true(stored.frames[i].state == 77);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(what_was_played_is_recorded),
        TEST(a_robot_that_blocks_for_ever_costs_no_episode),
        TEST(periods_that_a_host_misses_are_lost_rows),
        TEST(a_faster_control_rate_makes_no_more_rows),
        TEST(a_camera_that_fails_is_missing_in_the_frames),
        TEST(a_reset_begins_the_next_episode),
        TEST(a_disk_that_fails_stops_no_robot),
        TEST(a_start_that_cannot_record_is_refused),
        TEST(an_edge_that_does_not_open_closes_the_dataset),
        TEST(a_robot_that_records_nothing_says_so),
        TEST(another_program_may_end_an_episode),
        TEST(orders_without_room_are_counted),
        TEST(what_the_policy_sees_is_the_state),
    };
    return cmocka_run_group_tests_name("edge/episode", tests, NULL, NULL);
}
