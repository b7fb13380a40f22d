// SPDX-License-Identifier: Apache-2.0
#include "edge/edge_fixture.h"
#include "robot/synthetic/frame.h"
#include "robot/synthetic/synthetic.h"

#include <stdlib.h>

#define HEIGHT 96
#define WIDTH 128
#define FRAME_BYTES (HEIGHT * WIDTH * 3)

static void want_top(td_wire_status *status)
{
    status->cameras[0] = (td_wire_camera){td_wire_text_of("top"), 48, 64};
}

static void want_both(td_wire_status *status)
{
    status->cameras[1] = (td_wire_camera){td_wire_text_of("top"), 48, 64};
    status->camera_count = 2;
}

static void want_half(td_wire_status *status)
{
    status->cameras[0].height = HEIGHT / 2;
    status->cameras[0].width = WIDTH / 2;
}

static uint32_t shown;      // images in the newest observation
static uint64_t counter[2]; // of their newest frames
static uint64_t enough;     // for the predicates below

static void render(uint64_t number, uint32_t height, uint32_t width,
                   uint8_t *ret_rgb)
{
    td_robot_synthetic_frame frame;
    assert_int_equal(td_robot_synthetic_frame_init(&frame, height, width),
                     TD_OK);
    td_robot_synthetic_frame_render(&frame, number, ret_rgb);
    td_robot_synthetic_frame_done(&frame);
}

// Whole, and no older than the one before it.
static void assert_frame(const td_wire_image *image)
{
    static uint8_t expected[FRAME_BYTES];
    size_t camera = td_wire_text_is(image->name, "top") ? 0 : 1;
    uint64_t number = 0;
    assert_int_equal(image->codec, TD_WIRE_RAW);
    assert_true(image->size <= sizeof expected);
    assert_int_equal(td_robot_synthetic_counter(image->data, image->shape[0],
                                                image->shape[1], &number),
                     TD_OK);
    assert_true(number >= counter[camera]);
    counter[camera] = number;
    render(number, image->shape[0], image->shape[1], expected);
    assert_memory_equal(image->data, expected, image->size);
}

static void look_at_frames(world *w, const td_wire_obs *obs)
{
    (void)w;
    shown = obs->image_count;
    for (uint32_t i = 0; i < obs->image_count; i++)
        assert_frame(&obs->images[i]);
}

static void open_raw(world *w, void (*edit_status)(td_wire_status *status))
{
    counter[0] = counter[1] = 0;
    w->config.codec = TD_EDGE_CODEC_RAW;
    fake_server *p = fake_server_open(w, 0, "gpu-1");
    p->edit_status = edit_status;
    p->note_obs = look_at_frames;
}

static uint64_t stale(const world *w)
{
    return w->report.counts.skipped[TD_EDGE_SKIP_STALE];
}

static bool has_stale_enough(world *w)
{
    return stale(w) >= enough;
}

static uint64_t taken; // by the top's camera

static bool the_other_camera_goes_on(world *w)
{
    return w->report.cameras[0].taken > taken;
}

static bool has_sent_enough(world *w)
{
    return w->report.counts.sent >= enough;
}

static void assert_frames_arrive(world *w,
                                 void (*edit_status)(td_wire_status *status),
                                 uint32_t images)
{
    open_raw(w, edit_status);
    world_stream(w);
    world_until(w, has_merged_twenty);
    assert_int_equal(shown, images);
    assert_int_equal(w->report.counts.skipped[TD_EDGE_SKIP_FAILED], 0);
}

static void a_raw_frame_arrives_in_a_loan(void **state)
{
    assert_frames_arrive(*state, NULL, 1);
}

static void every_raw_frame_arrives(void **state)
{
    assert_frames_arrive(*state, want_both, 2);
}

static void a_raw_frame_that_is_not_worth_a_loan_arrives_too(void **state)
{
    assert_frames_arrive(*state, want_top, 1);
}

