// SPDX-License-Identifier: Apache-2.0
#include "robot/callback/callback.h"

#include "media/jpeg.h"
#include "media/resize.h"
#include "robot/conformance.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define JOINTS 3

// Hardware that is where it was last sent.
typedef struct hardware {
    float at[JOINTS];
    td_err err;
    uint32_t fills; // joints that it reads; the others it forgets
    uint32_t written;
} hardware;

static td_err read_joints(void *user, float *ret_state, uint32_t joints)
{
    const hardware *self = user;
    for (uint32_t i = 0; i < joints && i < self->fills; i++)
        ret_state[i] = self->at[i];
    return self->err;
}

static td_err write_joints(void *user, const float *command, uint32_t joints)
{
    hardware *self = user;
    memcpy(self->at, command, joints * sizeof *command);
    self->written++;
    return self->err;
}

static td_err show(void *user, uint32_t camera, uint8_t *ret_rgb,
                   uint32_t height, uint32_t width)
{
    const hardware *self = user;
    memset(ret_rgb, (int)camera + 100, (size_t)height * width * 3);
    return self->err;
}

// A camera that gives a JPEG of its own size, or whatever else a test wants.
static struct {
    td_media_size size;
    size_t claims; // bytes; 0: as many as there are
    bool spoils;   // its first bytes
} eye;

static td_err show_jpeg(void *user, uint32_t camera, uint8_t *ret_bytes,
                        size_t room, uint32_t height, uint32_t width,
                        size_t *ret_jpeg)
{
    static const uint8_t grey[96 * 128 * 3];
    TD_AUTO(td_media_jpeg_encoder) *encoder = NULL;
    td_slice jpeg;
    (void)user, (void)camera, (void)height, (void)width;
    TD_TRY(td_media_jpeg_encoder_new(90, TD_MEDIA_CHROMA_420, &encoder));
    TD_TRY(td_media_jpeg_encode(encoder, grey, eye.size.height, eye.size.width,
                                &jpeg, NULL));
    if (jpeg.size > room) return TD_ERR_LIMIT;
    memcpy(ret_bytes, jpeg.data, jpeg.size);
    if (eye.spoils) ret_bytes[0] = 0;
    *ret_jpeg = eye.claims ? eye.claims : jpeg.size;
    return TD_OK;
}

static hardware body;
static const td_robot_callbacks callbacks = {
    .user = &body, .read = read_joints, .write = write_joints, .frame = show};
static const td_robot_config config = {
    .joints = {{.name = "pan"}, {.name = "lift"}, {.name = "grip"}},
    .joint_count = JOINTS,
    .cameras = {{"front", 96, 128}, {"wrist", 48, 64}},
    .camera_count = 2,
    .callbacks = &callbacks,
};

static td_robot_hardware *opened(void)
{
    td_robot_hardware *robot = NULL;
    body = (hardware){.fills = JOINTS};
    assert_int_equal(td_robot_hardware_open("callback", &config, &robot, NULL),
                     TD_OK);
    return robot;
}

static void what_cannot_be_opened_is_refused_with_a_reason(void **state)
{
    (void)state;
    td_robot_callbacks blind = callbacks, doubled = callbacks;
    blind.frame = NULL;
    doubled.picture = show_jpeg;
    const struct {
        const char *name;
        const td_robot_callbacks *callbacks;
        const char *says;
    } cases[] = {
        {"no functions", NULL, "for programs that use the C API"},
        {"no frames", &blind, "camera front"},
        {"two functions for frames", &doubled, "either frame or picture"},
    };
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        td_robot_config other = config;
        td_errinfo info = {.text = ""};
        td_robot_hardware *robot = NULL;
        other.callbacks = cases[i].callbacks;
        print_message("%s\n", cases[i].name);
        assert_int_equal(
            td_robot_hardware_open("callback", &other, &robot, &info),
            TD_ERR_INVALID);
        assert_non_null(strstr(info.text, cases[i].says));
        assert_null(robot);
    }
}

static void its_error_is_passed_on(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        td_err given, got;
    } cases[] = {
        {"one of ours", TD_ERR_TIMEOUT, TD_ERR_TIMEOUT},
        {"beyond ours", (td_err)4711, TD_ERR_IO},
        {"below ours", (td_err)-1, TD_ERR_IO},
    };
    static uint8_t rgb[96 * 128 * 3];
    TD_AUTO(td_robot_hardware) *robot = opened();
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        float values[JOINTS] = {0};
        td_robot_picture picture = {.bytes = rgb, .room = sizeof rgb};
        print_message("%s\n", cases[i].name);
        body.err = cases[i].given;
        assert_int_equal(td_robot_hardware_read(robot, 0, values),
                         cases[i].got);
        assert_int_equal(td_robot_hardware_write(robot, 0, values),
                         cases[i].got);
        assert_int_equal(td_robot_hardware_frame(robot, 0, 0, &picture),
                         cases[i].got);
    }
}

