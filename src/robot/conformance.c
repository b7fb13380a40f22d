// SPDX-License-Identifier: Apache-2.0
// What every robot behind td_robot_ops must do: one suite for all of them.
//
// Each test opens the robot afresh by its name, with the config that the
// robot's own test gives, and closes it. The tests read, write and wait: a
// joint moves towards its command, a command that is not finite moves nothing,
// frames have the size that was asked for, and nobody writes behind a buffer
// (GUARD bytes are looked at after each call).
//
// Two threads may use an open robot at the same time, the driver's and a
// camera's, so one test does that; the thread is joined before anything is
// compared. Assertions are made on the test's own thread.
#include "robot/conformance.h"

#include "base/clock.h"
#include "base/sync/thread.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define GUARD 64 // bytes behind a buffer that nobody may touch

static const char *robot_name;
static const td_robot_config *robot_config;
static td_robot_hardware *robot;
static float before[TD_ROBOT_MAX_JOINTS], after[TD_ROBOT_MAX_JOINTS];

static int setup(void **state)
{
    (void)state;
    td_errinfo info = {""};
    td_err err =
        td_robot_hardware_open(robot_name, robot_config, &robot, &info);
    if (err != TD_OK) print_error("%s: %s\n", td_err_name(err), info.text);
    return err == TD_OK ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    td_robot_hardware_close(robot);
    return 0;
}

static size_t frame_bytes(uint32_t camera)
{
    return (size_t)robot_config->cameras[camera].height *
           robot_config->cameras[camera].width * 3;
}

static void it_carries_the_name_it_was_opened_by(void **state)
{
    (void)state;
    assert_string_equal(robot->ops->name, robot_name);
}

static void no_joints_are_refused_with_a_reason(void **state)
{
    (void)state;
    td_robot_config config = *robot_config;
    config.joint_count = 0;
    td_robot_hardware *other = NULL;
    td_errinfo info = {""};
    assert_int_equal(td_robot_hardware_open(robot_name, &config, &other, &info),
                     TD_ERR_INVALID);
    assert_null(other);
    assert_string_not_equal(info.text, "");
}

static void a_read_gives_every_joint_and_no_more(void **state)
{
    (void)state;
    float values[TD_ROBOT_MAX_JOINTS + 1];
    uint32_t count = robot_config->joint_count;
    for (uint32_t i = 0; i < count; i++)
        values[i] = NAN;
    values[count] = 42;
    assert_int_equal(td_robot_hardware_read(robot, 0, values), TD_OK);
    for (uint32_t i = 0; i < count; i++)
        assert_true(isfinite(values[i]));
    assert_true(values[count] == 42);
}

static void a_command_moves_the_joint_it_is_for(void **state)
{
    (void)state;
    if (robot_config->dataset) skip();
    assert_int_equal(td_robot_hardware_read(robot, 0, before), TD_OK);
    memcpy(after, before, sizeof after);
    after[0] += 0.1f;
    assert_int_equal(td_robot_hardware_write(robot, 0, after), TD_OK);
    assert_int_equal(td_robot_hardware_read(robot, 60 * TD_NS_PER_S, after),
                     TD_OK);
    assert_true(fabsf(after[0] - before[0] - 0.1f) < 0.01f);
    for (uint32_t i = 1; i < robot_config->joint_count; i++)
        assert_true(fabsf(after[i] - before[i]) < 0.01f);
}

static void a_command_that_is_not_finite_moves_nothing(void **state)
{
    (void)state;
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < TD_COUNT_OF(bad); i++) {
        assert_int_equal(td_robot_hardware_read(robot, 0, before), TD_OK);
        memcpy(after, before, sizeof after);
        after[0] += 0.1f;
        after[robot_config->joint_count - 1] = bad[i];
        assert_int_equal(td_robot_hardware_write(robot, 0, after),
                         TD_ERR_INVALID);
        if (robot_config->dataset) continue; // moves by itself
        assert_int_equal(td_robot_hardware_read(robot, TD_NS_PER_S, after),
                         TD_OK);
        assert_true(fabsf(after[0] - before[0]) < 0.01f);
    }
}

static void a_frame_fills_its_buffer_and_no_more(void **state)
{
    (void)state;
    for (uint32_t camera = 0; camera < robot_config->camera_count; camera++) {
        size_t size = frame_bytes(camera);
        uint8_t *rgb = malloc(size + GUARD);
        assert_non_null(rgb);
        memset(rgb, 7, size + GUARD);
        td_robot_picture picture = {.bytes = rgb, .room = size};
        assert_int_equal(td_robot_hardware_frame(robot, camera, 0, &picture),
                         TD_OK);
        assert_int_equal(picture.jpeg, 0);
        for (size_t i = 0; i < GUARD; i++)
            assert_int_equal(rgb[size + i], 7);
        size_t same = 0;
        for (size_t i = 0; i < size; i++)
            same += rgb[i] == 7;
        assert_true(same < size / 2);
        free(rgb);
    }
}

static void a_camera_that_is_not_there_is_refused(void **state)
{
    (void)state;
    td_robot_picture none = {.bytes = NULL};
    assert_int_equal(
        td_robot_hardware_frame(robot, robot_config->camera_count, 0, &none),
        TD_ERR_INVALID);
}

typedef struct capture {
    td_robot_picture picture;
    td_err err; // the first that was not TD_OK
} capture;

static void capture_frames(void *user)
{
    capture *job = user;
    for (int i = 0; i < 50 && job->err == TD_OK; i++)
        job->err =
            td_robot_hardware_frame(robot, 0, i * TD_NS_PER_MS, &job->picture);
}

static void frames_and_joints_are_used_at_the_same_time(void **state)
{
    (void)state;
    capture job = {.picture = {malloc(frame_bytes(0)), frame_bytes(0), 0}};
    assert_non_null(job.picture.bytes);
    td_thread *thread = NULL;
    td_thread_config config = {.name = "capture", .cpu = -1};
    assert_int_equal(
        td_thread_start(&config, capture_frames, &job, &thread, NULL), TD_OK);
    td_err err = TD_OK;
    for (int i = 0; i < 50 && err == TD_OK; i++) {
        err = td_robot_hardware_read(robot, i * TD_NS_PER_MS, before);
        if (err == TD_OK)
            err = td_robot_hardware_write(robot, i * TD_NS_PER_MS, before);
    }
    td_thread_join(thread);
    free(job.picture.bytes);
    assert_int_equal(err, TD_OK);
    assert_int_equal(job.err, TD_OK);
}

int td_robot_conformance(const char *name, const td_robot_config *config)
{
    robot_name = name;
    robot_config = config;
#define TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(it_carries_the_name_it_was_opened_by),
        TEST(no_joints_are_refused_with_a_reason),
        TEST(a_read_gives_every_joint_and_no_more),
        TEST(a_command_moves_the_joint_it_is_for),
        TEST(a_command_that_is_not_finite_moves_nothing),
        TEST(a_frame_fills_its_buffer_and_no_more),
        TEST(a_camera_that_is_not_there_is_refused),
        TEST(frames_and_joints_are_used_at_the_same_time),
    };
    return cmocka_run_group_tests_name(name, tests, NULL, NULL);
}
