// SPDX-License-Identifier: Apache-2.0
#include "engine/native/request.h"

#include "base/finite.h"
#include "engine/native/flow/noise.h"
#include "wire/msgpack/text.h"
#include "wire/wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_BYTES 64

struct td_native_names {
    char actions[TD_WIRE_MAX_CHANNELS][NAME_BYTES];
    char states[TD_WIRE_MAX_CHANNELS][NAME_BYTES];
};

// What the channels of one kind are called.
typedef struct channels {
    const char *field;
    const char *word; // of those that only have numbers
    uint32_t count;
    const td_wire_channel *given; // by the settings
    uint32_t given_count;
    const char *const *known; // by the checkpoint, or NULL
} channels;

static td_err name_channels(const channels *of, char (*names)[NAME_BYTES],
                            td_wire_channel *ret_channels, td_errinfo *info)
{
    if (of->count > TD_WIRE_MAX_CHANNELS)
        return td_fail(info, TD_ERR_LIMIT, "%s: %u, at most %d", of->field,
                       of->count, TD_WIRE_MAX_CHANNELS);
    if (of->given_count > 0 && of->given_count != of->count)
        return td_fail(info, TD_ERR_MISMATCH,
                       "%s: the manifest names %u, the policy has %u",
                       of->field, of->given_count, of->count);
    for (uint32_t i = 0; i < of->count; i++) {
        ret_channels[i].kind = TD_WIRE_LINEAR;
        if (of->given_count > 0) {
            (void)snprintf(names[i], NAME_BYTES, "%.*s",
                           (int)of->given[i].name.size, of->given[i].name.data);
            ret_channels[i].kind = of->given[i].kind;
        } else if (of->known) {
            (void)snprintf(names[i], NAME_BYTES, "%s", of->known[i]);
        } else {
            (void)snprintf(names[i], NAME_BYTES, "%s_%u", of->word, i);
        }
        ret_channels[i].name = td_wire_text_of(names[i]);
    }
    return TD_OK;
}

static void fill_cameras(const td_native_checkpoint *from, td_engine_spec *spec)
{
    const td_native_policy *policy = &from->policy;
    spec->camera_count = 0;
    for (uint32_t i = 0; i < policy->camera_count; i++) {
        if (policy->cameras[i].empty) continue;
        spec->cameras[spec->camera_count++] = (td_wire_camera){
            .name = td_wire_text_of(
                td_native_checkpoint_name(from, policy->cameras[i].key)),
            .height = policy->cameras[i].height,
            .width = policy->cameras[i].width,
        };
    }
}

td_err td_native_names_fill(const td_native_checkpoint *from,
                            const td_engine_native_settings *settings,
                            td_engine_spec *spec, td_native_names **ret_names,
                            td_errinfo *info)
{
    const td_native_policy *policy = &from->policy;
    bool alike = policy->state_dim == policy->action_dim;
    bool as_actions = alike && settings->state_count == 0;
    const channels actions = {
        .field = "actions",
        .word = "action",
        .count = policy->action_dim,
        .given = settings->actions,
        .given_count = settings->action_count,
        .known = policy->action_names,
    };
    // A robot's state has the names of its actions unless somebody knows
    // better.
    const channels states = {
        .field = "states",
        .word = alike ? "action" : "state",
        .count = policy->state_dim,
        .given = as_actions ? settings->actions : settings->states,
        .given_count =
            as_actions ? settings->action_count : settings->state_count,
        .known = alike ? policy->action_names : NULL,
    };
    td_native_names *names = calloc(1, sizeof *names);
    if (!names) return TD_ERR_NOMEM;
    td_err err = name_channels(&actions, names->actions, spec->actions, info);
    if (err == TD_OK)
        err = name_channels(&states, names->states, spec->states, info);
    if (err != TD_OK) {
        free(names);
        return err;
    }
    spec->action_count = actions.count;
    spec->state_count = states.count;
    spec->environment_count = policy->env_dim;
    spec->chunk_rows = policy->chunk_rows;
    fill_cameras(from, spec);
    *ret_names = names;
    return TD_OK;
}

static td_err check_numbers(const char *name, const td_wire_tensor *tensor,
                            uint32_t count, td_errinfo *info)
{
    if (tensor->dtype == TD_WIRE_F32 && tensor->rank == 1 &&
        tensor->size == count * sizeof(float))
        return TD_OK;
    return td_fail(info, TD_ERR_MISMATCH,
                   "%s: %zu bytes of %s, the model wants %u x <f4", name,
                   tensor->size, td_wire_dtype_name(tensor->dtype), count);
}

