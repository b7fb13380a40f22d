// SPDX-License-Identifier: Apache-2.0
#ifndef TD_ROBOT_HARDWARE_H
#define TD_ROBOT_HARDWARE_H

// Robots and their cameras behind one interface.
//
// Two threads use an open robot at the same time: the driver's, which reads and
// writes joints, and for each camera a capturing one, which takes its frames.
// Either may block, for as long as the hardware does: the control tick only
// exchanges slots with them. Time is the caller's: an implementation reads no
// clock to decide anything.
//
// To add a robot: fill in a td_robot_ops, add it to the table in robot.c, and
// add a row to the conformance suite beside it.

#include "base/err.h"

#define TD_ROBOT_MAX_JOINTS 256
#define TD_ROBOT_MAX_CAMERAS 16

typedef struct td_robot_hardware td_robot_hardware;

// In the order of td_wire_channel_kind.
typedef enum td_robot_kind {
    TD_ROBOT_LINEAR,
    TD_ROBOT_ANGLE,      // radians, wraps
    TD_ROBOT_QUATERNION, // four joints in a row: x, y, z, w
    TD_ROBOT_HOLD,       // a gripper
} td_robot_kind;

typedef struct td_robot_joint {
    const char *name;
    td_robot_kind kind;
    double initial;
    double speed_limit; // units a second, above 0
} td_robot_joint;

typedef struct td_robot_camera {
    const char *name;
    uint32_t height, width;
} td_robot_camera;

// A frame as a camera gives it: pixels, or a JPEG of them where it compresses.
typedef struct td_robot_picture {
    uint8_t *bytes; // the caller's
    size_t room;    // height x width x 3, and TD_ROBOT_JPEG_MORE for a JPEG
    size_t jpeg;    // its bytes; 0, as it begins: height x width x RGB
} td_robot_picture;

// So much larger than its pixels may a JPEG be.
#define TD_ROBOT_JPEG_MORE 4096

typedef struct td_robot_callbacks td_robot_callbacks;

// What every robot is opened with. Borrowed for the call to open() only.
typedef struct td_robot_config {
    td_robot_joint joints[TD_ROBOT_MAX_JOINTS];
    uint32_t joint_count; // at least 1
    td_robot_camera cameras[TD_ROBOT_MAX_CAMERAS];
    uint32_t camera_count;
    double time_constant_s; // synthetic: how fast a joint follows; above 0
    const td_robot_callbacks *callbacks; // callback: the user's; else NULL
    const char *dataset;                 // replay: its folder; else NULL
    int64_t episode;                     // of it; -1: all, one after the other
    double speed;                        // 1: as it was; above 0
} td_robot_config;

typedef struct td_robot_ops {
    const char *name; // as written in the robot's file

    // Connects, and leaves the robot where it stands. Blocks. INVALID with what
    // is wrong with the configuration, IO.
    td_err (*open)(const td_robot_config *config, td_robot_hardware **ret_robot,
                   td_errinfo *info);

    // Leaves the robot where it stands, and frees. Blocks. No other call may be
    // running.
    void (*close)(td_robot_hardware *robot);

    // The joints' positions at `now_ns`. Driver's thread; may block. IO.
    td_err (*read)(td_robot_hardware *robot, int64_t now_ns, float *ret_state);

    // Commands the joints from `now_ns` on. `command` is borrowed for the call.
    // Driver's thread; may block. INVALID (a value that is not finite; nothing
    // moves), IO.
    td_err (*write)(td_robot_hardware *robot, int64_t now_ns,
                    const float *command);

    // The newest frame of a camera. A JPEG has the camera's size; the rest of
    // it may be damaged. One thread at a time for each camera; may block until
    // the frame is there. INVALID (no such camera), LIMIT (no room for it), IO.
    td_err (*frame)(td_robot_hardware *robot, uint32_t camera, int64_t now_ns,
                    td_robot_picture *picture);
} td_robot_ops;

// Every robot begins with its operations.
struct td_robot_hardware {
    const td_robot_ops *ops;
};

// Opens a robot of the named kind. Owned by the caller. NOTFOUND with the known
// names, or what its open() returns.
TD_NODISCARD td_err td_robot_hardware_open(const char *name,
                                           const td_robot_config *config,
                                           td_robot_hardware **ret_robot,
                                           td_errinfo *info);
void td_robot_hardware_close(td_robot_hardware *robot);
TD_AUTO_FREE(td_robot_hardware, td_robot_hardware_close)

TD_NODISCARD td_err td_robot_hardware_read(td_robot_hardware *robot,
                                           int64_t now_ns, float *ret_state);
TD_NODISCARD td_err td_robot_hardware_write(td_robot_hardware *robot,
                                            int64_t now_ns,
                                            const float *command);
TD_NODISCARD td_err td_robot_hardware_frame(td_robot_hardware *robot,
                                            uint32_t camera, int64_t now_ns,
                                            td_robot_picture *picture);

#endif
