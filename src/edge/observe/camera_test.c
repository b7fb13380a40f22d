// SPDX-License-Identifier: Apache-2.0
#include "edge/observe/camera.h"

#include "base/clock.h"
#include "base/sync/event.h"
#include "net/inproc/inproc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>

#include <cmocka.h>

#define PERIOD_NS TD_NS_PER_MS
#define WAIT_NS (30 * TD_NS_PER_S)

static const td_wire_camera wire = {{"top", 3}, 2, 4};

// A robot with cameras that count: a frame shows nothing but its number.
typedef struct counting {
    td_robot_hardware base;
    _Atomic uint32_t number[2];
    atomic_bool fails, blocks;
    _Atomic uint32_t inside; // calls under way
    _Atomic uint32_t most;   // frames that it gives; 0: no end
} counting;

static td_err counting_frame(td_robot_hardware *robot, uint32_t camera,
                             int64_t now_ns, td_robot_picture *picture)
{
    counting *self = (counting *)robot;
    (void)now_ns;
    atomic_fetch_add(&self->inside, 1);
    while (camera == 0 && atomic_load(&self->blocks))
        td_clock_sleep_until(td_clock_monotonic_ns() + PERIOD_NS);
    atomic_fetch_sub(&self->inside, 1);
    uint32_t most = atomic_load(&self->most);
    bool spent = most > 0 && atomic_load(&self->number[camera]) == most;
    if (atomic_load(&self->fails) || spent) return TD_ERR_IO;
    uint32_t number = atomic_fetch_add(&self->number[camera], 1) + 1;
    memset(picture->bytes, 0, 2 * 4 * 3);
    memcpy(picture->bytes, &number, sizeof number);
    return TD_OK;
}

static const td_robot_ops counting_ops = {
    .name = "counting",
    .frame = counting_frame,
};

static counting robot;
static td_edge_camera *cameras[2];

static void open_recorded(uint32_t index, uint32_t kept)
{
    assert_int_equal(td_edge_camera_open(&robot.base, index, &wire, PERIOD_NS,
                                         kept, &cameras[index], NULL),
                     TD_OK);
}

static void open_camera(uint32_t index)
{
    open_recorded(index, 0);
}

static int setup(void **state)
{
    (void)state;
    memset(&robot, 0, sizeof robot);
    robot.base.ops = &counting_ops;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    atomic_store(&robot.blocks, false);
    for (int i = 0; i < 2; i++)
        if (cameras[i]) td_edge_camera_close(TD_TAKE(cameras[i]));
    return 0;
}

static void wait_for(uint64_t (*count)(const td_edge_camera *camera),
                     uint32_t index, uint64_t least)
{
    int64_t until_ns = td_clock_monotonic_ns() + WAIT_NS;
    while (count(cameras[index]) < least) {
        int64_t now_ns = td_clock_monotonic_ns();
        if (now_ns > until_ns) fail_msg("waited in vain");
        td_clock_sleep_until(now_ns + PERIOD_NS);
    }
}

static uint32_t number_of(const td_edge_frame *frame)
{
    uint32_t number;
    memcpy(&number, frame->bytes, sizeof number);
    return number;
}

static const td_edge_frame *frame_after(uint64_t more)
{
    wait_for(td_edge_camera_taken, 0, td_edge_camera_taken(cameras[0]) + more);
    return td_edge_camera_newest(cameras[0]);
}

