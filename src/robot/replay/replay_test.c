// SPDX-License-Identifier: Apache-2.0
#include "robot/replay/replay.h"

#include "base/clock.h"
#include "dataset/write/writer.h"
#include "robot/conformance.h"

#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define FPS 20
#define FRAMES 5 // of each of two episodes
#define HEIGHT 48
#define WIDTH 64

static char parent[] = "/tmp/td-replay-XXXXXX";
static char folder[64];
static td_robot_config config = {
    .joints = {{"slide", TD_ROBOT_LINEAR, 0, 1},
               {"turn", TD_ROBOT_LINEAR, 0, 1}},
    .joint_count = 2,
    .cameras = {{"front", HEIGHT, WIDTH}},
    .camera_count = 1,
    .dataset = folder,
    .episode = -1,
    .speed = 1,
};

// Of row r: the state is {r, -r}, the picture all of one grey.
static uint8_t grey_of(uint64_t row)
{
    return (uint8_t)(40 + 20 * row);
}

static td_err add_frame(td_dataset_writer *writer, uint64_t row)
{
    static uint8_t pixels[HEIGHT * WIDTH * 3];
    memset(pixels, grey_of(row), sizeof pixels);
    const float state[] = {(float)row, -(float)row};
    const td_dataset_image image = {TD_DATASET_IMAGE_RGB,
                                    {pixels, sizeof pixels}};
    const td_dataset_frame frame = {.task = "wave",
                                    .state = state,
                                    .action = state,
                                    .images = &image,
                                    .done = {.age_s = -1}};
    return td_dataset_writer_add(writer, &frame, NULL);
}

static td_err record(void)
{
    static const char *const names[] = {"slide", "turn"};
    static const td_dataset_camera camera = {"front", HEIGHT, WIDTH};
    const td_dataset_writer_config to = {
        .folder = folder,
        .schema = {.fps = FPS,
                   .codec = TD_MEDIA_CODEC_H264,
                   .state = names,
                   .state_count = 2,
                   .action = names,
                   .action_count = 2,
                   .cameras = &camera,
                   .camera_count = 1},
        .reserve_bytes = 1,
    };
    TD_AUTO(td_dataset_writer) *writer = NULL;
    TD_TRY(td_dataset_writer_open(&to, &writer, NULL));
    for (uint64_t episode = 0; episode < 2; episode++) {
        uint32_t index = 0;
        TD_TRY(td_dataset_writer_begin(writer, NULL));
        for (uint64_t i = 0; i < FRAMES; i++)
            TD_TRY(add_frame(writer, episode * FRAMES + i));
        TD_TRY(td_dataset_writer_end(writer, &index, NULL));
    }
    return TD_OK;
}

static int remove_one(const char *path, const struct stat *found, int kind,
                      struct FTW *at)
{
    (void)found;
    (void)kind;
    (void)at;
    return remove(path);
}

static int setup(void **state)
{
    (void)state;
    if (!mkdtemp(parent)) return -1;
    (void)snprintf(folder, sizeof folder, "%s/set", parent);
    return record() == TD_OK ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    return nftw(parent, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static td_robot_hardware *opened(void)
{
    td_robot_hardware *robot = NULL;
    td_errinfo info = {""};
    td_err err = td_robot_hardware_open("replay", &config, &robot, &info);
    if (err != TD_OK) fail_msg("%s: %s", td_err_name(err), info.text);
    return robot;
}

static void check_row(td_robot_hardware *robot, int64_t now_ns, uint64_t row)
{
    static uint8_t pixels[HEIGHT * WIDTH * 3];
    td_robot_picture picture = {.bytes = pixels, .room = sizeof pixels};
    float got[2];
    assert_int_equal(td_robot_hardware_read(robot, now_ns, got), TD_OK);
    assert_true(got[0] == (float)row && got[1] == -(float)row);
    assert_int_equal(td_robot_hardware_frame(robot, 0, now_ns, &picture),
                     TD_OK);
    assert_in_range(pixels[sizeof pixels / 2], grey_of(row) - 4,
                    grey_of(row) + 4);
}

static void rows_come_at_the_rate_they_were_recorded(void **state)
{
    (void)state;
    const int64_t start_ns = 7 * TD_NS_PER_S;
    TD_AUTO(td_robot_hardware) *robot = opened();
    for (uint64_t row = 0; row < 2 * (uint64_t)FRAMES; row++) {
        int64_t at_ns = start_ns + (int64_t)row * (TD_NS_PER_S / FPS);
        check_row(robot, at_ns, row);
        check_row(robot, at_ns + TD_NS_PER_S / FPS / 2, row);
    }
}

static void after_the_last_row_it_stands_still(void **state)
{
    (void)state;
    TD_AUTO(td_robot_hardware) *robot = opened();
    check_row(robot, 0, 0);
    check_row(robot, 3600 * TD_NS_PER_S, 2 * FRAMES - 1);
}

static void it_can_be_faster_and_of_one_episode(void **state)
{
    (void)state;
    config.episode = 1;
    config.speed = 3;
    TD_AUTO(td_robot_hardware) *robot = opened();
    check_row(robot, 0, FRAMES);
    check_row(robot, TD_NS_PER_S / FPS, FRAMES + 3);
    check_row(robot, TD_NS_PER_S, 2 * FRAMES - 1);
    config.episode = -1;
    config.speed = 1;
}

static void commands_move_nothing(void **state)
{
    (void)state;
    TD_AUTO(td_robot_hardware) *robot = opened();
    check_row(robot, 0, 0);
    assert_int_equal(td_robot_hardware_write(robot, 0, (float[]){9, 9}), TD_OK);
    check_row(robot, 0, 0);
}

static void refuse(const td_robot_config *bad, const char *why)
{
    td_robot_hardware *robot = NULL;
    td_errinfo info = {""};
    assert_int_not_equal(td_robot_hardware_open("replay", bad, &robot, &info),
                         TD_OK);
    assert_null(robot);
    if (!strstr(info.text, why))
        fail_msg("\"%s\" lacks \"%s\"", info.text, why);
}

static void what_does_not_fit_the_dataset_is_refused_by_name(void **state)
{
    (void)state;
    td_robot_config bad = config;
    bad.joint_count = 1;
    refuse(&bad, "has 2 values");
    bad = config;
    bad.joints[1].name = "twist";
    refuse(&bad, "joint 1 is twist here and turn");
    bad = config;
    bad.cameras[0].name = "wrist";
    refuse(&bad, "no observation.images.wrist");
    bad = config;
    bad.cameras[0].width = 66;
    refuse(&bad, "48 x 66 here and 48 x 64");
    bad = config;
    bad.episode = 2;
    refuse(&bad, "has 2 episodes");
    bad = config;
    bad.speed = 0;
    refuse(&bad, "speed");
    bad = config;
    bad.dataset = "/nonexistent";
    refuse(&bad, "/nonexistent");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_come_at_the_rate_they_were_recorded),
        cmocka_unit_test(after_the_last_row_it_stands_still),
        cmocka_unit_test(it_can_be_faster_and_of_one_episode),
        cmocka_unit_test(commands_move_nothing),
        cmocka_unit_test(what_does_not_fit_the_dataset_is_refused_by_name),
    };
    int failed =
        cmocka_run_group_tests_name("robot/replay", tests, setup, NULL);
    failed += td_robot_conformance("replay", &config);
    return failed + (teardown(NULL) != 0);
}
