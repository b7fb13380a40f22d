// SPDX-License-Identifier: Apache-2.0
#include "robot/synthetic/synthetic.h"

#include "base/clock.h"
#include "robot/conformance.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static const td_robot_config config = {
    .joints = {{"slide", TD_ROBOT_LINEAR, 0.5, 1},
               {"turn", TD_ROBOT_ANGLE, 3, 1},
               {"qx", TD_ROBOT_QUATERNION, 0, 1},
               {"qy", TD_ROBOT_QUATERNION, 0, 1},
               {"qz", TD_ROBOT_QUATERNION, 0, 1},
               {"qw", TD_ROBOT_QUATERNION, 0, 1},
               {"grip", TD_ROBOT_HOLD, 0, 1}},
    .joint_count = 7,
    .cameras = {{"front", 96, 128}, {"wrist", 48, 64}},
    .camera_count = 2,
    .time_constant_s = 0.1,
};

static td_robot_hardware *opened(void)
{
    td_robot_hardware *robot = NULL;
    assert_int_equal(td_robot_hardware_open("synthetic", &config, &robot, NULL),
                     TD_OK);
    return robot;
}

static void it_stands_where_its_file_says(void **state)
{
    (void)state;
    static const float want[7] = {0.5f, 3, 0, 0, 0, 1, 0};
    float got[7];
    TD_AUTO(td_robot_hardware) *robot = opened();
    assert_int_equal(td_robot_hardware_read(robot, 5 * TD_NS_PER_S, got),
                     TD_OK);
    assert_memory_equal(got, want, sizeof got);
}

static void reading_changes_nothing(void **state)
{
    (void)state;
    float command[7] = {4, 0, 0, 0, 0, 1, 1}, once[7], often[7];
    TD_AUTO(td_robot_hardware) *a = opened();
    TD_AUTO(td_robot_hardware) *b = opened();
    assert_int_equal(td_robot_hardware_write(a, 100, command), TD_OK);
    assert_int_equal(td_robot_hardware_write(b, 100, command), TD_OK);
    for (int64_t now = 100; now < TD_NS_PER_S; now += TD_NS_PER_MS)
        assert_int_equal(td_robot_hardware_read(b, now, often), TD_OK);
    assert_int_equal(td_robot_hardware_read(a, TD_NS_PER_S, once), TD_OK);
    assert_int_equal(td_robot_hardware_read(b, TD_NS_PER_S, often), TD_OK);
    assert_memory_equal(once, often, sizeof once);
}

static void speed_stays_within_the_limit(void **state)
{
    (void)state;
    float command[7] = {100, 3, 0, 0, 0, 1, 0}, at[7];
    TD_AUTO(td_robot_hardware) *robot = opened();
    assert_int_equal(td_robot_hardware_write(robot, 0, command), TD_OK);
    assert_int_equal(td_robot_hardware_read(robot, 2 * TD_NS_PER_S, at), TD_OK);
    assert_true(fabsf(at[0] - 2.5f) < 1e-5f);
}

static void an_angle_takes_the_short_way_round(void **state)
{
    (void)state;
    float command[7] = {0.5f, -3, 0, 0, 0, 1, 0}, at[7];
    TD_AUTO(td_robot_hardware) *robot = opened();
    assert_int_equal(td_robot_hardware_write(robot, 0, command), TD_OK);
    assert_int_equal(td_robot_hardware_read(robot, TD_NS_PER_S / 10, at),
                     TD_OK);
    assert_true(at[1] > 3 && at[1] < 3.2f);
    assert_int_equal(td_robot_hardware_read(robot, 10 * TD_NS_PER_S, at),
                     TD_OK);
    assert_true(fabsf(at[1] + 3) < 1e-5f);
}

static void a_quaternion_keeps_its_length(void **state)
{
    (void)state;
    float command[7] = {0.5f, 3, 1, 0, 0, 0, 0}, at[7];
    TD_AUTO(td_robot_hardware) *robot = opened();
    assert_int_equal(td_robot_hardware_write(robot, 0, command), TD_OK);
    assert_int_equal(td_robot_hardware_read(robot, TD_NS_PER_S / 5, at), TD_OK);
    float square =
        at[2] * at[2] + at[3] * at[3] + at[4] * at[4] + at[5] * at[5];
    assert_true(fabsf(square - 1) < 1e-5f);
}

static void a_time_before_the_last_command_is_taken_as_its_time(void **state)
{
    (void)state;
    float command[7] = {4, 3, 0, 0, 0, 1, 0}, at[7];
    TD_AUTO(td_robot_hardware) *robot = opened();
    assert_int_equal(td_robot_hardware_write(robot, TD_NS_PER_S, command),
                     TD_OK);
    assert_int_equal(td_robot_hardware_read(robot, 0, at), TD_OK);
    assert_true(at[0] == 0.5f);
}

static void each_camera_counts_its_own_frames(void **state)
{
    (void)state;
    static uint8_t rgb[96 * 128 * 3];
    td_robot_picture picture = {.bytes = rgb, .room = sizeof rgb};
    TD_AUTO(td_robot_hardware) *robot = opened();
    uint64_t counter = 0;
    for (uint64_t i = 0; i < 3; i++) {
        assert_int_equal(td_robot_hardware_frame(robot, 0, 0, &picture), TD_OK);
        assert_int_equal(td_robot_synthetic_counter(rgb, 96, 128, &counter),
                         TD_OK);
        assert_int_equal(counter, i);
    }
    assert_int_equal(td_robot_hardware_frame(robot, 1, 0, &picture), TD_OK);
    assert_int_equal(td_robot_synthetic_counter(rgb, 48, 64, &counter), TD_OK);
    assert_int_equal(counter, 0);
}

static void what_it_cannot_be_is_refused_by_name(void **state)
{
    (void)state;
    td_robot_hardware *robot = NULL;
    td_errinfo info = {""};
    td_robot_config bad = config;
    bad.cameras[1].width = 63;
    assert_int_equal(td_robot_hardware_open("synthetic", &bad, &robot, &info),
                     TD_ERR_INVALID);
    assert_string_equal(
        info.text, "camera wrist: must be 32 x 64 to 8192 x 8192, got 48 x 63");
    bad = config;
    bad.joints[0].speed_limit = 0;
    assert_int_equal(td_robot_hardware_open("synthetic", &bad, &robot, &info),
                     TD_ERR_INVALID);
    assert_non_null(strstr(info.text, "joint slide: "));
    assert_int_equal(td_robot_hardware_open("atlas", &config, &robot, &info),
                     TD_ERR_NOTFOUND);
    assert_string_equal(
        info.text,
        "no robot called atlas, known are synthetic, callback, replay");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_stands_where_its_file_says),
        cmocka_unit_test(reading_changes_nothing),
        cmocka_unit_test(speed_stays_within_the_limit),
        cmocka_unit_test(an_angle_takes_the_short_way_round),
        cmocka_unit_test(a_quaternion_keeps_its_length),
        cmocka_unit_test(a_time_before_the_last_command_is_taken_as_its_time),
        cmocka_unit_test(each_camera_counts_its_own_frames),
        cmocka_unit_test(what_it_cannot_be_is_refused_by_name),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return failed + td_robot_conformance("synthetic", &config);
}
