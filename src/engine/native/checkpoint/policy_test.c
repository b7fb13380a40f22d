// SPDX-License-Identifier: Apache-2.0
#include "engine/native/checkpoint/policy.h"

#include "engine/native/checkpoint/fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void open_policy(const char *kind, td_native_policy *ret_policy)
{
    char folder[512];
    td_errinfo info = {""};
    (void)snprintf(folder, sizeof folder, TD_NATIVE_GOLDEN "%s", kind);
    if (td_native_policy_init(folder, ret_policy, &info) != TD_OK)
        fail_msg("%s", info.text);
}

static void every_kind_says_what_it_takes_and_gives(void **state)
{
    (void)state;
    static const struct {
        const char *kind;
        td_native_policy_type type;
        uint32_t cameras, env_dim;
        bool fits;
        td_media_size fit;
        td_media_place place;
        bool names;
    } cases[] = {
        {"act", TD_NATIVE_POLICY_ACT, 2, 3, false, {0}, 0, false},
        {"smolvla",
         TD_NATIVE_POLICY_SMOLVLA,
         3,
         0,
         true,
         {64, 64},
         TD_MEDIA_CORNER,
         false},
        {"pi0",
         TD_NATIVE_POLICY_PI0,
         2,
         0,
         true,
         {28, 28},
         TD_MEDIA_MIDDLE,
         true},
        {"pi05",
         TD_NATIVE_POLICY_PI05,
         2,
         0,
         true,
         {28, 28},
         TD_MEDIA_MIDDLE,
         true},
    };
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        td_native_policy policy;
        open_policy(cases[i].kind, &policy);
        assert_int_equal(policy.type, cases[i].type);
        assert_string_equal(td_native_policy_name(policy.type), cases[i].kind);
        assert_int_equal(policy.camera_count, cases[i].cameras);
        assert_string_equal(policy.cameras[0].key, "observation.images.front");
        assert_string_equal(policy.cameras[1].key, "observation.images.wrist");
        assert_int_equal(policy.cameras[1].height, 64);
        assert_int_equal(policy.cameras[1].width, 96);
        assert_int_equal(policy.state_dim, 6);
        assert_int_equal(policy.env_dim, cases[i].env_dim);
        assert_int_equal(policy.action_dim, 6);
        assert_int_equal(policy.chunk_rows, 8);
        assert_int_equal(policy.fits, cases[i].fits);
        assert_int_equal(policy.fit.height, cases[i].fit.height);
        assert_int_equal(policy.fit_place, cases[i].place);
        assert_int_equal(policy.action_names != NULL, cases[i].names);
        if (cases[i].names)
            assert_string_equal(policy.action_names[5], "Gripper.pos");
        td_native_policy_done(&policy);
    }
}

static void a_policys_own_options_are_read_from_the_same_file(void **state)
{
    (void)state;
    td_native_policy policy;
    uint32_t width = 0;
    open_policy("act", &policy);
    td_json_at at = td_native_policy_options(&policy);
    assert_int_equal(
        td_json_read_whole(&at, "dim_model", 1, 4096, &width, NULL), TD_OK);
    assert_int_equal(width, 32);
    td_native_policy_done(&policy);
}

static void cameras_that_no_robot_has_are_marked(void **state)
{
    (void)state;
    td_native_policy policy;
    open_policy("smolvla", &policy);
    assert_false(policy.cameras[1].empty);
    assert_true(policy.cameras[2].empty);
    assert_string_equal(policy.cameras[2].key,
                        "observation.images.empty_camera_0");
    td_native_policy_done(&policy);
}

// What LeRobot adds when it loads a policy, though the file is silent on it.
static void features_that_go_without_saying_are_there(void **state)
{
    (void)state;
    td_native_fixture copy;
    td_native_policy policy;
    td_errinfo info = {""};
    td_native_fixture_copy("pi0", "config.json", "\"empty_cameras\": 0",
                           "\"empty_cameras\": 2", &copy);
    if (td_native_policy_init(copy.path, &policy, &info) != TD_OK)
        fail_msg("%s", info.text);
    assert_int_equal(policy.camera_count, 4);
    assert_string_equal(policy.cameras[3].key,
                        "observation.images.empty_camera_1");
    assert_int_equal(policy.cameras[3].height, 28);
    td_native_policy_done(&policy);
    td_native_fixture_remove(&copy);

    td_native_fixture_copy("pi0", "config.json", "\"observation.state\": {",
                           "\"observation.environment_state\": {", &copy);
    assert_int_equal(td_native_policy_init(copy.path, &policy, &info),
                     TD_ERR_UNSUPPORTED);
    assert_non_null(strstr(info.text, "observation.environment_state: is an "
                                      "input that no policy of ours"));
    td_native_fixture_remove(&copy);
}

