// SPDX-License-Identifier: Apache-2.0
// A config.json ('c'), or the steps before ('b') or after ('a') a policy.
#include "engine/native/checkpoint/checkpoint.h"
#include "engine/native/checkpoint/path.h"
#include "engine/native/model.h"

#include <stdlib.h>
#include <string.h>

#define CONFIG                                                                 \
    "{\"type\":\"pi05\",\"n_obs_steps\":1,\"chunk_size\":8,"                   \
    "\"input_features\":{\"observation.state\":{\"type\":\"STATE\","           \
    "\"shape\":[6]},\"observation.images.top\":{\"type\":\"VISUAL\","          \
    "\"shape\":[3,48,64]},\"observation.environment_state\":{\"type\":"        \
    "\"ENV\",\"shape\":[3]}},\"output_features\":{\"action\":{\"type\":"       \
    "\"ACTION\",\"shape\":[6]}},\"image_resolution\":[28,28],"                 \
    "\"empty_cameras\":0,\"max_state_dim\":32,\"max_action_dim\":32}"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void open_policy(td_slice text, td_native_policy *ret_policy,
                        td_err *ret_err)
{
    json_t *config = NULL;
    td_errinfo info = {""};
    *ret_err = td_json_read_bytes(text, TD_NATIVE_MAX_JSON_BYTES, "config.json",
                                  &config, &info);
    if (*ret_err == TD_OK)
        *ret_err = td_native_policy_init_from(config, "config.json", ret_policy,
                                              &info);
    if (*ret_err != TD_OK && *ret_err != TD_ERR_NOMEM && !info.text[0]) abort();
}

static void check_policy(const td_native_policy *policy)
{
    if (policy->camera_count > TD_WIRE_MAX_IMAGES ||
        policy->state_dim > TD_WIRE_MAX_CHANNELS ||
        policy->env_dim > TD_WIRE_MAX_CHANNELS || policy->action_dim < 1 ||
        policy->action_dim > TD_WIRE_MAX_CHANNELS || policy->chunk_rows < 1)
        abort();
}

// What an architecture reads of it, no weight and no step among it.
static void check_architecture(const td_native_policy *policy)
{
    const td_native_checkpoint of = {.policy = *policy};
    td_errinfo info = {""};
    if (td_native_model_check(&of, &info) != TD_OK && !info.text[0]) abort();
}

static void open_steps(td_slice text, td_native_step_place place)
{
    static const td_slice known = {CONFIG, sizeof CONFIG - 1};
    td_native_policy policy;
    td_native_steps steps;
    td_err err = TD_OK;
    json_t *config = NULL;
    td_errinfo info = {""};
    open_policy(known, &policy, &err);
    if (err != TD_OK) abort();
    if (td_json_read_bytes(text, TD_NATIVE_MAX_JSON_BYTES, "steps.json",
                           &config, &info) == TD_OK &&
        td_native_steps_init_from(config, "steps.json", "/nonexistent", &policy,
                                  place, &steps, &info) == TD_OK) {
        if (steps.count > TD_NATIVE_MAX_STEPS) abort();
        td_native_steps_done(&steps);
    }
    td_native_policy_done(&policy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) return 0;
    const td_slice text = {data + 1, size - 1};
    td_native_policy policy;
    td_err err = TD_OK;
    switch (data[0]) {
    case 'b':
        open_steps(text, TD_NATIVE_BEFORE);
        break;
    case 'a':
        open_steps(text, TD_NATIVE_AFTER);
        break;
    default:
        open_policy(text, &policy, &err);
        if (err != TD_OK) break;
        check_policy(&policy);
        check_architecture(&policy);
        td_native_policy_done(&policy);
    }
    return 0;
}