static void frames_are_taken_into_places_that_are_lent(void **state)
{
    (void)state;
    static const td_wire_camera large = {{"top", 3}, 100, 100};
    static const td_net_qos qos = {.priority = TD_NET_DATA};
    td_net_hub *hub = NULL;
    td_net *net = NULL;
    td_net_pub *pub = NULL;
    assert_int_equal(td_net_hub_new_threaded(1, &hub), TD_OK);
    assert_int_equal(td_net_inproc_open(hub, "robot", &net, NULL), TD_OK);
    assert_int_equal(td_net_publish(net, "obs", &qos, &pub, NULL), TD_OK);
    assert_int_equal(td_edge_camera_open(&robot.base, 0, &large, PERIOD_NS, 0,
                                         &cameras[0], NULL),
                     TD_OK);
    assert_null(frame_after(1)->loan);

    td_edge_camera_lend(cameras[0], pub);
    const td_edge_frame *frame = frame_after(3);
    assert_non_null(frame->loan);
    assert_ptr_equal(frame->bytes, frame->loan->bytes);
    uint32_t number = number_of(frame);
    wait_for(td_edge_camera_taken, 0, number + 10);
    assert_int_equal(number_of(frame), number);

    td_edge_camera_lend(cameras[0], NULL);
    td_net_unpublish(pub);
    assert_null(frame_after(3)->loan);
    td_edge_camera_close(TD_TAKE(cameras[0]));
    td_net_close(net);
    td_net_hub_free(hub);
}

static void before_the_first_frame_there_is_none(void **state)
{
    (void)state;
    atomic_store(&robot.blocks, true);
    open_camera(0);
    const td_edge_frame *frame = td_edge_camera_newest(cameras[0]);
    assert_int_equal(frame->captured_ns, 0);
    assert_false(td_edge_camera_is_fresh(cameras[0], frame, 1));
}

static void the_newest_frame_wins(void **state)
{
    (void)state;
    open_camera(0);
    for (int i = 0; i < 5; i++) {
        uint64_t taken = td_edge_camera_taken(cameras[0]) + 10;
        wait_for(td_edge_camera_taken, 0, taken);
        assert_true(number_of(td_edge_camera_newest(cameras[0])) >= taken);
    }
}

static void a_borrowed_frame_stays_as_it_is(void **state)
{
    (void)state;
    open_camera(0);
    wait_for(td_edge_camera_taken, 0, 1);
    const td_edge_frame *frame = td_edge_camera_newest(cameras[0]);
    uint32_t number = number_of(frame);
    int64_t captured_ns = frame->captured_ns;
    wait_for(td_edge_camera_taken, 0, number + 10);
    assert_int_equal(number_of(frame), number);
    assert_int_equal(frame->captured_ns, captured_ns);
}

static void beyond_three_periods_a_frame_is_old(void **state)
{
    (void)state;
    open_camera(0);
    wait_for(td_edge_camera_taken, 0, 1);
    const td_edge_frame *frame = td_edge_camera_newest(cameras[0]);
    int64_t limit_ns = frame->captured_ns + 3 * PERIOD_NS;
    assert_true(td_edge_camera_is_fresh(cameras[0], frame, limit_ns));
    assert_false(td_edge_camera_is_fresh(cameras[0], frame, limit_ns + 1));
}

static void
a_camera_that_fails_is_counted_and_keeps_its_last_frame(void **state)
{
    (void)state;
    open_camera(0);
    wait_for(td_edge_camera_taken, 0, 3);
    atomic_store(&robot.fails, true);
    wait_for(td_edge_camera_failed, 0, 5);
    uint32_t number = number_of(td_edge_camera_newest(cameras[0]));
    assert_int_equal(number, td_edge_camera_taken(cameras[0]));
    atomic_store(&robot.fails, false);
    wait_for(td_edge_camera_taken, 0, number + 3);
    assert_true(number_of(td_edge_camera_newest(cameras[0])) >= number + 3);
}

static void a_camera_that_blocks_delays_itself_alone(void **state)
{
    (void)state;
    atomic_store(&robot.blocks, true);
    open_camera(0);
    open_camera(1);
    wait_for(td_edge_camera_taken, 1, 20);
    assert_int_equal(td_edge_camera_taken(cameras[0]), 0);
    atomic_store(&robot.blocks, false);
    wait_for(td_edge_camera_taken, 0, 3);
}

// The call's beginning counts, so that the frame is not taken for a new one.
static void a_frame_that_took_long_is_old(void **state)
{
    (void)state;
    atomic_store(&robot.blocks, true);
    open_camera(0);
    while (atomic_load(&robot.inside) == 0)
        td_clock_sleep_until(td_clock_monotonic_ns() + PERIOD_NS);
    int64_t inside_ns = td_clock_monotonic_ns();
    td_edge_camera_stop(cameras[0]); // no second frame
    atomic_store(&robot.blocks, false);
    wait_for(td_edge_camera_taken, 0, 1);
    assert_true(td_edge_camera_newest(cameras[0])->captured_ns <= inside_ns);
}

