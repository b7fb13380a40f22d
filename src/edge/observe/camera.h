// SPDX-License-Identifier: Apache-2.0
#ifndef TD_EDGE_OBSERVE_CAMERA_H
#define TD_EDGE_OBSERVE_CAMERA_H

// A camera at work: a thread of its own takes frames at the camera's pace and
// keeps the newest in a slot. A camera that blocks or fails delays itself
// alone, and shows in the age of its frame. Who records has all of them, in
// order, the same in memory as those that are sent.

#include "edge/observe/pool.h"
#include "robot/hardware.h"
#include "tendon/wire.h"

#include <stdbool.h>

// Beyond so many periods a frame is not sent as if it were new.
#define TD_EDGE_CAMERA_STALE_PERIODS 3

typedef struct td_edge_camera td_edge_camera;

// One that came.
typedef struct td_edge_arrival {
    int64_t arrived_ns;
    td_edge_frame *frame; // NULL: there was no room to keep it
} td_edge_arrival;

// Starts the thread, td-cam-INDEX. `kept` frames at a time may be held by who
// records; 0: nobody does. Borrows the robot and the camera's name until it is
// closed. Owned by the caller. INVALID (no pixels, or a period that is not
// above 0), NOMEM, LIMIT.
TD_NODISCARD td_err td_edge_camera_open(td_robot_hardware *robot,
                                        uint32_t index,
                                        const td_wire_camera *wire,
                                        int64_t period_ns, uint32_t kept,
                                        td_edge_camera **ret_camera,
                                        td_errinfo *info);

// Takes no more frames. Never blocks.
void td_edge_camera_stop(td_edge_camera *camera);

// Stops, and waits for a frame under way until `until_ns` at most. False: it
// has not come. Blocks.
bool td_edge_camera_end(td_edge_camera *camera, int64_t until_ns);

// Stops, and waits for a frame under way as long as the robot does: its
// function writes into memory that is freed here. Blocks.
void td_edge_camera_close(td_edge_camera *camera);
TD_AUTO_FREE(td_edge_camera, td_edge_camera_close)

// From now on frames are taken into places that `pub` lends, so that it need
// not copy them. NULL: no more; afterwards the publisher may go. Any thread;
// never blocks.
void td_edge_camera_lend(td_edge_camera *camera, td_net_pub *pub);

// The newest frame, borrowed until the next call. One thread; never blocks.
const td_edge_frame *td_edge_camera_newest(td_edge_camera *camera);

// The next that came, held by the caller until it is given back; false: none
// did. Recorder's thread only; never blocks.
bool td_edge_camera_next(td_edge_camera *camera, td_edge_arrival *ret_taken);
void td_edge_camera_give_back(td_edge_camera *camera, td_edge_frame *frame);

// Whether a frame is there and new enough at `now_ns`. Any thread.
bool td_edge_camera_is_fresh(const td_edge_camera *camera,
                             const td_edge_frame *frame, int64_t now_ns);

// Frames that came, and calls that failed. Any thread.
uint64_t td_edge_camera_taken(const td_edge_camera *camera);
uint64_t td_edge_camera_failed(const td_edge_camera *camera);

// All cameras of one robot, opened and ended together.
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
