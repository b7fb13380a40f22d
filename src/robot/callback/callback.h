// SPDX-License-Identifier: Apache-2.0
#ifndef TD_ROBOT_CALLBACK_CALLBACK_H
#define TD_ROBOT_CALLBACK_CALLBACK_H

// Somebody's own hardware behind functions: what include/tendon/robot.h gives
// its users, as a robot.
//
// They are not trusted. A reading begins as values that are not finite, so that
// one which was left out shows; a code that is no td_err counts as IO; a JPEG
// is held to its camera's size.

#include "robot/hardware.h"

// Each gets the size of its output. A NULL one is not there: UNSUPPORTED.
typedef struct td_robot_callbacks {
    void *user;
    td_err (*read)(void *user, float *ret_state, uint32_t joints);
    td_err (*write)(void *user, const float *command, uint32_t joints);
    td_err (*frame)(void *user, uint32_t camera, uint8_t *ret_rgb,
                    uint32_t height, uint32_t width);
    td_err (*picture)(void *user, uint32_t camera, uint8_t *ret_bytes,
                      size_t room, uint32_t height, uint32_t width,
                      size_t *ret_jpeg);
} td_robot_callbacks;

// Needs td_robot_config.callbacks. INVALID without them, and for cameras
// without one function for their frames, or with both.
extern const td_robot_ops td_robot_callback;

#endif
