// SPDX-License-Identifier: Apache-2.0
#include "engine/native/checkpoint/checkpoint.h"
#include "engine/native/checkpoint/fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define BEFORE "policy_preprocessor.json"
#define AFTER "policy_postprocessor.json"

static void open_golden(const char *kind, td_native_checkpoint **ret_opened)
{
    char folder[512];
    td_errinfo info = {""};
    (void)snprintf(folder, sizeof folder, TD_NATIVE_GOLDEN "%s", kind);
    if (td_native_checkpoint_open(folder, ret_opened, &info) != TD_OK)
        fail_msg("%s", info.text);
}

#define STEP(id) TD_NATIVE_STEP_##id
#define END TD_NATIVE_STEP_COUNT

static void assert_steps(const td_native_steps *steps,
                         const td_native_step_kind *wanted)
{
    for (uint32_t i = 0; i < steps->count; i++)
        assert_string_equal(td_native_step_name(steps->each[i].kind),
                            wanted[i] == END ? "nothing more"
                                             : td_native_step_name(wanted[i]));
    assert_int_equal(wanted[steps->count], END);
}

static void steps_are_those_of_the_file_in_its_order(void **state)
{
    (void)state;
    static const struct {
        const char *kind;
        td_native_step_kind before[12], after[12];
    } cases[] = {
        {"act",
         {STEP(RENAME), STEP(TO_BATCH), STEP(DEVICE), STEP(NORMALIZE), END},
         {STEP(UNNORMALIZE), STEP(DEVICE), END}},
        {"smolvla",
         {STEP(RENAME), STEP(TO_BATCH), STEP(NEW_LINE), STEP(TOKENIZE),
          STEP(DEVICE), STEP(NORMALIZE), END},
         {STEP(UNNORMALIZE), STEP(DEVICE), END}},
        {"pi0",
         {STEP(RENAME), STEP(TO_BATCH), STEP(PI0_NEW_LINE), STEP(TOKENIZE),
          STEP(DEVICE), STEP(RELATIVE), STEP(NORMALIZE), END},
         {STEP(UNNORMALIZE), STEP(ABSOLUTE), STEP(DEVICE), END}},
        {"pi05",
         {STEP(RENAME), STEP(TO_BATCH), STEP(RELATIVE), STEP(NORMALIZE),
          STEP(STATE_TO_TEXT), STEP(TOKENIZE), STEP(DEVICE), END},
         {STEP(UNNORMALIZE), STEP(ABSOLUTE), STEP(DEVICE), END}},
    };
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        td_native_checkpoint *opened = NULL;
        open_golden(cases[i].kind, &opened);
        assert_steps(&opened->before, cases[i].before);
        assert_steps(&opened->after, cases[i].after);
        td_native_checkpoint_close(opened);
    }
}

static void features_have_the_names_of_the_robot(void **state)
{
    (void)state;
    td_native_checkpoint *opened = NULL;
    open_golden("act", &opened);
    const td_native_policy *policy = &opened->policy;
    assert_string_equal(
        td_native_checkpoint_name(opened, policy->cameras[0].key), "cam_high");
    assert_string_equal(
        td_native_checkpoint_name(opened, policy->cameras[1].key), "wrist");
    assert_string_equal(td_native_checkpoint_name(opened, policy->env_key),
                        "environment_state");
    td_native_checkpoint_close(opened);
}

static void excluded_joints_stay_absolute(void **state)
{
    (void)state;
    td_native_checkpoint *opened = NULL;
    open_golden("pi0", &opened);
    const td_native_step *step =
        td_native_steps_find(&opened->before, TD_NATIVE_STEP_RELATIVE);
    assert_true(step->enabled);
    for (uint32_t i = 0; i < 6; i++)
        assert_int_equal(step->mask[i], i < 5);
    td_native_checkpoint_close(opened);
}

