// SPDX-License-Identifier: Apache-2.0
#include "config/robot/robot.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    TD_AUTO(td_config_robot) *robot = NULL;
    td_errinfo info = {""};
    (void)!td_config_robot_parse("fuzz.yaml", data, size, &robot, &info);
    return 0;
}
