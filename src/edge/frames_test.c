// SPDX-License-Identifier: Apache-2.0
#include "edge/edge_fixture.h"
#include "robot/synthetic/frame.h"
#include "robot/synthetic/synthetic.h"

#define MAX_FRAME_BYTES (96 * 128 * 3)

static void want_top(td_wire_status *status)
{
    status->cameras[0] = (td_wire_camera){td_wire_text_of("top"), 48, 64};
}

static void want_both(td_wire_status *status)
{
    status->cameras[1] = (td_wire_camera){td_wire_text_of("top"), 48, 64};
    status->camera_count = 2;
}

static uint32_t shown;      // images in the newest observation
static bool in_place;       // each of its frames was taken where it came out
static uint64_t counter[2]; // of their newest frames, and one

// The frame that this counter belongs to, whole.
static void assert_frame(const td_wire_image *image, uint64_t number)
{
    static uint8_t expected[MAX_FRAME_BYTES];
    td_robot_synthetic_frame frame;
    assert_true(image->size <= sizeof expected);
    assert_int_equal(
        td_robot_synthetic_frame_init(&frame, image->shape[0], image->shape[1]),
        TD_OK);
    td_robot_synthetic_frame_render(&frame, number, expected);
    assert_memory_equal(image->data, expected, image->size);
    td_robot_synthetic_frame_done(&frame);
}

static void assert_newer_frame(const td_wire_image *image)
{
    size_t camera = td_wire_text_is(image->name, "top") ? 0 : 1;
    uint64_t number = 0;
    assert_int_equal(image->codec, TD_WIRE_RAW);
    assert_int_equal(td_robot_synthetic_counter(image->data, image->shape[0],
                                                image->shape[1], &number),
                     TD_OK);
    assert_true(number >= counter[camera]);
    counter[camera] = number + 1;
    assert_frame(image, number);
}

static void look_at_frames(world *w, const td_wire_obs *obs)
{
    shown = obs->image_count;
    in_place = true;
    for (uint32_t i = 0; i < obs->image_count; i++) {
        assert_newer_frame(&obs->images[i]);
        in_place &= world_has_frame_at(w, obs->images[i].data);
    }
}

static void open_raw(world *w, void (*edit_status)(td_wire_status *status))
{
    counter[0] = counter[1] = 0;
    w->config.raw_images = true;
    puppet *p = puppet_open(w, 0, "gpu-1");
    p->edit_status = edit_status;
    p->see = look_at_frames;
}

// In this process a lent message is received where it was written.
static void assert_frames_arrive(world *w,
                                 void (*edit_status)(td_wire_status *status),
                                 uint32_t images, bool lent)
{
    open_raw(w, edit_status);
    world_stream(w);
    world_until(w, has_merged_twenty);
    assert_int_equal(shown, images);
    assert_int_equal(in_place, lent);
    assert_int_equal(w->report.frame_failed, 0);
}

static void a_raw_frame_is_taken_into_the_message(void **state)
{
    assert_frames_arrive(*state, NULL, 1, true);
}

static void every_raw_frame_is_taken_into_its_place(void **state)
{
    assert_frames_arrive(*state, want_both, 2, true);
}

static void a_raw_frame_that_is_not_worth_a_loan_arrives_too(void **state)
{
    assert_frames_arrive(*state, want_top, 1, false);
}

static bool has_failed_often(world *w)
{
    return w->report.frame_failed >= 3;
}

static void a_frame_that_fails_half_way_sends_nothing(void **state)
{
    world *w = *state;
    w->config.core.ask.resend_min_ns = TD_NS_PER_MS;
    w->config.core.ask.resend_max_ns = TD_NS_PER_MS;
    open_raw(w, want_both);
    world_break_camera(w, 1);
    world_stream(w);
    world_until(w, has_failed_often);
    assert_int_equal(w->puppets[0].observations, 0);
    assert_int_equal(w->report.counts.sent, 0);
    world_break_camera(w, -1);
    world_until(w, has_merged_twenty);
    assert_int_equal(shown, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(a_raw_frame_is_taken_into_the_message),
        WORLD_TEST(every_raw_frame_is_taken_into_its_place),
        WORLD_TEST(a_raw_frame_that_is_not_worth_a_loan_arrives_too),
        WORLD_TEST(a_frame_that_fails_half_way_sends_nothing),
    };
    return cmocka_run_group_tests_name("edge/frames", tests, NULL, NULL);
}
