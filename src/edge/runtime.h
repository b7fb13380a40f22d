// SPDX-License-Identifier: Apache-2.0
#ifndef TD_EDGE_RUNTIME_H
#define TD_EDGE_RUNTIME_H

// What a robot's file asks for, opened and joined: the robot, the network, the
// edge and its numbers for Prometheus. `tendon robot` and the C API begin here.

#include "base/http/http.h"
#include "config/robot/robot.h"
#include "edge/edge.h"
#include "robot/callback/callback.h"

// What no file can hold. All borrowed while the runtime is open.
typedef struct td_edge_runtime_options {
    const td_robot_callbacks *callbacks; // of a robot of kind callback
    td_edge_control_fn control;          // NULL: none
    void *control_user;
    td_edge_state_fn observe_state; // of a file with states; NULL: none
    void *observe_state_user;
    td_edge_blend_fn blend;         // NULL: what the file says
    td_edge_blend_all_fn blend_all; // instead of it
    void *blend_user;
    td_edge_trace *trace; // NULL: none
    bool pull;            // the host owns the loop
    td_net *net;          // instead of one that the file asks for; NULL
} td_edge_runtime_options;

// Each part is NULL until it is open.
typedef struct td_edge_runtime {
    const char *client;
    td_net *net; // the edge's; not closed when it came with the options
    bool net_is_ours;
    td_robot_hardware *robot;
    td_edge *edge;
    td_http *http; // NULL: not asked for
    bool awake;    // the CPUs are kept so
    int awake_fd;  // where they are
} td_edge_runtime;

// Opens all of it. `config` is borrowed while it is open. On failure what was
// opened is closed again. Blocks. As the parts' own functions.
TD_NODISCARD td_err td_edge_runtime_open(td_edge_runtime *runtime,
                                         const td_config_robot *config,
                                         const td_edge_runtime_options *options,
                                         td_errinfo *info);

// As td_edge_end(). False: the network is closed all the same, and only the end
// of the process is left.
TD_NODISCARD bool td_edge_runtime_end(td_edge_runtime *runtime,
                                      int64_t limit_ns);

// Closes it in reverse. Blocks.
void td_edge_runtime_close(td_edge_runtime *runtime);

#endif
