// SPDX-License-Identifier: Apache-2.0
#ifndef TD_CLI_EPISODE_H
#define TD_CLI_EPISODE_H

// Tells a robot that runs elsewhere to begin or end the episode that it
// records.

#include "config/robot/robot.h"

// Asks the robot of this file, and waits until it has done so. Blocks. NOTFOUND
// if no such robot records; TIMEOUT after a minute; INVALID with what it says.
TD_NODISCARD td_err td_cli_episode_request(const td_config_robot *config,
                                           const char *word, td_errinfo *info);

#endif