static void the_time_between_each_frame_and_its_state_is_recorded(void **state)
{
    world *w = *state;
    open_raw(w, want_both);
    world_stream(w);
    world_until(w, has_merged_twenty);
    world_stop(w); // an answer may be there before what it answers is counted
    td_edge_report_get(w->edge, &w->report);
    const td_hist *skew_ns = td_edge_times_get(w->edge).skew_ns;
    assert_int_equal(atomic_load(&skew_ns->count), 2 * w->report.counts.sent);
}

// Nothing is sent while the hand's camera has no new frame; the tick and the
// other camera do not wait for it.
static void assert_nothing_goes(world *w)
{
    enough = stale(w) + 1; // what was fresh before has gone
    world_until(w, has_stale_enough);
    td_edge_report before = w->report;
    enough = stale(w) + 20;
    world_until(w, has_stale_enough);
    taken = before.cameras[0].taken;
    world_until(w, the_other_camera_goes_on);
    const td_edge_report *after = &w->report;
    assert_int_equal(after->counts.sent, before.counts.sent);
    assert_true(after->counts.ticks > before.counts.ticks);
    assert_int_equal(after->cameras[1].taken, before.cameras[1].taken);
    assert_true(after->cameras[1].stale >= before.cameras[1].stale + 20);
}

static void assert_all_goes(world *w)
{
    enough = w->report.counts.sent + 20;
    world_until(w, has_sent_enough);
    assert_int_equal(shown, 2);
}

static void a_camera_that_fails_has_nothing_stale_sent(void **state)
{
    world *w = *state;
    open_raw(w, want_both);
    world_stream(w);
    assert_all_goes(w);
    world_break_camera(w, 1);
    assert_nothing_goes(w);
    assert_true(w->report.cameras[1].failed > 0);
    assert_int_equal(w->report.cameras[0].failed, 0);
    world_break_camera(w, -1);
    assert_all_goes(w);
}

static void a_camera_that_blocks_has_nothing_stale_sent(void **state)
{
    world *w = *state;
    open_raw(w, want_both);
    world_stream(w);
    assert_all_goes(w);
    world_block_camera(w, 1);
    assert_nothing_goes(w);
    world_block_camera(w, -1);
    assert_all_goes(w);
}

static void the_first_frame_is_waited_for(void **state)
{
    world *w = *state;
    open_raw(w, want_both);
    world_block_camera(w, 1);
    world_stream(w);
    assert_nothing_goes(w);
    assert_int_equal(w->report.counts.sent, 0);
    world_block_camera(w, -1);
    assert_all_goes(w);
}

static void a_camera_that_nobody_wants_may_block(void **state)
{
    world *w = *state;
    open_raw(w, want_top);
    world_block_camera(w, 1);
    world_stream(w);
    world_until(w, has_merged_twenty);
    assert_int_equal(w->report.cameras[1].taken, 0);
    assert_int_equal(w->report.cameras[1].stale, 0);
}

static bool is_accounted_for(world *w)
{
    const td_edge_report *report = &w->report;
    uint64_t ended = report->counts.sent + report->outbox_replaced;
    for (int i = 0; i < TD_EDGE_SKIP_COUNT; i++)
        ended += report->counts.skipped[i];
    return ended == report->counts.asked;
}

static void every_ask_is_accounted_for(void **state)
{
    world *w = *state;
    open_raw(w, want_both);
    world_stream(w);
    assert_all_goes(w);
    world_break_camera(w, 0);
    enough = stale(w) + 20;
    world_until(w, has_stale_enough);
    world_stop(w);
    world_until(w, is_accounted_for);
}

static uint64_t asked_before;

static bool has_asked_more(world *w)
{
    return w->report.counts.asked > asked_before + 2;
}

// What is asked for meanwhile goes with the first good reading.
static void an_ask_outlives_a_reading_that_fails(void **state)
{
    world *w = *state;
    open_raw(w, want_both);
    world_stream(w);
    world_until(w, has_merged_twenty);
    world_break_driver(w, true);
    asked_before = w->report.counts.asked;
    world_until(w, has_asked_more);
    world_break_driver(w, false);
    world_stop(w);
    world_until(w, is_accounted_for);
}

