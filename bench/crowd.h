// SPDX-License-Identifier: Apache-2.0
#ifndef TD_BENCH_CROWD_H
#define TD_BENCH_CROWD_H

// Many clients of one server in this process, over one session. They attach as
// robots do, then only ask and count: there is no robot behind them.
//
// Functions are for the main thread; the transport's counts what comes.

#include "bench/rig.h"

#define TD_BENCH_CROWD_MAX 4096

// What a client does from now on.
typedef struct td_bench_crowd_plan {
    uint32_t in_flight;  // asks that it keeps under way; with a period, 0
    int64_t pause_ns;    // after an answer, if another is still under way
    int64_t apart_ns;    // between asks while no answer comes
    int64_t patience_ns; // before what was asked last is taken for lost
    int64_t period_ns;   // asks this often, answered or not; 0: does not
    bool corrupt;        // sends what cannot be decoded
    bool counted;        // its round trips are
} td_bench_crowd_plan;

typedef struct td_bench_crowd td_bench_crowd;

// Connects and attaches `count` clients. They do nothing yet. Owned by the
// caller. Blocks.
TD_NODISCARD td_err td_bench_crowd_open(const td_bench_setup *setup,
                                        const td_bench_server *server,
                                        uint32_t count,
                                        td_bench_crowd **ret_crowd,
                                        td_errinfo *info);
void td_bench_crowd_close(td_bench_crowd *crowd);
TD_AUTO_FREE(td_bench_crowd, td_bench_crowd_close)

void td_bench_crowd_set(td_bench_crowd *crowd, uint32_t number,
                        td_bench_crowd_plan plan);

// What came since it was asked last.
typedef struct td_bench_crowd_seen {
    double seconds;
    uint64_t answers[TD_BENCH_CROWD_MAX]; // by client
    uint64_t total;                       // of those who are counted
    uint64_t errors;                      // answers that say so
    uint64_t lost;                        // asked again after a long time
    td_hist round_trip_ns;                // from before the put
} td_bench_crowd_seen;

// Has them at work for this long; what they have under way stays so. Blocks.
// CANCELLED.
TD_NODISCARD td_err td_bench_crowd_run(td_bench_crowd *crowd, int64_t ns,
                                       td_bench_crowd_seen *ret_seen,
                                       td_errinfo *info);

// They ask no more; what is under way gets a moment to end. CANCELLED.
TD_NODISCARD td_err td_bench_crowd_rest(td_bench_crowd *crowd);

#endif