static void a_joint_that_was_left_out_does_not_look_like_a_reading(void **state)
{
    (void)state;
    float values[JOINTS] = {1, 2, 3};
    TD_AUTO(td_robot_hardware) *robot = opened();
    body.fills = JOINTS - 1;
    assert_int_equal(td_robot_hardware_read(robot, 0, values), TD_OK);
    assert_true(values[0] == 0 && isnan(values[JOINTS - 1]));
}

static void what_is_not_finite_never_reaches_the_hardware(void **state)
{
    (void)state;
    const float command[JOINTS] = {0, NAN, 0};
    TD_AUTO(td_robot_hardware) *robot = opened();
    assert_int_equal(td_robot_hardware_write(robot, 0, command),
                     TD_ERR_INVALID);
    assert_int_equal(body.written, 0);
}

static void without_functions_for_joints_there_are_only_frames(void **state)
{
    (void)state;
    static const td_robot_callbacks only = {.user = &body, .frame = show};
    static uint8_t rgb[48 * 64 * 3];
    td_robot_config other = config;
    float values[JOINTS] = {0};
    td_robot_picture picture = {.bytes = rgb, .room = sizeof rgb};
    td_robot_hardware *robot = NULL;
    other.callbacks = &only;
    body = (hardware){0};
    assert_int_equal(td_robot_hardware_open("callback", &other, &robot, NULL),
                     TD_OK);
    assert_int_equal(td_robot_hardware_read(robot, 0, values),
                     TD_ERR_UNSUPPORTED);
    assert_int_equal(td_robot_hardware_write(robot, 0, values),
                     TD_ERR_UNSUPPORTED);
    assert_int_equal(td_robot_hardware_frame(robot, 1, 0, &picture), TD_OK);
    assert_int_equal(rgb[sizeof rgb - 1], 101);
    td_robot_hardware_close(robot);
}

static void a_jpeg_is_held_to_its_camera(void **state)
{
    (void)state;
    static const td_robot_callbacks only = {.picture = show_jpeg};
    static uint8_t bytes[48 * 64 * 3];
    static const struct {
        const char *name;
        td_media_size size;
        size_t claims;
        bool spoils;
        td_err err;
    } cases[] = {
        {"of its size", {48, 64}, 0, false, TD_OK},
        {"of another size", {64, 48}, 0, false, TD_ERR_MISMATCH},
        {"not a JPEG", {48, 64}, 0, true, TD_ERR_FORMAT},
        {"cut short", {48, 64}, 2, false, TD_ERR_FORMAT},
        {"more than there is room", {48, 64}, SIZE_MAX, false, TD_ERR_LIMIT},
    };
    td_robot_config other = config;
    other.callbacks = &only;
    TD_AUTO(td_robot_hardware) *robot = NULL;
    assert_int_equal(td_robot_hardware_open("callback", &other, &robot, NULL),
                     TD_OK);
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        td_robot_picture picture = {.bytes = bytes, .room = sizeof bytes};
        print_message("%s\n", cases[i].name);
        eye.size = cases[i].size;
        eye.claims = cases[i].claims;
        eye.spoils = cases[i].spoils;
        assert_int_equal(td_robot_hardware_frame(robot, 1, 0, &picture),
                         cases[i].err);
        if (cases[i].err == TD_OK) assert_true(picture.jpeg > 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_cannot_be_opened_is_refused_with_a_reason),
        cmocka_unit_test(its_error_is_passed_on),
        cmocka_unit_test(
            a_joint_that_was_left_out_does_not_look_like_a_reading),
        cmocka_unit_test(what_is_not_finite_never_reaches_the_hardware),
        cmocka_unit_test(without_functions_for_joints_there_are_only_frames),
        cmocka_unit_test(a_jpeg_is_held_to_its_camera),
    };
    int failed =
        cmocka_run_group_tests_name("robot/callback", tests, NULL, NULL);
    body = (hardware){.fills = JOINTS};
    return failed + td_robot_conformance("callback", &config);
}