static const struct {
    const char *kind, *file, *from, *to;
    td_err err;
    const char *says;
} bad[] = {
    {"act", BEFORE, NULL, NULL, TD_ERR_NOTFOUND, "/" BEFORE ": "},
    {"act", AFTER, NULL, NULL, TD_ERR_NOTFOUND, "/" AFTER ": "},
    {"act", BEFORE, "\"steps\"", "\"stages\"", TD_ERR_FORMAT,
     "steps: is missing"},
    {"act", BEFORE, "to_batch_processor", "image_crop_processor",
     TD_ERR_UNSUPPORTED,
     BEFORE ": steps[1].registry_name: image_crop_processor is a step that is "
            "not known here"},
    {"act", BEFORE, "to_batch_processor", "unnormalizer_processor",
     TD_ERR_UNSUPPORTED, "unnormalizer_processor is a step that is not known"},
    {"act", BEFORE, "to_batch_processor", "rename_observations_processor",
     TD_ERR_UNSUPPORTED, "a second rename_observations_processor"},
    {"act", BEFORE, "\"registry_name\": \"to_batch_processor\"",
     "\"class\": \"my.module.Step\"", TD_ERR_FORMAT,
     "steps[1].registry_name: is missing"},
    {"act", BEFORE, "\"float_dtype\": null", "\"float_dtype\": \"float16\"",
     TD_ERR_UNSUPPORTED,
     "steps[2].config.float_dtype: must be null or float32, got float16"},
    {"act", BEFORE, "\"float_dtype\": null", "\"pin_memory\": true",
     TD_ERR_UNSUPPORTED,
     "steps[2].config.pin_memory: is not known of device_processor"},
    {"act", BEFORE, "\"eps\": 1e-08", "\"eps\": 0", TD_ERR_LIMIT,
     "steps[3].config.eps: must be above 0"},
    {"act", BEFORE, "\"eps\"", "\"epsilon\"", TD_ERR_UNSUPPORTED,
     "steps[3].config.epsilon: is not known"},
    {"act", BEFORE, "\"STATE\": \"MEAN_STD\"", "\"STATE\": \"ROBUST\"",
     TD_ERR_UNSUPPORTED, "steps[3].config.STATE: ROBUST is not known"},
    {"act", BEFORE, "\"STATE\": \"MEAN_STD\"", "\"STATE\": \"QUANTILE10\"",
     TD_OK, ""},
    {"act", BEFORE, "\"ENV\": \"MIN_MAX\"", "\"ENV\": \"MEAN_STD\"",
     TD_ERR_NOTFOUND,
     "observation.environment_state: its statistics have no mean"},
    {"act", BEFORE, "\"state_file\": \"", "\"state_file\": \"../",
     TD_ERR_FORMAT, "is no file of this folder"},
    {"act", BEFORE, "\"state_file\": \"", "\"state_file\": \"x",
     TD_ERR_NOTFOUND, ".safetensors: "},
    {"act", BEFORE, "\"observation.images.cam_high\":",
     "\"a\": \"observation.images.front\", \"observation.images.cam_high\":",
     TD_ERR_FORMAT, "rename_map: has two keys for observation.images.front"},
    {"smolvla", BEFORE, "\"padding\": \"longest\"", "\"padding\": \"none\"",
     TD_ERR_UNSUPPORTED, "padding: must be max_length or longest, got none"},
    {"smolvla", BEFORE, "\"padding_side\": \"right\"",
     "\"padding_side\": \"left\"", TD_ERR_UNSUPPORTED,
     "padding_side: must be right, got left"},
    {"smolvla", BEFORE, "\"task_key\": \"task\"", "\"task_key\": \"goal\"",
     TD_ERR_UNSUPPORTED, "task_key: must be task, got goal"},
    {"smolvla", BEFORE, "\"truncation\": true", "\"truncation\": false",
     TD_ERR_UNSUPPORTED, "truncation: must be true"},
    {"smolvla", BEFORE, "\"max_length\": 16", "\"max_length\": 513",
     TD_ERR_LIMIT, "max_length: must be 1 to 512, got 513"},
    {"smolvla", BEFORE, "\"tokenizer_processor\"", "\"device_processor\"",
     TD_ERR_UNSUPPORTED, "is not known of device_processor"},
    {"pi0", BEFORE, "\"enabled\": true", "\"enabled\": 1", TD_ERR_FORMAT,
     "steps[5].config.enabled: must be true or false"},
    {"pi0", AFTER, "\"enabled\": true", "\"enabled\": false", TD_ERR_MISMATCH,
     "must both be on or off"},
    {"pi0", AFTER, "absolute_actions_processor", "delta_actions_processor",
     TD_ERR_UNSUPPORTED, "delta_actions_processor is a step"},
};

static void what_is_not_understood_is_refused_by_name(void **state)
{
    (void)state;
    for (size_t i = 0; i < TD_COUNT_OF(bad); i++) {
        td_native_fixture copy;
        td_native_checkpoint *opened = NULL;
        td_errinfo info = {""};
        td_native_fixture_copy(bad[i].kind, bad[i].file, bad[i].from, bad[i].to,
                               &copy);
        td_err err = td_native_checkpoint_open(copy.path, &opened, &info);
        if (err != bad[i].err || !strstr(info.text, bad[i].says))
            fail_msg("%zu, %s: %s: %s", i, bad[i].says, td_err_name(err),
                     info.text);
        if (opened) td_native_checkpoint_close(opened);
        td_native_fixture_remove(&copy);
    }
}

static void statistics_of_another_robot_are_refused(void **state)
{
    (void)state;
    td_native_fixture copy;
    td_native_checkpoint *opened = NULL;
    td_errinfo info = {""};
    static const char old[] = "\"observation.state\": {\n"
                              "            \"type\": \"STATE\",\n"
                              "            \"shape\": [\n                6";
    static const char new[] = "\"observation.state\": {\n"
                              "            \"type\": \"STATE\",\n"
                              "            \"shape\": [\n                7";
    td_native_fixture_copy("act", "config.json", old, new, &copy);
    assert_int_equal(td_native_checkpoint_open(copy.path, &opened, &info),
                     TD_ERR_MISMATCH);
    assert_non_null(strstr(info.text, "observation.state: its statistics have "
                                      "6 values of mean, the policy 7"));
    td_native_fixture_remove(&copy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_are_those_of_the_file_in_its_order),
        cmocka_unit_test(features_have_the_names_of_the_robot),
        cmocka_unit_test(excluded_joints_stay_absolute),
        cmocka_unit_test(what_is_not_understood_is_refused_by_name),
        cmocka_unit_test(statistics_of_another_robot_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