static td_err take_pictures(const td_native_request *request,
                            const td_wire_obs *obs, uint32_t slot,
                            td_errinfo *info)
{
    for (uint32_t i = 0; i < request->spec->camera_count; i++) {
        const td_wire_camera *camera = &request->spec->cameras[i];
        const td_wire_image *image =
            td_wire_image_find(obs->images, obs->image_count, camera->name);
        if (!image)
            return td_fail(info, TD_ERR_MISMATCH, "images.%.*s: is missing",
                           (int)camera->name.size, camera->name.data);
        TD_TRY(td_engine_picture_decode(
            request->pictures, image, camera,
            td_native_model_frame(request->model, slot, i), info));
    }
    return TD_OK;
}

// The tensor's bytes need not be aligned.
static td_err take_environment(const td_wire_obs *obs, uint32_t count,
                               float *ret_values, td_errinfo *info)
{
    td_wire_text wanted = td_wire_text_of(TD_NATIVE_ENVIRONMENT);
    for (uint32_t i = 0; i < obs->tensor_count; i++) {
        const td_wire_tensor *tensor = &obs->tensors[i].tensor;
        if (!td_wire_text_same(obs->tensors[i].name, wanted)) continue;
        TD_TRY(check_numbers("tensors." TD_NATIVE_ENVIRONMENT, tensor, count,
                             info));
        memcpy(ret_values, tensor->data, tensor->size);
        return TD_OK;
    }
    return td_fail(info, TD_ERR_MISMATCH,
                   "tensors." TD_NATIVE_ENVIRONMENT ": is missing");
}

td_err td_native_request_prepare(const td_native_request *request,
                                 const td_wire_obs *obs, uint32_t slot,
                                 td_native_pipeline_prepared *ret_prepared,
                                 td_errinfo *info)
{
    const td_engine_spec *spec = request->spec;
    float state[TD_WIRE_MAX_CHANNELS], env[TD_WIRE_MAX_CHANNELS];
    const td_native_pipeline_input input = {state, env, obs->task};
    if (spec->state_count > 0) {
        TD_TRY(check_numbers("state", &obs->state, spec->state_count, info));
        memcpy(state, obs->state.data, obs->state.size);
    }
    if (spec->environment_count > 0)
        TD_TRY(take_environment(obs, spec->environment_count, env, info));
    TD_TRY(td_native_pipeline_preprocess(request->pipeline, &input,
                                         ret_prepared, info));
    TD_TRY(take_pictures(request, obs, slot, info));
    return td_native_request_observe(request->model, slot, ret_prepared, info);
}

td_err td_native_request_observe(td_native_model *model, uint32_t slot,
                                 const td_native_pipeline_prepared *prepared,
                                 td_errinfo *info)
{
    const td_native_model_input input = {
        .state = prepared->state,
        .env = prepared->env,
        .ids = prepared->ids,
        .id_count = prepared->id_count,
    };
    return td_native_model_observe(model, slot, &input, info);
}

// The rows that a robot has promised, as the policy has them. The tensor's
// bytes need not be aligned.
static td_err take_left(const td_native_pipeline *pipeline,
                        const td_native_request_chance *chance,
                        uint32_t columns, uint32_t count, td_errinfo *info)
{
    const td_wire_tensor *from = chance->left;
    size_t numbers = (size_t)count * columns;
    if (from->dtype != TD_WIRE_F32 || from->rank != 2 ||
        from->shape[1] != columns || count == 0)
        return td_fail(info, TD_ERR_MISMATCH,
                       "rtc_prefix: is not rows of %u x <f4", columns);
    memcpy(chance->room, from->data, numbers * sizeof(float));
    if (!td_finite_f32(chance->room, numbers))
        return td_fail(info, TD_ERR_INVALID, "rtc_prefix: is not finite");
    td_native_pipeline_renormalize(pipeline, chance->base, count, chance->room);
    return TD_OK;
}

td_err td_native_request_sample(td_native_model *model,
                                const td_native_pipeline *pipeline,
                                const td_native_request_chance *chance,
                                uint32_t slot, td_errinfo *info)
{
    uint32_t numbers = td_native_model_noise_count(model);
    const td_native_policy *policy = td_native_model_policy(model);
    if (numbers == 0) return TD_OK;
    td_native_noise_fill(chance->seed, numbers,
                         td_native_model_noise(model, slot));
    if (!chance->left) return td_native_model_guide(model, slot, NULL, info);
    uint32_t rows = chance->left->rank == 2 ? chance->left->shape[0] : 0;
    const td_native_model_left left = {
        .rows = chance->room,
        .count = rows < policy->chunk_rows ? rows : policy->chunk_rows,
        .delay = chance->delay,
    };
    TD_TRY(take_left(pipeline, chance, policy->action_dim, left.count, info));
    return td_native_model_guide(model, slot, &left, info);
}
