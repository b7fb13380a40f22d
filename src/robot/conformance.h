// SPDX-License-Identifier: Apache-2.0
#ifndef TD_ROBOT_CONFORMANCE_H
#define TD_ROBOT_CONFORMANCE_H

// What every robot must do, whichever it is. Run it from the robot's own test.

#include "robot/hardware.h"

// Runs the suite on the named robot; `config` has at least one joint that can
// move by 0.1 within a minute, and one camera. One that replays a dataset need
// not obey. Returns how many tests failed.
int td_robot_conformance(const char *name, const td_robot_config *config);

#endif
