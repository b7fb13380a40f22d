// SPDX-License-Identifier: Apache-2.0
#include "edge/record/episode_writer_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define PERIOD_NS (100 * TD_NS_PER_MS)

static memory_store stored;
static td_clock_virtual clock_ns;
static td_edge_episode_writer *writer;
static uint64_t robot_episode;

// A camera whose picture is there from the beginning on, or never.
static uint8_t pixels[3];
static td_edge_frame *picture;
static bool is_handed;

static bool next(void *user, td_edge_arrival *ret_taken)
{
    (void)user;
    if (is_handed) return false;
    is_handed = true;
    *ret_taken = (td_edge_arrival){1, picture};
    return true;
}

static void give_back(void *user, td_edge_frame *frame)
{
    (void)user;
    assert_ptr_equal(frame, picture);
}

static int setup(void **state)
{
    (void)state;
    memset(&stored, 0, sizeof stored);
    stored.cameras = 1;
    stored.clock = &clock_ns;
    td_clock_virtual_init(&clock_ns, 1);
    picture = calloc(1, sizeof *picture);
    picture->captured_ns = 1;
    picture->bytes = pixels;
    pixels[0] = 42;
    is_handed = false;
    robot_episode = 1;
    const td_edge_episode_writer_config config = {
        .states = 1,
        .channels = 1,
        .period_ns = PERIOD_NS,
        .camera_count = 1,
        .camera_names = {td_wire_text_of("top")},
        .camera_period_ns = {1000 * TD_NS_PER_S},
        .camera_bytes = {3},
        .cameras = {{NULL, next, give_back}},
        .sink = store_sink(&stored),
        .clock = &clock_ns.clock,
    };
    return td_edge_episode_writer_new(&config, &writer) == TD_OK ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    if (writer) td_edge_episode_writer_free(TD_TAKE(writer));
    free(TD_TAKE(picture));
    return 0;
}

static int64_t now(void)
{
    return td_clock_now_ns(&clock_ns.clock);
}

// A period later, with the number as its state and action.
static void add(float number, const td_edge_row *row)
{
    td_clock_virtual_advance_to(&clock_ns, now() + PERIOD_NS);
    td_edge_row *made = calloc(1, sizeof *made + 2 * sizeof(float));
    assert_non_null(made);
    *made = *row;
    made->seen_ns = now();
    made->episode = robot_episode;
    made->values[0] = number;
    made->values[1] = -number;
    td_edge_episode_writer_row(writer, made, "wave");
    free(made);
}

static void play(float number)
{
    add(number,
        &(td_edge_row){.chunk = 4, .step = 2, .age_ns = TD_NS_PER_S / 2});
}

static void begin(void)
{
    assert_int_equal(td_edge_episode_writer_begin(writer, NULL), TD_OK);
}

static void end(bool keep)
{
    assert_int_equal(td_edge_episode_writer_end(writer, keep, NULL), TD_OK);
}

static td_edge_record_state state_now(void)
{
    return td_edge_episode_writer_status(writer).state;
}

static void a_row_becomes_a_frame(void **state)
{
    (void)state;
    begin();
    play(1);
    const stored_frame *frame = &stored.frames[0];
    assert_int_equal(stored.count, 1);
    assert_true(frame->state == 1 && frame->action == -1);
    assert_string_equal(frame->task, "wave");
    assert_int_equal(frame->pictures[0], 42);
    assert_int_equal(frame->done.chunk, 4);
    assert_int_equal(frame->done.step, 2);
    assert_true(frame->done.age_s == 0.5F);
    assert_false(frame->done.held || frame->lost);
}

static void a_cameras_jpeg_is_recorded_as_it_is(void **state)
{
    (void)state;
    picture->jpeg = 2;
    begin();
    play(1);
    assert_int_equal(stored.frames[0].jpeg[0], 2);
    assert_int_equal(stored.frames[0].pictures[0], 42);
    assert_int_equal(td_edge_episode_writer_status(writer).missing[0], 0);
}

static void a_jpeg_that_cannot_be_decoded_is_counted(void **state)
{
    (void)state;
    picture->jpeg = 2;
    stored.spoils_jpeg = true;
    begin();
    play(1);
    play(2);
    assert_int_equal(td_edge_episode_writer_status(writer).missing[0], 2);
}

