// SPDX-License-Identifier: Apache-2.0
// config.json of a checkpoint, as far as it is the same for every policy.
//
// It says which features a policy looks at (cameras, state, environment) and
// what it gives. LeRobot adds features when it loads some policies: SmolVLA's
// and pi0's empty cameras, pi0's padded state and action. The same is done here
// first, on the JSON itself, so that all of them are read in one way after
// that.
//
// Whatever changes what a policy computes and is not understood here is refused
// by its name: an unknown type, a foreign option, an input that nobody looks
// at. Nothing is ignored that could matter. Errors name the file and the field.
#include "engine/native/checkpoint/policy.h"

#include "engine/native/checkpoint/path.h"
#include "media/size.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONFIG "config.json"
#define STATE "observation.state"
#define ACTION "action"
#define EMPTY_CAMERA "observation.images.empty_camera_"

static const struct {
    const char *name;
    bool has_text;
} types[] = {
#define TD_NATIVE_POLICY_ROW(id, name, has_text) {name, has_text},
    TD_NATIVE_POLICY_TYPES(TD_NATIVE_POLICY_ROW)
#undef TD_NATIVE_POLICY_ROW
};

const char *td_native_policy_name(td_native_policy_type type)
{
    return types[type].name;
}

bool td_native_policy_has_text(td_native_policy_type type)
{
    return types[type].has_text;
}

td_json_at td_native_policy_options(const td_native_policy *policy)
{
    return (td_json_at){policy->file, "", policy->config};
}

static td_err read_type(const td_json_at *at, td_native_policy *policy,
                        td_errinfo *info)
{
    const char *name = NULL;
    TD_TRY(td_json_read_text(at, "type", &name, info));
    for (td_native_policy_type i = 0; i < TD_NATIVE_POLICY_COUNT; i++)
        if (strcmp(types[i].name, name) == 0) {
            policy->type = i;
            return TD_OK;
        }
    return td_json_read_fail(at, "type", info, TD_ERR_UNSUPPORTED,
                             "is %.64s; known are act, smolvla, pi0 and pi05",
                             name);
}

// One member of input_features or output_features.
typedef struct entry {
    const char *file;
    const char *key;
    const char *type;
    json_t *shape;
} entry;

static td_err read_feature(const td_json_at *features, const char *key,
                           entry *ret_feature, td_errinfo *info)
{
    json_t *object = NULL, *shape = NULL;
    const char *type = NULL;
    TD_TRY(td_json_read_object(features, key, &object, info));
    const td_json_at at = {features->file, "", object};
    TD_TRY(td_json_read_text(&at, "type", &type, info));
    TD_TRY(td_json_read_array(&at, "shape", &shape, info));
    *ret_feature = (entry){at.file, key, type, shape};
    return TD_OK;
}

static td_err fail(const entry *feature, td_errinfo *info, td_err err,
                   const char *what)
{
    return td_fail(info, err, "%s: %s: %s", feature->file, feature->key, what);
}

static json_int_t side_of(const entry *feature, size_t i)
{
    json_t *side = json_array_get(feature->shape, i);
    return json_is_integer(side) ? json_integer_value(side) : 0;
}

// The length of a vector.
static td_err read_vector(const entry *feature, uint32_t *ret_dim,
                          td_errinfo *info)
{
    json_int_t dim = side_of(feature, 0);
    if (json_array_size(feature->shape) != 1 || dim < 1)
        return fail(feature, info, TD_ERR_FORMAT, "its shape must be [length]");
    if (dim > TD_WIRE_MAX_CHANNELS)
        return fail(feature, info, TD_ERR_LIMIT,
                    "has more values than an observation can");
    *ret_dim = (uint32_t)dim;
    return TD_OK;
}

static td_err add_camera(const entry *feature, td_native_policy *policy,
                         td_errinfo *info)
{
    json_int_t height = side_of(feature, 1), width = side_of(feature, 2);
    if (json_array_size(feature->shape) != 3 || side_of(feature, 0) != 3 ||
        height < 1 || width < 1)
        return fail(feature, info, TD_ERR_FORMAT,
                    "its shape must be [3, height, width]");
    if (height > TD_MEDIA_MAX_SIDE || width > TD_MEDIA_MAX_SIDE)
        return fail(feature, info, TD_ERR_LIMIT, "has too many pixels");
    if (policy->camera_count == TD_WIRE_MAX_IMAGES)
        return fail(feature, info, TD_ERR_LIMIT,
                    "is one camera more than an observation can have");
    policy->cameras[policy->camera_count++] =
        (td_native_camera){.key = feature->key,
                           .height = (uint32_t)height,
                           .width = (uint32_t)width,
                           .empty = strncmp(feature->key, EMPTY_CAMERA,
                                            sizeof EMPTY_CAMERA - 1) == 0};
    return TD_OK;
}

