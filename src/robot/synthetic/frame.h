// SPDX-License-Identifier: Apache-2.0
#ifndef TD_ROBOT_SYNTHETIC_FRAME_H
#define TD_ROBOT_SYNTHETIC_FRAME_H

// The pictures of a synthetic camera: diagonal waves of colour that move with
// the counter, and the counter in blocks on top. One row of the pattern is made
// at the start; a frame is that row, copied from another place for each line.

#include "base/err.h"

typedef struct td_robot_synthetic_frame {
    uint32_t height, width;
    uint8_t *pattern; // a row and one period more
} td_robot_synthetic_frame;

// NOMEM. Free with td_robot_synthetic_frame_done().
TD_NODISCARD td_err td_robot_synthetic_frame_init(
    td_robot_synthetic_frame *frame, uint32_t height, uint32_t width);
void td_robot_synthetic_frame_done(td_robot_synthetic_frame *frame);

// Writes height x width x RGB. The same counter gives the same picture. Any
// thread; never blocks.
void td_robot_synthetic_frame_render(const td_robot_synthetic_frame *frame,
                                     uint64_t counter, uint8_t *ret_rgb);

#endif
