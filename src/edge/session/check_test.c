// SPDX-License-Identifier: Apache-2.0
#include "edge/session/check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

// A robot and a server that fit; each case spoils one of them.
typedef struct pair {
    td_edge_profile robot;
    td_wire_status server;
} pair;

static td_wire_channel channel(const char *name, td_wire_channel_kind kind)
{
    return (td_wire_channel){td_wire_text_of(name), kind};
}

static td_wire_camera camera(const char *name, uint32_t height, uint32_t width)
{
    return (td_wire_camera){td_wire_text_of(name), height, width};
}

static void describe_channels(td_wire_channel *channels, uint32_t *count)
{
    channels[0] = channel("shoulder", TD_WIRE_LINEAR);
    channels[1] = channel("wrist", TD_WIRE_ANGLE);
    channels[2] = channel("gripper", TD_WIRE_HOLD);
    *count = 3;
}

static void fit(pair *p)
{
    *p = (pair){
        .robot =
            {
                .model_id = "act",
                .model_version = "v1",
                .cameras = {camera("top", 480, 640), camera("hand", 96, 128)},
                .camera_count = 2,
                .downscale = true,
                .step_period_us = 33333,
                .actions_per_chunk = 50,
            },
        .server =
            {
                .model_id = td_wire_text_of("act"),
                .model_version = td_wire_text_of("v1"),
                .cameras = {camera("hand", 96, 128), camera("top", 480, 640)},
                .camera_count = 2,
                .action_dim = 3,
                .step_period_us = 33333,
                .max_actions_per_chunk = 50,
            },
    };
    describe_channels(p->robot.actions, &p->robot.action_count);
    describe_channels(p->robot.states, &p->robot.state_count);
    describe_channels(p->server.actions, &p->server.action_count);
    describe_channels(p->server.states, &p->server.state_count);
}

static void spoil_model_id(pair *p)
{
    p->server.model_id = td_wire_text_of("actor");
}

static void spoil_model_version(pair *p)
{
    p->robot.model_version = "v2";
}

static void spoil_action_dim(pair *p)
{
    p->server.action_dim = 14;
}

static void spoil_action_count(pair *p)
{
    p->server.action_count = 2;
}

static void spoil_action_name(pair *p)
{
    p->server.actions[0] = channel("shoulder_pan", TD_WIRE_LINEAR);
}

static void spoil_action_order(pair *p)
{
    td_wire_channel first = p->server.actions[0];
    p->server.actions[0] = p->server.actions[1];
    p->server.actions[1] = first;
}

static void spoil_action_kind(pair *p)
{
    p->server.actions[2].kind = TD_WIRE_LINEAR;
}

static void spoil_state_count(pair *p)
{
    p->robot.state_count = 2;
}

static void spoil_state_name(pair *p)
{
    p->robot.states[1] = channel("elbow", TD_WIRE_ANGLE);
}

static void spoil_state_kind(pair *p)
{
    p->robot.states[1].kind = TD_WIRE_QUATERNION;
}

static void lose_camera(pair *p)
{
    p->robot.camera_count = 1;
}

static void lose_all_cameras(pair *p)
{
    p->robot.camera_count = 0;
}

static void spoil_camera_size(pair *p)
{
    p->robot.cameras[0] = camera("top", 640, 480);
}

static void spoil_camera_height(pair *p)
{
    p->server.cameras[0].height = 90;
}

static void spoil_camera_width(pair *p)
{
    p->server.cameras[0].width = 160;
}

static td_wire_feature feature(const char *name, td_wire_dtype dtype,
                               uint32_t rank, uint32_t a, uint32_t b,
                               uint32_t c)
{
    return (td_wire_feature){td_wire_text_of(name), dtype, rank, {a, b, c}};
}

// As our own server says it, then `more`.
static void want(pair *p, td_wire_feature more)
{
    p->server.features[0] = feature("state", TD_WIRE_F32, 1, 3, 0, 0);
    p->server.features[1] = feature("hand", TD_WIRE_U8, 3, 96, 128, 3);
    p->server.features[2] = more;
    p->server.feature_count = 3;
}

static void want_other_numbers(pair *p)
{
    want(p, feature("observation.state", TD_WIRE_F64, 1, 3, 0, 0));
}

