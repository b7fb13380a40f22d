// SPDX-License-Identifier: Apache-2.0
#ifndef TD_EDGE_OBSERVE_CAMERAS_H
#define TD_EDGE_OBSERVE_CAMERAS_H

// All cameras of one robot, opened and ended together.

#include "edge/observe/camera.h"

typedef struct td_edge_cameras_config {
    td_robot_hardware *robot;
    const td_wire_camera *cameras; // [count]; this and the robot are borrowed
    const int64_t *period_ns;      // [count]
    uint32_t count;                // at most TD_WIRE_MAX_IMAGES
    uint32_t kept; // of each camera's frames, by who records; 0: nobody does
} td_edge_cameras_config;

typedef struct td_edge_cameras {
    td_edge_camera *each[TD_WIRE_MAX_IMAGES]; // NULL: it is not open
    const td_wire_camera *wire;               // [count]
    uint32_t count;
} td_edge_cameras;

// As td_edge_camera_open() for each. On failure those that are open stay so
// until td_edge_cameras_close().
TD_NODISCARD td_err td_edge_cameras_open(td_edge_cameras *cameras,
                                         const td_edge_cameras_config *config,
                                         td_errinfo *info);

// As for one. False with a line in the log for each that has not ended.
void td_edge_cameras_stop(const td_edge_cameras *cameras);
bool td_edge_cameras_end(const td_edge_cameras *cameras, int64_t until_ns);
void td_edge_cameras_close(td_edge_cameras *cameras);

#endif
