// SPDX-License-Identifier: Apache-2.0
#ifndef TD_BENCH_PYTHON_H
#define TD_BENCH_PYTHON_H

// The parts of `tendon bench python` that are files of their own.

#include "bench/bench.h"

// A robot of LeRobot's over a slow and lossy network. Needs LeRobot, and root:
// says so and prints nothing without.
#define TD_BENCH_PYTHON_NET "net/100mbit-loss2"
TD_NODISCARD td_err td_bench_python_net(const td_bench_options *options,
                                        td_errinfo *info);

// A robot whose code holds Python's lock.
#define TD_BENCH_PYTHON_GIL "gil"
TD_NODISCARD td_err td_bench_python_gil(const td_bench_options *options,
                                        td_errinfo *info);

#endif