static void want_more_numbers(pair *p)
{
    want(p, feature("state", TD_WIRE_F32, 1, 7, 0, 0));
}

static void want_rows_of_numbers(pair *p)
{
    want(p, feature("state", TD_WIRE_F32, 2, 3, 1, 0));
}

static void want_a_force(pair *p)
{
    want(p, feature("force", TD_WIRE_F64, 2, 1, 2, 0));
}

static void want_a_number(pair *p)
{
    want(p, feature("mood", TD_WIRE_F32, 0, 0, 0, 0));
}

static void want_depth(pair *p)
{
    want(p, feature("top", TD_WIRE_I16, 3, 480, 640, 1));
}

static void want_a_larger_feature(pair *p)
{
    want(p, feature("top", TD_WIRE_U8, 3, 960, 1280, 3));
}

static void want_a_camera_that_is_not_expected(pair *p)
{
    p->server.camera_count = 1;
    want(p, feature("top", TD_WIRE_U8, 3, 480, 640, 3));
}

static void spoil_period(pair *p)
{
    p->robot.step_period_us = 20000;
}

static void spoil_chunk(pair *p)
{
    p->robot.actions_per_chunk = 51;
}

static void want_half(pair *p)
{
    p->server.cameras[0] = camera("hand", 48, 64);
}

static void want_two_thirds_and_a_bit(pair *p)
{
    p->server.cameras[0] = camera("hand", 63, 84); // 84 x 96 / 128 is 63
    p->robot.cameras[1] = camera("hand", 97, 128);
}

static void forbid_smaller_pictures(pair *p)
{
    want_half(p);
    p->robot.downscale = false;
}

static void want_no_pixels(pair *p)
{
    p->server.cameras[0] = camera("hand", 0, 0);
}

static const struct {
    const char *name;
    void (*spoil)(pair *p);
    const char *text;
} mismatches[] = {
    {"model id", spoil_model_id,
     "model_id: this robot has \"act\", the server has \"actor\""},
    {"model version", spoil_model_version,
     "model_version: this robot has \"v2\", the server has \"v1\""},
    {"action dim", spoil_action_dim,
     "action_dim: this robot has 3, the server wants 14"},
    {"action count", spoil_action_count,
     "action_names: this robot has 3, the server wants 2"},
    {"action name", spoil_action_name,
     "action_names[0]: this robot has \"shoulder\", the server wants "
     "\"shoulder_pan\"; the order counts"},
    {"action order", spoil_action_order,
     "action_names[0]: this robot has \"shoulder\", the server wants "
     "\"wrist\"; the order counts"},
    {"action kind", spoil_action_kind,
     "action_names[2] gripper: this robot has kind hold, the server wants "
     "linear"},
    {"state count", spoil_state_count,
     "state_names: this robot has 2, the server wants 3"},
    {"state name", spoil_state_name,
     "state_names[1]: this robot has \"elbow\", the server wants "
     "\"wrist\"; the order counts"},
    {"state kind", spoil_state_kind,
     "state_names[1] wrist: this robot has kind quaternion, the server "
     "wants angle"},
    {"camera missing", lose_camera,
     "expected_cameras.hand: this robot has no such camera, the server "
     "wants 96x128"},
    {"no camera at all", lose_all_cameras,
     "expected_cameras.hand: this robot has no such camera, the server "
     "wants 96x128"},
    {"camera on its side", spoil_camera_size,
     "expected_cameras.top: this robot has 640x480, the server wants "
     "480x640; a picture is never made larger"},
    {"camera height", spoil_camera_height,
     "expected_cameras.hand: this robot has 96x128, the server wants "
     "90x128; a picture of another shape would be distorted"},
    {"camera width", spoil_camera_width,
     "expected_cameras.hand: this robot has 96x128, the server wants "
     "96x160; a picture is never made larger"},
    {"smaller pictures, forbidden", forbid_smaller_pictures,
     "expected_cameras.hand: this robot has 96x128, the server wants "
     "48x64; downscale is off"},
    {"pictures without pixels", want_no_pixels,
     "expected_cameras.hand: this robot has 96x128, the server wants "
     "0x0; a picture of another shape would be distorted"},
    {"a state of other numbers", want_other_numbers,
     "observation_features.observation.state: this robot has 3 of <f4, the "
     "server wants 3 of <f8"},
    {"a state of more numbers", want_more_numbers,
     "observation_features.state: this robot has 3 of <f4, the server wants "
     "7 of <f4"},
    {"a state of rows", want_rows_of_numbers,
     "observation_features.state: this robot has 3 of <f4, the server wants "
     "3x1 of <f4"},
    {"a further tensor", want_a_force,
     "observation_features.force: this robot has none, the server wants 1x2 "
     "of <f8"},
    {"a further number", want_a_number,
     "observation_features.mood: this robot has none, the server wants one "
     "<f4"},
    {"depth", want_depth,
     "observation_features.top: this robot has 480x640x3 of |u1, the server "
     "wants 480x640x1 of <i2"},
    {"a camera that says two things", want_a_larger_feature,
     "observation_features.top: this robot has 480x640x3 of |u1, the server "
     "wants 960x1280x3 of |u1"},
    {"a camera that is not expected", want_a_camera_that_is_not_expected,
     "observation_features.top: this robot has none, the server wants "
     "480x640x3 of |u1"},
    {"period", spoil_period,
     "step_period_us: this robot has 20000, the server wants 33333"},
    {"chunk", spoil_chunk,
     "max_actions_per_chunk: this robot plays 51 a chunk, the server gives "
     "50"},
};

