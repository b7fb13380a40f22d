// SPDX-License-Identifier: Apache-2.0
// What the model takes and gives: said to who asks, held against what comes.
#include "engine/picture.h"
#include "server/core/internal.h"
#include "wire/msgpack/text.h"
#include "wire/wire.h"

#include <string.h>

static void describe_model(const td_engine_spec *spec, td_wire_status *status)
{
    status->model_id = td_wire_text_of(spec->model_id);
    status->model_version = td_wire_text_of(spec->model_version);
    memcpy(status->cameras, spec->cameras, sizeof status->cameras);
    status->camera_count = spec->camera_count;
    memcpy(status->actions, spec->actions, sizeof status->actions);
    status->action_count = spec->action_count;
    memcpy(status->states, spec->states, sizeof status->states);
    status->state_count = spec->state_count;
    status->action_dim = spec->action_count;
    status->max_actions_per_chunk = spec->chunk_rows;
    status->step_period_us = spec->step_period_us;
    status->rtc = spec->rtc;
}

static void describe_features(const td_engine_spec *spec,
                              td_wire_status *status)
{
    status->features[0] = (td_wire_feature){
        .name = td_wire_text_of("state"),
        .dtype = TD_WIRE_F32,
        .rank = 1,
        .shape = {spec->state_count},
    };
    for (uint32_t i = 0; i < spec->camera_count; i++)
        status->features[i + 1] = (td_wire_feature){
            .name = spec->cameras[i].name,
            .dtype = TD_WIRE_U8,
            .rank = 3,
            .shape = {spec->cameras[i].height, spec->cameras[i].width, 3},
        };
    status->feature_count = spec->camera_count + 1;
}

void td_server_core_status(const td_server_core *core,
                           td_wire_status *ret_status)
{
    td_wire_status *status = ret_status;
    *status = (td_wire_status){
        .server = td_wire_text_of(core->settings.server_id),
        .server_boot = core->settings.boot,
        .state = core->state,
        .capacity = core->settings.capacity,
        .clients = core->client_count,
        .load = (float)core->client_count / (float)core->settings.capacity,
    };
    describe_model(core->spec, status);
    describe_features(core->spec, status);
}

static td_err fits_camera(const td_wire_obs *obs, const td_wire_camera *camera,
                          td_errinfo *info)
{
    const td_wire_image *image =
        td_wire_image_find(obs->images, obs->image_count, camera->name);
    int size = (int)camera->name.size;
    const char *name = camera->name.data;
    if (!image)
        return td_fail(info, TD_ERR_MISMATCH,
                       "images.%.*s: missing, the model wants %ux%u", size,
                       name, camera->height, camera->width);
    const uint32_t *shape = image->shape;
    if (shape[0] == 0 && image->codec != TD_WIRE_RAW)
        return TD_OK; // its codec tells
    if (shape[0] == camera->height && shape[1] == camera->width &&
        shape[2] == 3)
        return TD_OK;
    return td_fail(info, TD_ERR_MISMATCH,
                   "images.%.*s: is %ux%ux%u, the model wants %ux%ux3", size,
                   name, shape[0], shape[1], shape[2], camera->height,
                   camera->width);
}

td_err td_server_core_fits(const td_server_core *core, const td_wire_obs *obs,
                           td_errinfo *info)
{
    const td_engine_spec *spec = core->spec;
    if (obs->has_rtc && !spec->rtc)
        return td_fail(info, TD_ERR_UNSUPPORTED,
                       "rtc: model %s cannot do real-time chunking",
                       spec->model_id);
    if (obs->has_again) return TD_OK; // the model has seen it
    const td_wire_tensor *state = &obs->state;
    if (state->dtype != TD_WIRE_F32 || state->rank != 1 ||
        state->shape[0] != spec->state_count)
        return td_fail(info, TD_ERR_MISMATCH,
                       "state: is rank %u, %u x %s, the model wants %u x <f4",
                       state->rank, state->shape[0],
                       td_wire_dtype_name(state->dtype), spec->state_count);
    for (uint32_t i = 0; i < spec->camera_count; i++)
        TD_TRY(fits_camera(obs, &spec->cameras[i], info));
    return TD_OK;
}

static const td_wire_camera *find_camera(const td_engine_spec *spec,
                                         td_wire_text name)
{
    for (uint32_t i = 0; i < spec->camera_count; i++)
        if (td_wire_text_same(spec->cameras[i].name, name))
            return &spec->cameras[i];
    return NULL;
}

td_err td_server_core_fits_pictures(const td_server_core *core,
                                    const td_wire_obs *obs, td_errinfo *info)
{
    for (uint32_t i = 0; i < obs->image_count; i++) {
        const td_wire_image *image = &obs->images[i];
        const td_wire_camera *camera = find_camera(core->spec, image->name);
        if (camera)
            TD_TRY(td_engine_picture_check(image, camera, info));
        else if (!core->spec->any_images)
            return td_fail(info, TD_ERR_MISMATCH,
                           "images.%.*s: model %s has no such camera",
                           (int)image->name.size, image->name.data,
                           core->spec->model_id);
    }
    return TD_OK;
}

static void add(td_server_fit_ages *ages, td_wire_text name,
                const td_wire_tensor *tensor)
{
    if (!tensor->has_age) return;
    if (ages->count == 0 || tensor->age_us > ages->oldest_us) {
        ages->oldest = name;
        ages->oldest_us = tensor->age_us;
    }
    if (ages->count == 0 || tensor->age_us < ages->youngest_us)
        ages->youngest_us = tensor->age_us;
    ages->count++;
}

void td_server_fit_ages_of(const td_wire_obs *obs, td_server_fit_ages *ret_ages)
{
    *ret_ages = (td_server_fit_ages){0};
    add(ret_ages, td_wire_text_of("state"), &obs->state);
    for (uint32_t i = 0; i < obs->tensor_count; i++)
        add(ret_ages, obs->tensors[i].name, &obs->tensors[i].tensor);
}

td_err td_server_fit_fresh(const td_server_fit_limits *settings,
                           const td_server_fit_ages *ages, td_errinfo *info)
{
    if (ages->oldest_us <= settings->staleness_us) return TD_OK;
    return td_fail(
        info, TD_ERR_LIMIT, "%.*s: is %.7g ms old, at most %.7g ms are taken",
        (int)ages->oldest.size, ages->oldest.data,
        (double)ages->oldest_us / 1e3, (double)settings->staleness_us / 1e3);
}

bool td_server_fit_misaligned(const td_server_fit_limits *settings,
                              const td_server_fit_ages *ages)
{
    return ages->oldest_us - ages->youngest_us > settings->alignment_us;
}
