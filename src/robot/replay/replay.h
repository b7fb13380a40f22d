// SPDX-License-Identifier: Apache-2.0
#ifndef TD_ROBOT_REPLAY_REPLAY_H
#define TD_ROBOT_REPLAY_REPLAY_H

// A recorded session as a robot: its states and pictures, as they were.
//
// The first reading or frame is row 0; from then on the row is the time since,
// at the dataset's rate times `speed`, and after the last row it stands still.
// So it runs as fast as its caller's clock does, a virtual one too. Commands
// are taken and move nothing.
//
// Joints and cameras are those of the dataset, in its order and sizes:
// `observation.state` and `observation.images.NAME`.

#include "robot/hardware.h"

extern const td_robot_ops td_robot_replay;

#endif
