// SPDX-License-Identifier: Apache-2.0
#ifndef TD_EDGE_RECORD_RECORD_H
#define TD_EDGE_RECORD_RECORD_H

// A recording as a LeRobotDataset on the disk.

#include "config/robot/robot.h"
#include "edge/record/recording.h"

// Opens or goes on with the dataset that a robot's file asks for. The sink is
// owned by the caller, who closes it. Blocks. As td_dataset_writer_open().
TD_NODISCARD td_err td_edge_record_open(const td_config_robot *config,
                                        td_edge_record_sink *ret_sink,
                                        td_errinfo *info);

#endif
