// SPDX-License-Identifier: Apache-2.0
#ifndef TD_ROBOT_SYNTHETIC_SYNTHETIC_H
#define TD_ROBOT_SYNTHETIC_SYNTHETIC_H

// A robot that needs no hardware and never blocks.
//
// Each joint follows its command: its speed is (command - position) /
// time_constant_s, cut to its speed limit. That is solved exactly, so where a
// joint stands depends on the commands and their times alone, not on how often
// it is read. An angle takes the short way round and reads as (-pi, pi].
//
// Frames show a moving pattern and, in the upper left corner, how many frames
// that camera gave before, as 16 x 5 black and white blocks: 64 bits and a
// checksum of 16, row by row, highest bit first. They survive JPEG.

#include "robot/hardware.h"

#define TD_ROBOT_SYNTHETIC_MIN_HEIGHT 32
#define TD_ROBOT_SYNTHETIC_MIN_WIDTH 64

extern const td_robot_ops td_robot_synthetic;

// Reads the counter back out of a frame, from before or after JPEG. Any thread;
// never blocks. FORMAT if there is none.
TD_NODISCARD td_err td_robot_synthetic_counter(const uint8_t *rgb,
                                               uint32_t height, uint32_t width,
                                               uint64_t *ret_counter);

#endif
