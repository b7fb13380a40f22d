// SPDX-License-Identifier: Apache-2.0
#ifndef TD_BENCH_FOOTAGE_H
#define TD_BENCH_FOOTAGE_H

// Frames as a camera sees them, moving and with noise, made once: what is
// recorded by both sides of a comparison.

#include "bench/bench.h"
#include "robot/hardware.h"

#define TD_BENCH_FOOTAGE_FRAMES 30

typedef struct td_bench_footage {
    uint32_t height, width;
    size_t frame_bytes;
    uint8_t *frames; // TD_BENCH_FOOTAGE_FRAMES, the last leads to the first
} td_bench_footage;

TD_NODISCARD td_err td_bench_footage_init(td_bench_footage *footage,
                                          uint32_t height, uint32_t width);
void td_bench_footage_done(td_bench_footage *footage);

// Frame `number` of a camera, borrowed; cameras do not see the same.
const uint8_t *td_bench_footage_frame(const td_bench_footage *footage,
                                      uint32_t camera, uint64_t number);

// All of them into a file, for another program. IO.
TD_NODISCARD td_err td_bench_footage_write(const td_bench_footage *footage,
                                           const char *path, td_errinfo *info);

// A robot that stands still with cameras that see the footage. Borrows it.
// Owned by the caller, td_robot_hardware_close().
TD_NODISCARD td_err td_bench_footage_robot(const td_bench_footage *footage,
                                           td_robot_hardware **ret_robot);

#endif