static void a_command_is_answered_with_what_was_done(void **state)
{
    (void)state;
    begin();
    play(1);
    add(2, &(td_edge_row){.clamped = true});
    add(3, &(td_edge_row){.held = true, .failsafe = true, .chunk = 9});
    assert_true(stored.frames[1].done.clamped);
    const td_dataset_done *held = &stored.frames[2].done;
    assert_true(held->held && held->failsafe);
    assert_true(held->chunk == -1 && held->step == -1 && held->age_s == -1);
}

static void nothing_is_recorded_outside_an_episode(void **state)
{
    (void)state;
    play(1);
    begin();
    play(2);
    end(true);
    play(3);
    begin();
    play(4);
    end(true);
    assert_int_equal(stored.count, 2);
    assert_true(stored.frames[0].state == 2 && stored.frames[1].state == 4);
    assert_int_equal(stored.frames[1].episode, 1);
    assert_int_equal(td_edge_episode_writer_status(writer).episodes, 2);
}

static void an_episode_starts_with_the_first_action(void **state)
{
    (void)state;
    begin();
    add(1, &(td_edge_row){.held = true});
    play(2);
    add(3, &(td_edge_row){.held = true});
    assert_int_equal(stored.count, 2);
    assert_true(stored.frames[0].state == 2);
}

static void an_episode_in_which_nothing_was_played_is_none(void **state)
{
    (void)state;
    begin();
    end(true);
    assert_int_equal(td_edge_episode_writer_status(writer).episodes, 0);
    assert_int_equal(state_now(), TD_EDGE_RECORD_WAITING);
}

static void a_discarded_episode_is_not_saved(void **state)
{
    (void)state;
    begin();
    play(1);
    end(false);
    assert_int_equal(stored.discarded, 1);
    assert_int_equal(stored.saved, 0);
}

static void commands_at_the_wrong_time_are_refused(void **state)
{
    (void)state;
    assert_int_equal(td_edge_episode_writer_end(writer, true, NULL),
                     TD_ERR_EMPTY);
    begin();
    assert_int_equal(td_edge_episode_writer_begin(writer, NULL), TD_ERR_EXISTS);
    assert_int_equal(state_now(), TD_EDGE_RECORD_RECORDING);
}

static void a_reset_of_the_robot_is_a_new_episode(void **state)
{
    (void)state;
    begin();
    play(1);
    robot_episode++;
    play(2);
    play(3);
    assert_int_equal(stored.saved, 1);
    assert_int_equal(stored.begun, 2);
    assert_int_equal(stored.count, 3);
    assert_int_equal(stored.frames[1].episode, 1);
    assert_int_equal(td_edge_episode_writer_status(writer).between, 0);
}

// The next one begins when the disk is ready for it, and that is reported.
static void what_is_played_while_an_episode_is_saved_is_counted(void **state)
{
    (void)state;
    begin();
    play(1);
    robot_episode++;
    stored.end_ns = 1;
    play(2);
    stored.end_ns = 0;
    play(3);
    assert_int_equal(stored.count, 2);
    assert_true(stored.frames[1].state == 3);
    assert_int_equal(td_edge_episode_writer_status(writer).between, 1);
}

static void a_lost_row_is_a_frame_that_says_so(void **state)
{
    (void)state;
    begin();
    add(1, &(td_edge_row){.lost = 5}); // before the episode
    add(2, &(td_edge_row){.lost = 2});
    assert_int_equal(stored.count, 4);
    assert_true(stored.frames[1].lost && stored.frames[2].lost);
    assert_int_equal(stored.frames[1].pictures[0], 0);
    assert_false(stored.frames[3].lost);
    assert_int_equal(td_edge_episode_writer_status(writer).lost, 2);
}

static void a_long_gap_is_the_end_of_an_episode(void **state)
{
    (void)state;
    begin();
    play(1);
    add(2, &(td_edge_row){.lost = 101});
    play(3);
    assert_int_equal(stored.saved, 1);
    assert_false(stored.frames[1].lost);
    assert_int_equal(stored.frames[1].episode, 1);
    assert_int_equal(td_edge_episode_writer_status(writer).lost, 101);
}

static void what_was_lost_before_a_reset_is_counted(void **state)
{
    (void)state;
    begin();
    play(1);
    robot_episode++;
    add(2, &(td_edge_row){.lost = 3});
    assert_int_equal(stored.count, 2);
    assert_int_equal(td_edge_episode_writer_status(writer).lost, 3);
}

// As the recorder obeys: the row was played after the order, before its end.
static void what_is_played_while_an_order_is_obeyed_is_counted(void **state)
{
    (void)state;
    begin();
    play(1);
    stored.end_ns = 2 * PERIOD_NS;
    end(true);
    begin();
    td_clock_virtual_init(&clock_ns, now() - 2 * PERIOD_NS);
    play(2);
    assert_int_equal(stored.count, 1);
    assert_int_equal(td_edge_episode_writer_status(writer).between, 1);
}

