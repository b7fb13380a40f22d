// SPDX-License-Identifier: Apache-2.0
#include "bench/bench.h"
td_err td_bench_soak(const td_bench_options *options, td_errinfo *info)
{
    (void)options, (void)info;
    return TD_OK;
}
