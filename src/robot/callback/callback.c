// SPDX-License-Identifier: Apache-2.0
#include "robot/callback/callback.h"

#include "media/jpeg.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct eye {
    uint32_t height, width;
} eye;

typedef struct callback {
    td_robot_hardware robot;
    td_robot_callbacks calls;
    uint32_t joint_count;
    eye cameras[TD_ROBOT_MAX_CAMERAS];
    uint32_t camera_count;
} callback;

static void close_callback(td_robot_hardware *robot)
{
    free((callback *)robot);
}

static td_err check_eyes(const td_robot_config *config, td_errinfo *info)
{
    const td_robot_callbacks *calls = config->callbacks;
    if (calls->frame && calls->picture)
        return td_fail(info, TD_ERR_INVALID,
                       "takes either frame or picture, not both");
    if (config->camera_count > 0 && !calls->frame && !calls->picture)
        return td_fail(info, TD_ERR_INVALID,
                       "camera %s: there is no function that gives frames",
                       config->cameras[0].name);
    return TD_OK;
}

static td_err check(const td_robot_config *config, td_errinfo *info)
{
    if (!config->callbacks)
        return td_fail(info, TD_ERR_INVALID,
                       "a robot of kind callback is for programs that use the "
                       "C API, tendon/robot.h");
    if (config->joint_count < 1 || config->joint_count > TD_ROBOT_MAX_JOINTS)
        return td_fail(info, TD_ERR_INVALID, "must have 1 to %d joints, got %u",
                       TD_ROBOT_MAX_JOINTS, config->joint_count);
    if (config->camera_count > TD_ROBOT_MAX_CAMERAS)
        return td_fail(info, TD_ERR_INVALID,
                       "must have at most %d cameras, got %u",
                       TD_ROBOT_MAX_CAMERAS, config->camera_count);
    return check_eyes(config, info);
}

static td_err open_callback(const td_robot_config *config,
                            td_robot_hardware **ret_robot, td_errinfo *info)
{
    TD_TRY(check(config, info));
    callback *self = calloc(1, sizeof *self);
    if (!self) return TD_ERR_NOMEM;
    self->robot.ops = &td_robot_callback;
    self->calls = *config->callbacks;
    self->joint_count = config->joint_count;
    self->camera_count = config->camera_count;
    for (uint32_t i = 0; i < config->camera_count; i++) {
        self->cameras[i].height = config->cameras[i].height;
        self->cameras[i].width = config->cameras[i].width;
    }
    *ret_robot = &self->robot;
    return TD_OK;
}

static td_err known(td_err err)
{
    return (unsigned)err < TD_ERR_COUNT ? err : TD_ERR_IO;
}

static td_err read_callback(td_robot_hardware *robot, int64_t now_ns,
                            float *ret_state)
{
    const callback *self = (const callback *)robot;
    float state[TD_ROBOT_MAX_JOINTS];
    (void)now_ns;
    if (!self->calls.read) return TD_ERR_UNSUPPORTED;
    for (uint32_t i = 0; i < self->joint_count; i++)
        state[i] = NAN;
    TD_TRY(known(self->calls.read(self->calls.user, state, self->joint_count)));
    memcpy(ret_state, state, self->joint_count * sizeof *state);
    return TD_OK;
}

static td_err write_callback(td_robot_hardware *robot, int64_t now_ns,
                             const float *command)
{
    const callback *self = (const callback *)robot;
    (void)now_ns;
    if (!self->calls.write) return TD_ERR_UNSUPPORTED;
    for (uint32_t i = 0; i < self->joint_count; i++)
        if (!isfinite(command[i])) return TD_ERR_INVALID;
    return known(
        self->calls.write(self->calls.user, command, self->joint_count));
}

static td_err check_jpeg(const eye *camera, const td_robot_picture *picture)
{
    const td_slice jpeg = {picture->bytes, picture->jpeg};
    uint32_t height = 0, width = 0;
    if (jpeg.size > picture->room) return TD_ERR_LIMIT;
    TD_TRY(td_media_jpeg_size(jpeg, &height, &width, NULL));
    if (height != camera->height || width != camera->width)
        return TD_ERR_MISMATCH;
    return TD_OK;
}

static td_err picture_callback(const callback *self, uint32_t index,
                               td_robot_picture *picture)
{
    const eye *camera = &self->cameras[index];
    TD_TRY(known(self->calls.picture(self->calls.user, index, picture->bytes,
                                     picture->room, camera->height,
                                     camera->width, &picture->jpeg)));
    return picture->jpeg > 0 ? check_jpeg(camera, picture) : TD_OK;
}

static td_err frame_callback(td_robot_hardware *robot, uint32_t camera,
                             int64_t now_ns, td_robot_picture *picture)
{
    const callback *self = (const callback *)robot;
    (void)now_ns;
    if (camera >= self->camera_count) return TD_ERR_INVALID;
    if (self->calls.picture) return picture_callback(self, camera, picture);
    return known(self->calls.frame(self->calls.user, camera, picture->bytes,
                                   self->cameras[camera].height,
                                   self->cameras[camera].width));
}

const td_robot_ops td_robot_callback = {
    .name = "callback",
    .open = open_callback,
    .close = close_callback,
    .read = read_callback,
    .write = write_callback,
    .frame = frame_callback,
};
