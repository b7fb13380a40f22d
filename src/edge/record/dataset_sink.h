// SPDX-License-Identifier: Apache-2.0
#ifndef TD_EDGE_RECORD_DATASET_SINK_H
#define TD_EDGE_RECORD_DATASET_SINK_H

// A recording as a LeRobotDataset on the disk.

#include "config/robot/robot.h"
#include "edge/record/episode_writer.h"

// Opens or goes on with the dataset that a robot's file asks for. The sink is
// owned by the caller, who closes it. Blocks. As td_dataset_writer_open().
TD_NODISCARD td_err td_edge_dataset_sink_open(const td_config_robot *config,
                                              td_edge_episode_sink *ret_sink,
                                              td_errinfo *info);

#endif
