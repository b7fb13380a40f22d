// SPDX-License-Identifier: Apache-2.0
#ifndef TD_SCHED_BATCH_H
#define TD_SCHED_BATCH_H

// How many run together, and whether to wait for one more.
//
// Decided from the times that the engine's batches really took. Pure: no clock,
// no thread, no lock, no memory.

#include "base/err.h"

#include <stdbool.h>

#define TD_SCHED_MAX_BATCH 64

// When a batch that is not full starts, by the name in the manifest.
#define TD_SCHED_BATCH_WAITS(X)                                                \
    X(SLACK, "slack") /* at the latest when the least slack runs out */        \
    X(NONE, "none")   /* at once */                                            \
    X(FIXED, "fixed") /* when its first has waited for wait_ns */              \
    X(FULL, "full")   /* never */

typedef enum td_sched_batch_wait {
#define TD_SCHED_BATCH_WAIT_ENUM(name, text) TD_SCHED_WAIT_##name,
    TD_SCHED_BATCH_WAITS(TD_SCHED_BATCH_WAIT_ENUM)
#undef TD_SCHED_BATCH_WAIT_ENUM
        TD_SCHED_WAIT_COUNT
} td_sched_batch_wait;

const char *td_sched_batch_wait_name(td_sched_batch_wait wait);

// NOTFOUND.
TD_NODISCARD td_err td_sched_batch_wait_find(const char *name,
                                             td_sched_batch_wait *ret_wait);

typedef struct td_sched_batch_rule {
    td_sched_batch_wait wait;
    uint32_t most;   // 1 to TD_SCHED_MAX_BATCH
    int64_t wait_ns; // FIXED
} td_sched_batch_rule;

// What batches of each size took, as a moving average. All 0: nothing known.
typedef struct td_sched_batch_times {
    int64_t ns[TD_SCHED_MAX_BATCH + 1]; // by size; 0: not known
} td_sched_batch_times;

// A batch of n took this long. The first of its size counts whole.
void td_sched_batch_measured(td_sched_batch_times *times, uint32_t n,
                             int64_t took_ns);

// What a batch of n is expected to take: measured, or between its measured
// neighbours, or in proportion above the largest. 0: nothing is known.
int64_t td_sched_batch_time_ns(const td_sched_batch_times *times, uint32_t n);

// The batch that could start now.
typedef struct td_sched_batch_state {
    uint32_t count;
    int64_t oldest_ns; // since when its first has waited
    int64_t due_ns;    // the earliest that can still be met; NEVER: none
    uint32_t arriving; // who are expected; no more than there is room for
    int64_t arriving_ns[TD_SCHED_MAX_BATCH]; // when, in order
    uint32_t returning; // of its own, who come again soon after their answers
    int64_t return_ns;  // how soon, on average
} td_sched_batch_state;

// When it starts, if nothing else comes: now or earlier means at once, NEVER
// means only when it is full.
//
// With SLACK it waits for as many of those who are expected as pays most: only
// until the least slack runs out, given the time of as many more, and only if
// that costs those who wait less than it saves those who come, and those who
// would come again while the others have the device.
int64_t td_sched_batch_start_ns(const td_sched_batch_rule *rule,
                                const td_sched_batch_times *times,
                                const td_sched_batch_state *state,
                                int64_t now_ns);

// Whether a batch of `count` can take one more without making its earliest
// deadline, that it would meet as it is, a missed one.
bool td_sched_batch_grows(const td_sched_batch_times *times, uint32_t count,
                          int64_t due_ns, int64_t now_ns);

// What an engine that batches continuously is running.
typedef struct td_sched_batch_running {
    uint32_t count;
    double left;    // of the work of the one with the least slack: 0 to 1
    int64_t due_ns; // its deadline; NEVER: none
} td_sched_batch_running;

// Whether one more may join what runs: there is room, and none of those that
// would be on time becomes late by sharing with one more.
bool td_sched_batch_joins(const td_sched_batch_rule *rule,
                          const td_sched_batch_times *times,
                          const td_sched_batch_running *running,
                          int64_t now_ns);

#endif