static void a_mismatch_names_the_field_and_both_values(void **state)
{
    (void)state;
    for (size_t i = 0; i < TD_COUNT_OF(mismatches); i++) {
        pair p;
        fit(&p);
        mismatches[i].spoil(&p);
        td_errinfo info = {""};
        td_err err = td_edge_check_server(&p.robot, &p.server, &info);
        if (err != TD_ERR_MISMATCH ||
            strcmp(info.text, mismatches[i].text) != 0)
            fail_msg("%s: %s", mismatches[i].name, info.text);
    }
}

static void keep(pair *p)
{
    (void)p;
}

static void own_more_cameras(pair *p)
{
    p->robot.cameras[2] = camera("back", 1, 1);
    p->robot.camera_count = 3;
}

static void want_no_camera(pair *p)
{
    p->server.camera_count = 0;
}

static void want_as_lerobot_says(pair *p)
{
    want(p, feature("observation.images.top", TD_WIRE_U8, 3, 3, 480, 640));
    p->server.features[0].name = td_wire_text_of("observation.state");
}

static void want_half_as_a_feature(pair *p)
{
    want_half(p);
    want(p, feature("hand", TD_WIRE_U8, 3, 48, 64, 3));
    p->server.features[1] = p->server.features[2];
}

static void play_less_of_a_chunk(pair *p)
{
    p->robot.actions_per_chunk = 1;
}

static void be_warming_and_full(pair *p)
{
    p->server.state = TD_WIRE_WARMING;
    p->server.load = 1;
}

static void a_robot_that_fits_passes(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        void (*change)(pair *p);
    } cases[] = {
        {"all the same, cameras in any order", keep},
        {"more cameras than asked for", own_more_cameras},
        {"a server that wants no camera", want_no_camera},
        {"smaller pictures", want_half},
        {"smaller pictures, the same shape to a row",
         want_two_thirds_and_a_bit},
        {"features by LeRobot's names, channels first", want_as_lerobot_says},
        {"smaller pictures as a feature", want_half_as_a_feature},
        {"fewer rows of a chunk", play_less_of_a_chunk},
        {"a server not ready: not a matter of fit", be_warming_and_full},
    };
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        pair p;
        fit(&p);
        cases[i].change(&p);
        td_errinfo info = {""};
        if (td_edge_check_server(&p.robot, &p.server, &info) != TD_OK)
            fail_msg("%s: %s", cases[i].name, info.text);
    }
}

static void a_check_without_info_is_a_check_too(void **state)
{
    (void)state;
    pair p;
    fit(&p);
    spoil_period(&p);
    assert_int_equal(td_edge_check_server(&p.robot, &p.server, NULL),
                     TD_ERR_MISMATCH);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_mismatch_names_the_field_and_both_values),
        cmocka_unit_test(a_robot_that_fits_passes),
        cmocka_unit_test(a_check_without_info_is_a_check_too),
    };
    return cmocka_run_group_tests_name("edge/check", tests, NULL, NULL);
}