static void a_missing_picture_is_counted(void **state)
{
    (void)state;
    picture->captured_ns = -INT64_C(4000) * TD_NS_PER_S;
    begin();
    play(1);
    assert_int_equal(stored.frames[0].pictures[0], 0);
    assert_int_equal(td_edge_episode_writer_status(writer).missing[0], 1);
}

static const struct {
    const char *name;
    size_t offset; // of what fails
    td_err err;
} faults[] = {
    {"begin", offsetof(memory_store, fail_begin), TD_ERR_IO},
    {"add", offsetof(memory_store, fail_add), TD_ERR_IO},
    {"end", offsetof(memory_store, fail_end), TD_ERR_IO},
    {"full", offsetof(memory_store, fail_add), TD_ERR_FULL},
};

// One good episode, then one in which something fails.
static void what_fails_stops_the_recording_alone(void **state)
{
    for (size_t i = 0; i < TD_COUNT_OF(faults); i++) {
        td_errinfo info = {.text = ""};
        begin();
        play(1);
        end(true);
        memcpy((char *)&stored + faults[i].offset, &faults[i].err,
               sizeof faults[i].err);
        td_err err = td_edge_episode_writer_begin(writer, NULL);
        play(2);
        play(3);
        if (err == TD_OK) err = td_edge_episode_writer_end(writer, true, &info);
        play(4);
        if (err != faults[i].err || stored.saved != 1 ||
            state_now() != TD_EDGE_RECORD_STOPPED || stored.closed != 1)
            fail_msg("%s: %s, %u saved", faults[i].name, td_err_name(err),
                     stored.saved);
        assert_int_equal(td_edge_episode_writer_begin(writer, &info),
                         faults[i].err);
        assert_non_null(strstr(info.text, "the store broke"));
        teardown(state);
        assert_int_equal(stored.closed, 1);
        setup(state);
    }
}

static void a_full_disk_saves_what_there_is(void **state)
{
    (void)state;
    begin();
    play(1);
    stored.fail_add = TD_ERR_FULL;
    play(2);
    assert_int_equal(stored.saved, 1);
    assert_int_equal(stored.count, 1);
    assert_int_equal(state_now(), TD_EDGE_RECORD_STOPPED);
}

static void the_end_of_the_run_saves_the_episode(void **state)
{
    (void)state;
    begin();
    play(1);
    td_edge_episode_writer_free(TD_TAKE(writer));
    assert_int_equal(stored.saved, 1);
    assert_int_equal(stored.closed, 1);
}

static void what_fits_on_the_disk_is_estimated_from_the_rate(void **state)
{
    (void)state;
    begin();
    assert_true(td_edge_episode_writer_status(writer).room_s == -1);
    stored.bytes = 1000;
    stored.free_bytes = 5000;
    for (int i = 0; i < 20; i++) // two seconds
        play(1);
    assert_true(td_edge_episode_writer_status(writer).room_s == 10);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_row_becomes_a_frame),
        TEST(a_command_is_answered_with_what_was_done),
        TEST(nothing_is_recorded_outside_an_episode),
        TEST(an_episode_starts_with_the_first_action),
        TEST(an_episode_in_which_nothing_was_played_is_none),
        TEST(a_discarded_episode_is_not_saved),
        TEST(commands_at_the_wrong_time_are_refused),
        TEST(a_reset_of_the_robot_is_a_new_episode),
        TEST(what_is_played_while_an_episode_is_saved_is_counted),
        TEST(a_lost_row_is_a_frame_that_says_so),
        TEST(a_long_gap_is_the_end_of_an_episode),
        TEST(what_was_lost_before_a_reset_is_counted),
        TEST(what_is_played_while_an_order_is_obeyed_is_counted),
        TEST(a_missing_picture_is_counted),
        TEST(a_cameras_jpeg_is_recorded_as_it_is),
        TEST(a_jpeg_that_cannot_be_decoded_is_counted),
        TEST(what_fails_stops_the_recording_alone),
        TEST(a_full_disk_saves_what_there_is),
        TEST(the_end_of_the_run_saves_the_episode),
        TEST(what_fits_on_the_disk_is_estimated_from_the_rate),
    };
    return cmocka_run_group_tests_name("edge/episode_writer", tests, NULL,
                                       NULL);
}
