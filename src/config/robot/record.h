// SPDX-License-Identifier: Apache-2.0
#ifndef TD_CONFIG_ROBOT_RECORD_H
#define TD_CONFIG_ROBOT_RECORD_H

// What a robot's file says of its recording.

#include "config/robot/robot.h"
#include "config/yaml/table.h"

extern const td_config_table td_config_record_table;

// Fills in the folder of a recording that has only a name: where LeRobot looks
// for a dataset of that name.
TD_NODISCARD td_err td_config_record_check(const td_config_location *location,
                                           const td_config_node *node,
                                           td_config_robot *robot);

#endif
