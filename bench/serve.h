// SPDX-License-Identifier: Apache-2.0
#ifndef TD_BENCH_SERVE_H
#define TD_BENCH_SERVE_H

// The two parts of the server's benchmark.

#include "bench/bench.h"

// Processor time of the server for one request.
TD_NODISCARD td_err td_bench_serve_cpu(const td_bench_options *options,
                                       td_errinfo *info);

#endif
