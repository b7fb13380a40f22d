// SPDX-License-Identifier: Apache-2.0
#include "robot/hardware.h"

#include "robot/callback/callback.h"
#include "robot/replay/replay.h"
#include "robot/synthetic/synthetic.h"

#include <stdio.h>
#include <string.h>

static const td_robot_ops *const robots[] = {
    &td_robot_synthetic,
    &td_robot_callback,
    &td_robot_replay,
};

static void known_names(char *text, size_t room)
{
    size_t used = 0;
    for (size_t i = 0; i < TD_COUNT_OF(robots) && used < room; i++)
        used += (size_t)snprintf(text + used, room - used, "%s%s",
                                 i ? ", " : "", robots[i]->name);
}

td_err td_robot_hardware_open(const char *name, const td_robot_config *config,
                              td_robot_hardware **ret_robot, td_errinfo *info)
{
    for (size_t i = 0; i < TD_COUNT_OF(robots); i++)
        if (strcmp(robots[i]->name, name) == 0)
            return robots[i]->open(config, ret_robot, info);
    char known[128];
    known_names(known, sizeof known);
    return td_fail(info, TD_ERR_NOTFOUND, "no robot called %.64s, known are %s",
                   name, known);
}

void td_robot_hardware_close(td_robot_hardware *robot)
{
    robot->ops->close(robot);
}

td_err td_robot_hardware_read(td_robot_hardware *robot, int64_t now_ns,
                              float *ret_state)
{
    return robot->ops->read(robot, now_ns, ret_state);
}

td_err td_robot_hardware_write(td_robot_hardware *robot, int64_t now_ns,
                               const float *command)
{
    return robot->ops->write(robot, now_ns, command);
}

td_err td_robot_hardware_frame(td_robot_hardware *robot, uint32_t camera,
                               int64_t now_ns, td_robot_picture *picture)
{
    picture->jpeg = 0;
    return robot->ops->frame(robot, camera, now_ns, picture);
}