// The frame that this small one was made from is among those taken.
static void look_at_small_frame(world *w, const td_wire_obs *obs)
{
    static uint8_t frame[FRAME_BYTES], expected[FRAME_BYTES / 4];
    const td_wire_image *image = &obs->images[0];
    td_media_resizer *resizer = NULL;
    assert_int_equal(image->shape[0], HEIGHT / 2);
    assert_int_equal(image->shape[1], WIDTH / 2);
    assert_int_equal(image->size, sizeof expected);
    if (shown++ > 0) return;
    assert_int_equal(
        td_media_resizer_new((td_media_size){HEIGHT, WIDTH},
                             (td_media_size){HEIGHT / 2, WIDTH / 2}, &resizer),
        TD_OK);
    td_edge_report_get(w->edge, &w->report);
    bool found = false;
    for (uint64_t i = 0; i <= w->report.cameras[1].taken && !found; i++) {
        render(i, HEIGHT, WIDTH, frame);
        td_media_resize(resizer, frame, expected);
        found = memcmp(image->data, expected, sizeof expected) == 0;
    }
    td_media_resizer_free(resizer);
    assert_true(found);
}

static void a_smaller_picture_is_sent_where_one_is_wanted(void **state)
{
    world *w = *state;
    open_raw(w, want_half);
    w->fake_servers[0].note_obs = look_at_small_frame;
    w->config.profile.downscale = true;
    shown = 0;
    world_stream(w);
    world_until(w, has_merged_twenty);
    assert_true(shown >= 20);
}

static void a_smaller_picture_may_be_forbidden(void **state)
{
    world *w = *state;
    open_raw(w, want_half);
    world_open(w);
    world_run(w);
    world_until(w, has_returned);
    assert_int_equal(w->result, TD_ERR_MISMATCH);
    assert_non_null(strstr(w->why.text, "expected_cameras.hand"));
    assert_non_null(strstr(w->why.text, "downscale is off"));
}

static uint8_t sampling; // of the last JPEG's brightness, as its header says

static void look_at_sampling(world *w, const td_wire_obs *obs)
{
    static const uint8_t frame_header[] = {0xff, 0xc0};
    const td_wire_image *image = &obs->images[0];
    (void)w;
    assert_int_equal(image->codec, TD_WIRE_JPEG);
    const uint8_t *at =
        memmem(image->data, image->size, frame_header, sizeof frame_header);
    assert_non_null(at);
    sampling = at[11]; // after length, depth, sides, their number and an id
}

static void the_chroma_is_as_set(void **state)
{
    static const struct {
        td_media_chroma chroma;
        uint8_t sampling;
    } cases[] = {
        {TD_MEDIA_CHROMA_420, 0x22},
        {TD_MEDIA_CHROMA_422, 0x21},
        {TD_MEDIA_CHROMA_444, 0x11},
    };
    world *w = *state;
    fake_server_open(w, 0, "gpu-1")->note_obs = look_at_sampling;
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        w->config.jpeg_chroma = cases[i].chroma;
        world_stream(w);
        enough = 3;
        world_until(w, has_sent_enough);
        world_stop(w);
        world_close(w);
        assert_int_equal(sampling, cases[i].sampling);
    }
}

static uint32_t seen, marked; // JPEGs; those that are as the camera gave them
static td_media_size came;

static void look_for_mark(world *w, const td_wire_obs *obs)
{
    const td_wire_image *image = &obs->images[0];
    const size_t mark = sizeof JPEG_MARK;
    (void)w;
    assert_int_equal(image->codec, TD_WIRE_JPEG);
    assert_true(image->size > mark);
    const uint8_t *end = (const uint8_t *)image->data + image->size - mark;
    seen++;
    marked += memcmp(end, JPEG_MARK, mark) == 0;
    assert_int_equal(td_media_jpeg_size((td_slice){image->data, image->size},
                                        &came.height, &came.width, NULL),
                     TD_OK);
}

