// SPDX-License-Identifier: Apache-2.0
#ifndef TD_EDGE_ASSEMBLY_H
#define TD_EDGE_ASSEMBLY_H

// What a robot's file asks for, opened and joined: the robot, the network, the
// edge and its numbers for Prometheus. `tendon robot` and the C API begin here.

#include "base/http/http.h"
#include "config/robot/robot.h"
#include "edge/edge.h"
#include "robot/callback/callback.h"

// What no file can hold. All borrowed while the assembly is open.
typedef struct td_edge_extras {
    const td_robot_callbacks *callbacks; // of a robot of kind callback
    td_edge_control_fn control;          // NULL: none
    void *control_user;
    td_edge_tell_fn tell; // of a file with states; NULL: none
    void *tell_user;
    td_edge_blend_fn blend;         // NULL: what the file says
    td_edge_blend_all_fn blend_all; // instead of it
    void *blend_user;
    td_edge_trace *trace; // NULL: none
    bool pull;            // the host owns the loop
    td_net *net;          // instead of one that the file asks for; NULL
} td_edge_extras;

// Each part is NULL until it is open.
typedef struct td_edge_assembly {
    const char *client;
    td_net *net; // the edge's; not closed when it came with the extras
    bool net_is_ours;
    td_robot_hardware *robot;
    td_edge *edge;
    td_http *http; // NULL: not asked for
    bool awake;    // the CPUs are kept so
    int awake_fd;  // where they are
} td_edge_assembly;

// Opens all of it. `config` is borrowed while it is open. On failure what was
// opened is closed again. Blocks. As the parts' own functions.
TD_NODISCARD td_err td_edge_assembly_open(td_edge_assembly *assembly,
                                          const td_config_robot *config,
                                          const td_edge_extras *extras,
                                          td_errinfo *info);

// As td_edge_end(). False: the network is closed all the same, and only the end
// of the process is left.
TD_NODISCARD bool td_edge_assembly_end(td_edge_assembly *assembly,
                                       int64_t limit_ns);

// Closes it in reverse. Blocks.
void td_edge_assembly_close(td_edge_assembly *assembly);

#endif