// Has a camera give so many frames, and takes them all.
static void record(uint32_t frames, uint32_t kept, td_edge_arrival *ret_taken)
{
    atomic_store(&robot.most, frames);
    open_recorded(0, kept);
    wait_for(td_edge_camera_taken, 0, frames);
    for (uint32_t i = 0; i < frames; i++)
        assert_true(td_edge_camera_next(cameras[0], &ret_taken[i]));
    assert_false(td_edge_camera_next(cameras[0], &ret_taken[0]));
}

static void who_records_has_every_frame_in_order(void **state)
{
    td_edge_arrival taken[20];
    (void)state;
    record(20, 20, taken);
    for (uint32_t i = 0; i < 20; i++) {
        assert_int_equal(number_of(taken[i].frame), i + 1);
        assert_true(taken[i].arrived_ns >= taken[i].frame->captured_ns);
    }
}

static void a_frame_that_is_recorded_is_the_one_that_is_sent(void **state)
{
    td_edge_arrival taken[3];
    (void)state;
    record(3, 3, taken);
    assert_ptr_equal(td_edge_camera_newest(cameras[0]), taken[2].frame);
}

static void a_recorder_that_is_late_delays_nobody(void **state)
{
    td_edge_arrival taken[10];
    (void)state;
    record(10, 3, taken);
    assert_int_equal(number_of(td_edge_camera_newest(cameras[0])), 10);
    for (uint32_t i = 0; i < 10; i++)
        assert_int_equal(taken[i].frame != NULL, i < 3);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(number_of(taken[i].frame), i + 1);
}

static void frames_that_are_given_back_are_used_again(void **state)
{
    uint32_t seen = 0;
    (void)state;
    open_recorded(0, 2);
    for (uint64_t i = 1; seen < 20; i++) {
        td_edge_arrival taken;
        wait_for(td_edge_camera_taken, 0, i);
        while (td_edge_camera_next(cameras[0], &taken)) {
            if (!taken.frame) continue;
            td_edge_camera_give_back(cameras[0], taken.frame);
            seen++;
        }
    }
}

static void a_camera_that_makes_no_sense_is_refused(void **state)
{
    static const struct {
        const char *name;
        td_wire_camera wire;
        int64_t period_ns;
    } cases[] = {
        {"no height", {{"top", 3}, 0, 4}, PERIOD_NS},
        {"no width", {{"top", 3}, 2, 0}, PERIOD_NS},
        {"no period", {{"top", 3}, 2, 4}, 0},
    };
    (void)state;
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        td_errinfo info = {.text = ""};
        td_edge_camera *camera = NULL;
        td_err err = td_edge_camera_open(&robot.base, 0, &cases[i].wire,
                                         cases[i].period_ns, 0, &camera, &info);
        if (err != TD_ERR_INVALID || !strstr(info.text, "camera top"))
            fail_msg("%s: %s", cases[i].name, info.text);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(before_the_first_frame_there_is_none),
        TEST(frames_are_taken_into_places_that_are_lent),
        TEST(the_newest_frame_wins),
        TEST(a_borrowed_frame_stays_as_it_is),
        TEST(beyond_three_periods_a_frame_is_old),
        TEST(a_camera_that_fails_is_counted_and_keeps_its_last_frame),
        TEST(a_camera_that_blocks_delays_itself_alone),
        TEST(a_frame_that_took_long_is_old),
        TEST(who_records_has_every_frame_in_order),
        TEST(a_frame_that_is_recorded_is_the_one_that_is_sent),
        TEST(a_recorder_that_is_late_delays_nobody),
        TEST(frames_that_are_given_back_are_used_again),
        TEST(a_camera_that_makes_no_sense_is_refused),
    };
    return cmocka_run_group_tests_name("edge/camera", tests, NULL, NULL);
}
