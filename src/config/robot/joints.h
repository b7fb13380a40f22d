// SPDX-License-Identifier: Apache-2.0
#ifndef TD_CONFIG_ROBOT_JOINTS_H
#define TD_CONFIG_ROBOT_JOINTS_H

// What no single row of the table can say of a robot's joints, so that what is
// accepted here can be gated and made safe.

#include "config/robot/robot.h"
#include "config/yaml/table.h"

// One joint by itself: its limits and where it is safe. A check of its table.
TD_NODISCARD td_err
td_config_joints_check_one(const td_config_location *location,
                           const td_config_node *node, void *value);

// Joints together: quaternions are whole and orientations. A check of the
// device's table.
TD_NODISCARD td_err
td_config_joints_check_device(const td_config_location *location,
                              const td_config_node *node, void *value);

// Joints as part of the robot: each can do what its fail-safe asks for.
TD_NODISCARD td_err td_config_joints_check_failsafe(
    const td_config_location *location, const td_config_node *node,
    const td_config_robot *robot);

#endif