static td_err add_input(const entry *feature, td_native_policy *policy,
                        td_errinfo *info)
{
    if (strcmp(feature->type, "VISUAL") == 0)
        return add_camera(feature, policy, info);
    if (strcmp(feature->type, "STATE") == 0 && strcmp(feature->key, STATE) == 0)
        return read_vector(feature, &policy->state_dim, info);
    if (strcmp(feature->type, "ENV") == 0 && !policy->env_key) {
        policy->env_key = feature->key;
        return read_vector(feature, &policy->env_dim, info);
    }
    return fail(feature, info, TD_ERR_UNSUPPORTED,
                "is an input that no policy of ours looks at");
}

static td_err read_inputs(const td_json_at *at, td_native_policy *policy,
                          td_errinfo *info)
{
    td_json_at inputs = {at->file, "input_features.", NULL};
    TD_TRY(td_json_read_object(at, "input_features", &inputs.object, info));
    const char *key = NULL;
    json_t *value = NULL;
    json_object_foreach(inputs.object, key, value)
    {
        entry feature;
        TD_TRY(read_feature(&inputs, key, &feature, info));
        TD_TRY(add_input(&feature, policy, info));
    }
    return TD_OK;
}

static td_err read_outputs(const td_json_at *at, td_native_policy *policy,
                           td_errinfo *info)
{
    td_json_at outputs = {at->file, "output_features.", NULL};
    TD_TRY(td_json_read_object(at, "output_features", &outputs.object, info));
    const char *key = NULL;
    json_t *value = NULL;
    json_object_foreach(outputs.object, key, value)
    {
        entry feature;
        TD_TRY(read_feature(&outputs, key, &feature, info));
        if (strcmp(key, ACTION) != 0 || strcmp(feature.type, "ACTION") != 0)
            return fail(&feature, info, TD_ERR_UNSUPPORTED,
                        "is an output that no policy of ours has");
        TD_TRY(read_vector(&feature, &policy->action_dim, info));
    }
    return TD_OK;
}

static td_err read_size(const td_json_at *at, const char *name,
                        uint32_t ret_sides[2], td_errinfo *info)
{
    json_t *sides = NULL;
    TD_TRY(td_json_read_array(at, name, &sides, info));
    for (size_t i = 0; i < 2; i++) {
        json_t *side = json_array_get(sides, i);
        json_int_t pixels =
            json_is_integer(side) ? json_integer_value(side) : 0;
        if (json_array_size(sides) != 2 || pixels < 1 ||
            pixels > TD_MEDIA_MAX_SIDE)
            return td_json_read_fail(at, name, info, TD_ERR_FORMAT,
                                     "must be two sides of 1 to %d pixels",
                                     TD_MEDIA_MAX_SIDE);
        ret_sides[i] = (uint32_t)pixels;
    }
    return TD_OK;
}

// smolvla has width and height, in this order.
static td_err read_smolvla_fit(const td_json_at *at, td_native_policy *policy,
                               td_errinfo *info)
{
    static const char name[] = "resize_imgs_with_padding";
    uint32_t sides[2];
    if (td_json_read_is_null(at, name)) return TD_OK;
    TD_TRY(read_size(at, name, sides, info));
    policy->fits = true;
    policy->fit = (td_media_size){.height = sides[1], .width = sides[0]};
    policy->fit_place = TD_MEDIA_CORNER;
    return TD_OK;
}

static td_err read_pi0_fit(const td_json_at *at, td_native_policy *policy,
                           td_errinfo *info)
{
    uint32_t sides[2];
    TD_TRY(read_size(at, "image_resolution", sides, info));
    policy->fits = true;
    policy->fit = (td_media_size){.height = sides[0], .width = sides[1]};
    policy->fit_place = TD_MEDIA_MIDDLE;
    return TD_OK;
}

// What LeRobot itself adds to the features when it loads a policy.
static td_err add_feature(td_native_policy *policy, const char *group,
                          const char *key, json_t *about, td_errinfo *info)
{
    json_t *features = json_object_get(policy->config, group);
    if (!json_is_object(features) || json_object_get(features, key)) {
        json_decref(about);
        return TD_OK;
    }
    if (json_object_set_new(features, key, about) == 0) return TD_OK;
    return td_fail(info, TD_ERR_NOMEM, "%s: out of memory", policy->file);
}

static td_err add_empty_cameras(const td_json_at *at, td_media_size size,
                                td_native_policy *policy, td_errinfo *info)
{
    uint32_t count = 0;
    TD_TRY(td_json_read_whole(at, "empty_cameras", 0, TD_WIRE_MAX_IMAGES,
                              &count, info));
    for (uint32_t i = 0; i < count; i++) {
        char key[sizeof EMPTY_CAMERA + 10];
        (void)snprintf(key, sizeof key, EMPTY_CAMERA "%u", i);
        TD_TRY(
            add_feature(policy, "input_features", key,
                        json_pack("{s:s,s:[i,i,i]}", "type", "VISUAL", "shape",
                                  3, (int)size.height, (int)size.width),
                        info));
    }
    return TD_OK;
}

static td_err add_vector(const td_json_at *at, const char *group,
                         const char *key, const char *type, const char *most,
                         td_native_policy *policy, td_errinfo *info)
{
    uint32_t dim = 0;
    TD_TRY(td_json_read_whole(at, most, 1, TD_WIRE_MAX_CHANNELS, &dim, info));
    return add_feature(
        policy, group, key,
        json_pack("{s:s,s:[i]}", "type", type, "shape", (int)dim), info);
}

