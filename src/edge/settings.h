// SPDX-License-Identifier: Apache-2.0
#ifndef TD_EDGE_SETTINGS_H
#define TD_EDGE_SETTINGS_H

// From a robot's file to what the edge and its robot are opened with.

#include "config/robot/robot.h"
#include "edge/edge.h"

// Everything in the result borrows from `config`.
void td_edge_settings_from(const td_config_robot *config, uint64_t boot,
                           td_edge_config *ret_config);

void td_edge_settings_robot(const td_config_robot *config,
                            td_robot_config *ret_config);

#endif
