// SPDX-License-Identifier: Apache-2.0
#ifndef TD_BENCH_NETNS_H
#define TD_BENCH_NETNS_H

// Two networks of this process's own with a cable between them. They have no
// names: they go away with the last process in them, however that ends.
//
// The calling thread is in the near one while they are open; what it starts is
// where it is at that moment. One thread only.

#include "base/err.h"

#define TD_BENCH_NEAR_ADDRESS "10.77.0.1"
#define TD_BENCH_FAR_ADDRESS "10.77.0.2"

typedef enum td_bench_side { TD_BENCH_NEAR, TD_BENCH_FAR } td_bench_side;

typedef struct td_bench_netns {
    int home_fd; // where this thread was
    int side_fds[2];
} td_bench_netns;

// Owned by the caller. DENIED without root, NOTFOUND without ip, tc and nft,
// IO with what they say.
TD_NODISCARD td_err td_bench_netns_open(td_bench_netns **ret_netns,
                                        td_errinfo *info);
void td_bench_netns_close(td_bench_netns *netns);
TD_AUTO_FREE(td_bench_netns, td_bench_netns_close)

// Moves this thread to a side.
TD_NODISCARD td_err td_bench_netns_enter(const td_bench_netns *netns,
                                         td_bench_side side, td_errinfo *info);

// How fast the cable is, and how many of 100 packets it loses, each way. 0 and
// 0: as the kernel has it.
TD_NODISCARD td_err td_bench_netns_shape(const td_bench_netns *netns,
                                         unsigned mbit, unsigned loss_percent,
                                         td_errinfo *info);

// Bytes that went over the cable to the far side so far. Near side only. IO.
TD_NODISCARD td_err td_bench_netns_sent(uint64_t *ret_bytes, td_errinfo *info);

#endif
