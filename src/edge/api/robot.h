// SPDX-License-Identifier: Apache-2.0
#ifndef TD_EDGE_API_ROBOT_H
#define TD_EDGE_API_ROBOT_H

// What the files of the C API share, and what its tests look at.

#include "base/sync/thread.h"
#include "edge/api/user_blend.h"
#include "edge/runtime.h"
#include "tendon/robot.h"

#include <stdatomic.h>

struct td_robot {
    td_robot_driver driver; // zeros where the user's is of an older version
    td_config_robot *config;
    td_edge_user_blend *blend; // NULL: the driver has none
    td_edge_runtime parts;
    _Atomic bool ran;  // td_robot_run() or td_robot_start() was called
    td_thread *runner; // td_robot_start()'s
    td_err result;     // of the runner, once it is joined
    td_errinfo why;
};

// robot.c: opens on a network of the caller's, which is borrowed; NULL: on
// the one that `config` asks for. Consumes `config`, on failure too.
TD_NODISCARD td_err td_robot_open_on(td_net *net, td_config_robot *config,
                                     const td_robot_driver *driver,
                                     td_robot **ret_robot, td_errinfo *info);

#endif
