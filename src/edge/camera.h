// SPDX-License-Identifier: Apache-2.0
#ifndef TD_EDGE_CAMERA_H
#define TD_EDGE_CAMERA_H

// A camera at work: a thread of its own takes frames at the camera's pace and
// keeps the newest in a slot. A camera that blocks or fails delays itself
// alone, and shows in the age of its frame.

#include "robot/robot.h"
#include "tendon/wire.h"

#include <stdbool.h>

// Beyond so many periods a frame is not sent as if it were new.
#define TD_EDGE_CAMERA_STALE_PERIODS 3

typedef struct td_edge_camera td_edge_camera;

typedef struct td_edge_frame {
    // When the robot was asked for it, so that one which took long to come is
    // old. 0: there is none yet.
    int64_t captured_ns;
    uint8_t rgb[]; // height x width x 3
} td_edge_frame;

// Starts the thread, td-cam-INDEX. Borrows the robot and the camera's name
// until it is closed. Owned by the caller. INVALID (no pixels, or a period that
// is not above 0), NOMEM, LIMIT.
TD_NODISCARD td_err td_edge_camera_open(td_robot *robot, uint32_t index,
                                        const td_wire_camera *wire,
                                        int64_t period_ns,
                                        td_edge_camera **ret_camera,
                                        td_errinfo *info);

// Takes no more frames. Never blocks.
void td_edge_camera_stop(td_edge_camera *camera);

// Stops, and waits for a frame under way as long as the robot does. Blocks.
void td_edge_camera_close(td_edge_camera *camera);
TD_AUTO_FREE(td_edge_camera, td_edge_camera_close)

// The newest frame, borrowed until the next call. One thread; never blocks.
const td_edge_frame *td_edge_camera_newest(td_edge_camera *camera);

// Whether a frame is there and new enough at `now_ns`. Any thread.
bool td_edge_camera_is_fresh(const td_edge_camera *camera,
                             const td_edge_frame *frame, int64_t now_ns);

// Frames that came, and calls that failed. Any thread.
uint64_t td_edge_camera_taken(const td_edge_camera *camera);
uint64_t td_edge_camera_failed(const td_edge_camera *camera);

#endif
