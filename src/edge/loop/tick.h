// SPDX-License-Identifier: Apache-2.0
#ifndef TD_EDGE_LOOP_TICK_H
#define TD_EDGE_LOOP_TICK_H

// The control tick: once a control period it has the core decide, hands the
// command to the driver, asks for an observation where one is due, and leaves a
// row for the recorder. On a real-time thread of its own, or on that of a host
// that owns its loop and pulls.
//
// It takes no lock, allocates nothing and waits for nobody.

#include "edge/loop/driver.h"
#include "edge/record/recorder.h"
#include "edge/report/trace.h"

typedef struct td_edge_tick_config {
    td_edge_core *core; // this and all else is borrowed
    td_edge_driver *driver;
    td_edge_publisher *publisher;
    const td_edge_link *link;
    td_edge_recorder *recorder; // NULL: nothing is recorded
    td_edge_trace *trace;       // NULL: none
    uint32_t channels;
    uint32_t policy_states; // 0: the policy sees the joints
    int64_t period_ns;      // of a control tick
} td_edge_tick_config;

typedef struct td_edge_tick td_edge_tick;

// Owned by the caller. NOMEM.
TD_NODISCARD td_err td_edge_tick_new(const td_edge_tick_config *config,
                                     td_edge_tick **ret_tick);

// Starts the thread, td-tick; a priority or CPU that is refused is said in the
// log. As td_thread_start().
TD_NODISCARD td_err td_edge_tick_start(td_edge_tick *tick,
                                       int realtime_priority, int cpu,
                                       td_errinfo *info);

// Ends the thread: within a period. Blocks so long.
void td_edge_tick_end(td_edge_tick *tick);

void td_edge_tick_free(td_edge_tick *tick);
TD_AUTO_FREE(td_edge_tick, td_edge_tick_free)

// As td_edge_pull().
td_edge_step td_edge_tick_pull(td_edge_tick *tick, const float *state);

typedef struct td_edge_tick_stats {
    uint64_t missed;            // periods that went by while it was late
    const td_hist *lateness_ns; // wake-up after its due time; borrowed
    const td_hist *age_ns;      // of what is played; borrowed
} td_edge_tick_stats;

// Any thread.
td_edge_tick_stats td_edge_tick_stats_get(const td_edge_tick *tick);

#endif