// Of a dataset whose names are groups LeRobot keeps those of the groups.
static void names_that_are_not_one_for_each_action_are_none(void **state)
{
    (void)state;
    td_native_fixture copy;
    td_native_policy policy;
    td_errinfo info = {""};
    td_native_fixture_copy("pi0", "config.json", "\"action_feature_names\": [",
                           "\"action_feature_names\": [\"motors\"], \"x\": [",
                           &copy);
    if (td_native_policy_init(copy.path, &policy, &info) != TD_OK)
        fail_msg("%s", info.text);
    assert_null(policy.action_names);
    td_native_policy_done(&policy);
    td_native_fixture_remove(&copy);
}

static const struct {
    const char *kind, *from, *to;
    td_err err;
    const char *says;
} bad[] = {
    {"act", NULL, NULL, TD_ERR_NOTFOUND, "/config.json: "},
    {"act", "{", "", TD_ERR_FORMAT, "config.json:2: "},
    {"act", "\"type\": \"act\"", "\"type\": \"tdmpc\"", TD_ERR_UNSUPPORTED,
     "config.json: type: is tdmpc; known are act, smolvla, pi0 and pi05"},
    {"act", "\"type\": \"act\"", "\"kind\": \"act\"", TD_ERR_FORMAT,
     "config.json: type: is missing"},
    {"act", "\"n_obs_steps\": 1", "\"n_obs_steps\": 2", TD_ERR_LIMIT,
     "n_obs_steps: must be 1 to 1, got 2"},
    {"act", "\"chunk_size\": 8", "\"chunk_size\": 0", TD_ERR_LIMIT,
     "chunk_size: must be 1 to 4096, got 0"},
    {"act", "\"chunk_size\"", "\"chunks\"", TD_ERR_FORMAT,
     "chunk_size: is missing"},
    {"act", "\"use_peft\": false", "\"use_peft\": true", TD_ERR_UNSUPPORTED,
     "use_peft: is not supported"},
    {"smolvla", "\"adapt_to_pi_aloha\": false", "\"adapt_to_pi_aloha\": true",
     TD_ERR_UNSUPPORTED, "adapt_to_pi_aloha: is not supported"},
    {"act", "\"input_features\": {", "\"input_features\": null, \"x\": {",
     TD_ERR_FORMAT, "input_features: must be an object"},
    {"act", "\"output_features\": {", "\"outputs\": {", TD_ERR_FORMAT,
     "output_features: is missing"},
    {"act", "\"action\": {", "\"torque\": {", TD_ERR_UNSUPPORTED,
     "torque: is an output that no policy of ours has"},
    {"act", "\"type\": \"STATE\"", "\"type\": \"LANGUAGE\"", TD_ERR_UNSUPPORTED,
     "observation.state: is an input that no policy"},
    {"act", "\"type\": \"STATE\"", "\"type\": \"VISUAL\"", TD_ERR_FORMAT,
     "observation.state: its shape must be [3, height, width]"},
    {"act", "\"type\": \"VISUAL\"", "\"type\": \"ENV\"", TD_ERR_FORMAT,
     "observation.images.front: its shape must be [length]"},
    {"act", "\"observation.state\": {", "\"observation.joints\": {",
     TD_ERR_UNSUPPORTED, "observation.joints: is an input that no policy"},
    {"pi0", "\"image_resolution\": [\n", "\"image_resolution\": [\n0,",
     TD_ERR_FORMAT, "image_resolution: must be two sides of 1 to 8192"},
    {"pi0", "\"Gripper.pos\"", "7", TD_ERR_FORMAT,
     "action_feature_names: must be texts"},
    {"smolvla", "\"empty_cameras\": 1", "\"empty_cameras\": 15", TD_ERR_LIMIT,
     "is one camera more than an observation can have"},
};

static void what_is_not_understood_is_refused_by_name(void **state)
{
    (void)state;
    for (size_t i = 0; i < TD_COUNT_OF(bad); i++) {
        td_native_fixture copy;
        td_native_policy policy;
        td_errinfo info = {""};
        td_native_fixture_copy(bad[i].kind, "config.json", bad[i].from,
                               bad[i].to, &copy);
        td_err err = td_native_policy_init(copy.path, &policy, &info);
        if (err != bad[i].err || !strstr(info.text, bad[i].says))
            fail_msg("%zu, %s: %s: %s", i, bad[i].says, td_err_name(err),
                     info.text);
        td_native_fixture_remove(&copy);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_says_what_it_takes_and_gives),
        cmocka_unit_test(a_policys_own_options_are_read_from_the_same_file),
        cmocka_unit_test(cameras_that_no_robot_has_are_marked),
        cmocka_unit_test(features_that_go_without_saying_are_there),
        cmocka_unit_test(names_that_are_not_one_for_each_action_are_none),
        cmocka_unit_test(what_is_not_understood_is_refused_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