static void stream_compressed(world *w)
{
    seen = marked = 0;
    world_compress(w);
    world_stream(w);
    world_until(w, has_merged_twenty);
    world_stop(w);
    assert_int_equal(w->report.counts.skipped[TD_EDGE_SKIP_FAILED], 0);
}

static void a_cameras_jpeg_goes_as_it_is(void **state)
{
    world *w = *state;
    fake_server_open(w, 0, "gpu-1")->note_obs = look_for_mark;
    stream_compressed(w);
    assert_int_equal(marked, seen);
    assert_int_equal(came.height, HEIGHT);
    assert_int_equal(came.width, WIDTH);
}

static void a_cameras_jpeg_is_made_smaller_where_that_is_wanted(void **state)
{
    world *w = *state;
    fake_server *p = fake_server_open(w, 0, "gpu-1");
    p->note_obs = look_for_mark;
    p->edit_status = want_half;
    w->config.profile.downscale = true;
    stream_compressed(w);
    assert_int_equal(marked, 0);
    assert_int_equal(came.height, HEIGHT / 2);
    assert_int_equal(came.width, WIDTH / 2);
}

// Off by what JPEG costs.
static void look_near(world *w, const td_wire_obs *obs)
{
    static uint8_t expected[FRAME_BYTES];
    const td_wire_image *image = &obs->images[0];
    uint64_t number = 0, off = 0;
    (void)w;
    assert_int_equal(image->codec, TD_WIRE_RAW);
    assert_int_equal(image->size, sizeof expected);
    assert_int_equal(
        td_robot_synthetic_counter(image->data, HEIGHT, WIDTH, &number), TD_OK);
    render(number, HEIGHT, WIDTH, expected);
    for (size_t i = 0; i < sizeof expected; i++)
        off += (uint64_t)abs(((const uint8_t *)image->data)[i] - expected[i]);
    assert_true(off / sizeof expected < 8);
}

static void a_cameras_jpeg_goes_as_pixels_where_all_do(void **state)
{
    world *w = *state;
    w->config.codec = TD_EDGE_CODEC_RAW;
    fake_server_open(w, 0, "gpu-1")->note_obs = look_near;
    stream_compressed(w);
}

static void similarity_looks_into_a_cameras_jpeg(void **state)
{
    world *w = *state;
    w->config.similar = (td_edge_similar_settings){
        .on = true, .state_tolerance = 0, .image_tolerance = 0};
    fake_server_open(w, 0, "gpu-1")->note_obs = look_for_mark;
    stream_compressed(w);
    assert_int_equal(marked, seen);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(a_raw_frame_arrives_in_a_loan),
        WORLD_TEST(every_raw_frame_arrives),
        WORLD_TEST(a_raw_frame_that_is_not_worth_a_loan_arrives_too),
        WORLD_TEST(the_time_between_each_frame_and_its_state_is_recorded),
        WORLD_TEST(a_camera_that_fails_has_nothing_stale_sent),
        WORLD_TEST(a_camera_that_blocks_has_nothing_stale_sent),
        WORLD_TEST(the_first_frame_is_waited_for),
        WORLD_TEST(a_camera_that_nobody_wants_may_block),
        WORLD_TEST(every_ask_is_accounted_for),
        WORLD_TEST(an_ask_outlives_a_reading_that_fails),
        WORLD_TEST(a_smaller_picture_is_sent_where_one_is_wanted),
        WORLD_TEST(a_smaller_picture_may_be_forbidden),
        WORLD_TEST(the_chroma_is_as_set),
        WORLD_TEST(a_cameras_jpeg_goes_as_it_is),
        WORLD_TEST(a_cameras_jpeg_is_made_smaller_where_that_is_wanted),
        WORLD_TEST(a_cameras_jpeg_goes_as_pixels_where_all_do),
        WORLD_TEST(similarity_looks_into_a_cameras_jpeg),
    };
    return cmocka_run_group_tests_name("edge/frames", tests, NULL, NULL);
}
