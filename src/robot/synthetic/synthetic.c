// SPDX-License-Identifier: Apache-2.0
#include "robot/synthetic/synthetic.h"

#include "robot/synthetic/frame.h"
#include "robot/synthetic/joint.h"

#include <math.h>
#include <stdlib.h>

#define NS_PER_S 1e9
#define MAX_SIDE 8192

typedef struct joint {
    td_robot_kind kind;
    td_robot_synthetic_drive drive;
    double from; // where it stood at `since_ns`
    double command;
} joint;

typedef struct camera {
    td_robot_synthetic_frame frame;
    uint64_t counter; // its capturing thread's
} camera;

typedef struct synthetic {
    td_robot_hardware robot;
    int64_t since_ns; // of the last command; with the joints the driver's
    joint joints[TD_ROBOT_MAX_JOINTS];
    uint32_t joint_count;
    camera cameras[TD_ROBOT_MAX_CAMERAS];
    uint32_t camera_count;
} synthetic;

static void close_synthetic(td_robot_hardware *robot)
{
    synthetic *self = (synthetic *)robot;
    for (uint32_t i = 0; i < self->camera_count; i++)
        td_robot_synthetic_frame_done(&self->cameras[i].frame);
    free(self);
}

static void synthetic_free(synthetic *self)
{
    close_synthetic(&self->robot);
}
TD_AUTO_FREE(synthetic, synthetic_free)

static td_err check_joint(const td_robot_joint *given, td_errinfo *info)
{
    if (isfinite(given->initial) && isfinite(given->speed_limit) &&
        given->speed_limit > 0)
        return TD_OK;
    return td_fail(info, TD_ERR_INVALID,
                   "joint %s: needs a finite initial position and a speed "
                   "limit above 0",
                   given->name);
}

static td_err check_camera(const td_robot_camera *given, td_errinfo *info)
{
    if (given->height >= TD_ROBOT_SYNTHETIC_MIN_HEIGHT &&
        given->width >= TD_ROBOT_SYNTHETIC_MIN_WIDTH &&
        given->height <= MAX_SIDE && given->width <= MAX_SIDE)
        return TD_OK;
    return td_fail(info, TD_ERR_INVALID,
                   "camera %s: must be %d x %d to %d x %d, got %u x %u",
                   given->name, TD_ROBOT_SYNTHETIC_MIN_HEIGHT,
                   TD_ROBOT_SYNTHETIC_MIN_WIDTH, MAX_SIDE, MAX_SIDE,
                   given->height, given->width);
}

static td_err check_config(const td_robot_config *config, td_errinfo *info)
{
    if (config->joint_count < 1 || config->joint_count > TD_ROBOT_MAX_JOINTS)
        return td_fail(info, TD_ERR_INVALID, "must have 1 to %d joints, got %u",
                       TD_ROBOT_MAX_JOINTS, config->joint_count);
    if (config->camera_count > TD_ROBOT_MAX_CAMERAS)
        return td_fail(info, TD_ERR_INVALID,
                       "must have at most %d cameras, got %u",
                       TD_ROBOT_MAX_CAMERAS, config->camera_count);
    if (!isfinite(config->time_constant_s) || config->time_constant_s <= 0)
        return td_fail(info, TD_ERR_INVALID,
                       "the time constant must be above 0");
    for (uint32_t i = 0; i < config->joint_count; i++)
        TD_TRY(check_joint(&config->joints[i], info));
    for (uint32_t i = 0; i < config->camera_count; i++)
        TD_TRY(check_camera(&config->cameras[i], info));
    return TD_OK;
}

static void place_joints(synthetic *self, const td_robot_config *config)
{
    self->joint_count = config->joint_count;
    for (uint32_t i = 0; i < config->joint_count; i++) {
        const td_robot_joint *given = &config->joints[i];
        self->joints[i] =
            (joint){.kind = given->kind,
                    .drive = {given->speed_limit, config->time_constant_s},
                    .from = given->initial,
                    .command = given->initial};
    }
}

static td_err open_synthetic(const td_robot_config *config,
                             td_robot_hardware **ret_robot, td_errinfo *info)
{
    TD_TRY(check_config(config, info));
    TD_AUTO(synthetic) *self = calloc(1, sizeof *self);
    if (!self) return TD_ERR_NOMEM;
    self->robot.ops = &td_robot_synthetic;
    place_joints(self, config);
    for (uint32_t i = 0; i < config->camera_count; i++) {
        TD_TRY(td_robot_synthetic_frame_init(&self->cameras[i].frame,
                                             config->cameras[i].height,
                                             config->cameras[i].width));
        self->camera_count++;
    }
    *ret_robot = &TD_TAKE(self)->robot;
    return TD_OK;
}

static double joint_at(const synthetic *self, const joint *at, int64_t now_ns)
{
    double elapsed_s = (double)(now_ns - self->since_ns) / NS_PER_S;
    return td_robot_synthetic_joint_follow(&at->drive, at->from, at->command,
                                           fmax(0, elapsed_s));
}

// Components that moved each on its own, back to length 1.
static void normalise(float *q)
{
    float size = hypotf(hypotf(q[0], q[1]), hypotf(q[2], q[3]));
    if (size == 0) q[3] = 1;
    for (int i = 0; size > 0 && i < 4; i++)
        q[i] /= size;
}

static td_err read_synthetic(td_robot_hardware *robot, int64_t now_ns,
                             float *ret_state)
{
    const synthetic *self = (const synthetic *)robot;
    for (uint32_t i = 0; i < self->joint_count; i++) {
        double at = joint_at(self, &self->joints[i], now_ns);
        if (self->joints[i].kind == TD_ROBOT_ANGLE)
            at = td_robot_synthetic_joint_wrap(at);
        ret_state[i] = (float)at;
    }
    for (uint32_t i = 0; i + 3 < self->joint_count; i++) {
        if (self->joints[i].kind != TD_ROBOT_QUATERNION) continue;
        normalise(ret_state + i);
        i += 3;
    }
    return TD_OK;
}

static td_err write_synthetic(td_robot_hardware *robot, int64_t now_ns,
                              const float *command)
{
    synthetic *self = (synthetic *)robot;
    for (uint32_t i = 0; i < self->joint_count; i++)
        if (!isfinite(command[i])) return TD_ERR_INVALID;
    for (uint32_t i = 0; i < self->joint_count; i++) {
        joint *at = &self->joints[i];
        at->from = joint_at(self, at, now_ns);
        at->command = command[i];
        if (at->kind != TD_ROBOT_ANGLE) continue;
        at->from = td_robot_synthetic_joint_wrap(at->from);
        at->command =
            at->from + td_robot_synthetic_joint_wrap(command[i] - at->from);
    }
    if (now_ns > self->since_ns) self->since_ns = now_ns;
    return TD_OK;
}

static td_err frame_synthetic(td_robot_hardware *robot, uint32_t index,
                              int64_t now_ns, td_robot_picture *picture)
{
    (void)now_ns;
    synthetic *self = (synthetic *)robot;
    if (index >= self->camera_count) return TD_ERR_INVALID;
    camera *at = &self->cameras[index];
    td_robot_synthetic_frame_render(&at->frame, at->counter++, picture->bytes);
    return TD_OK;
}

const td_robot_ops td_robot_synthetic = {
    .name = "synthetic",
    .open = open_synthetic,
    .close = close_synthetic,
    .read = read_synthetic,
    .write = write_synthetic,
    .frame = frame_synthetic,
};
