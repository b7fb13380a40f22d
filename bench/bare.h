// SPDX-License-Identifier: Apache-2.0
#ifndef TD_BENCH_BARE_H
#define TD_BENCH_BARE_H

// A bare Zenoh ping to compare with: two processes of its own, which send what
// has the encoded lengths of a setup's observation and of its answer.

#include "bench/rig.h"

#define TD_BENCH_BARE_QUANTILES 2 // p50, p99
#define TD_BENCH_BARE_WARM 40     // more of a block, which do not count

typedef struct td_bench_bare {
    td_bench_child echo, ping;
    size_t blocks; // so far
} td_bench_bare;

// From where the echo answers.
typedef enum td_bench_answer {
    TD_BENCH_AT_ONCE,     // Zenoh's callback
    TD_BENCH_HANDED_OVER, // a thread that the callback wakes
} td_bench_answer;

// Pings of a block come as often as the setup says (fps). IO.
TD_NODISCARD td_err td_bench_bare_start(const td_bench_setup *setup,
                                        td_bench_answer answer, size_t samples,
                                        td_bench_bare *ret_bare,
                                        td_errinfo *info);
void td_bench_bare_end(td_bench_bare *bare);

TD_NODISCARD td_err td_bench_bare_block(td_bench_bare *bare,
                                        double ret_us[TD_BENCH_BARE_QUANTILES],
                                        td_errinfo *info);

#endif