static td_err complete_smolvla(const td_json_at *at, td_native_policy *policy,
                               td_errinfo *info)
{
    TD_TRY(read_smolvla_fit(at, policy, info));
    return add_empty_cameras(at, (td_media_size){.height = 480, .width = 640},
                             policy, info);
}

static td_err complete_pi0(const td_json_at *at, td_native_policy *policy,
                           td_errinfo *info)
{
    TD_TRY(read_pi0_fit(at, policy, info));
    TD_TRY(add_empty_cameras(at, policy->fit, policy, info));
    TD_TRY(add_vector(at, "input_features", STATE, "STATE", "max_state_dim",
                      policy, info));
    return add_vector(at, "output_features", ACTION, "ACTION", "max_action_dim",
                      policy, info);
}

static td_err complete(const td_json_at *at, td_native_policy *policy,
                       td_errinfo *info)
{
    switch (policy->type) {
    case TD_NATIVE_POLICY_SMOLVLA:
        return complete_smolvla(at, policy, info);
    case TD_NATIVE_POLICY_PI0:
    case TD_NATIVE_POLICY_PI05:
        return complete_pi0(at, policy, info);
    default:
        return TD_OK;
    }
}

// LeRobot names actions only if its dataset has a plain list of names, one for
// each: of others it keeps what is none, such as ["motors"].
static td_err read_action_names(const td_json_at *at, td_native_policy *policy,
                                td_errinfo *info)
{
    static const char name[] = "action_feature_names";
    json_t *names = NULL;
    if (td_json_read_is_null(at, name)) return TD_OK;
    TD_TRY(td_json_read_array(at, name, &names, info));
    if (json_array_size(names) != policy->action_dim) return TD_OK;
    policy->action_names = calloc(policy->action_dim, sizeof(const char *));
    if (!policy->action_names)
        return td_fail(info, TD_ERR_NOMEM, "%s: out of memory", at->file);
    for (uint32_t i = 0; i < policy->action_dim; i++) {
        const json_t *each = json_array_get(names, i);
        if (!json_is_string(each))
            return td_json_read_fail(at, name, info, TD_ERR_FORMAT,
                                     "must be texts");
        policy->action_names[i] = json_string_value(each);
    }
    return TD_OK;
}

// Options that change what a policy computes, and that nobody here computes.
// Those that are not there are off.
static td_err check_options(const td_json_at *at, td_errinfo *info)
{
    static const char *const foreign[] = {
        "use_peft", "adapt_to_pi_aloha", "use_delta_joint_actions_aloha",
        "use_visual_memory", "use_proprioceptive_memory"};
    for (size_t i = 0; i < TD_COUNT_OF(foreign); i++)
        if (json_is_true(json_object_get(at->object, foreign[i])))
            return td_json_read_fail(at, foreign[i], info, TD_ERR_UNSUPPORTED,
                                     "is not supported");
    uint32_t steps = 0;
    return td_json_read_whole(at, "n_obs_steps", 1, 1, &steps, info);
}

static td_err read_policy(td_native_policy *policy, td_errinfo *info)
{
    const td_json_at at = td_native_policy_options(policy);
    TD_TRY(read_type(&at, policy, info));
    TD_TRY(check_options(&at, info));
    TD_TRY(complete(&at, policy, info));
    TD_TRY(read_inputs(&at, policy, info));
    TD_TRY(read_outputs(&at, policy, info));
    TD_TRY(td_json_read_whole(&at, "chunk_size", 1, TD_NATIVE_MAX_ROWS,
                              &policy->chunk_rows, info));
    if (policy->action_dim == 0)
        return td_json_read_fail(&at, "output_features." ACTION, info,
                                 TD_ERR_FORMAT, "is missing");
    if (policy->camera_count == 0 && policy->env_dim == 0)
        return td_json_read_fail(&at, "input_features", info, TD_ERR_FORMAT,
                                 "have neither a camera nor the "
                                 "environment's state");
    return read_action_names(&at, policy, info);
}

td_err td_native_policy_init_from(json_t *config, const char *file,
                                  td_native_policy *ret_policy,
                                  td_errinfo *info)
{
    td_native_policy policy = {.config = config, .file = strdup(file)};
    td_err err = policy.file ? read_policy(&policy, info) : TD_ERR_NOMEM;
    if (err != TD_OK) {
        td_native_policy_done(&policy);
        return err;
    }
    *ret_policy = policy;
    return TD_OK;
}

td_err td_native_policy_init(const char *folder, td_native_policy *ret_policy,
                             td_errinfo *info)
{
    char path[TD_NATIVE_MAX_PATH];
    json_t *config = NULL;
    TD_TRY(td_native_path_join(folder, CONFIG, path, info));
    TD_TRY(td_json_read_file(path, TD_NATIVE_MAX_JSON_BYTES, &config, info));
    return td_native_policy_init_from(config, path, ret_policy, info);
}

void td_native_policy_done(td_native_policy *policy)
{
    json_decref(policy->config);
    free(policy->file);
    free(policy->action_names);
}
