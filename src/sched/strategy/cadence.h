// SPDX-License-Identifier: Apache-2.0
#ifndef TD_SCHED_STRATEGY_CADENCE_H
#define TD_SCHED_STRATEGY_CADENCE_H

// How often each client comes, and what follows: when the next is expected,
// whom to warm up for, who is gone.
//
// A wake-up is a hint: what it warms never runs a request that is not there.
// Pure: no clock, no thread, no lock; room is made once.

#include "base/err.h"

#include <stdbool.h>

typedef struct td_sched_cadence_settings {
    double alpha;          // weight of the newest interval: 0.3
    int64_t gone_ns;       // of silence: 10 s
    int64_t wake_ahead_ns; // 5 ms
    uint32_t wake_samples; // intervals before a wake-up: 5
} td_sched_cadence_settings;

#define TD_SCHED_CADENCE_DEFAULTS                                              \
    {.alpha = 0.3,                                                             \
     .gone_ns = 10000000000,                                                   \
     .wake_ahead_ns = 5000000,                                                 \
     .wake_samples = 5}

extern const td_sched_cadence_settings td_sched_cadence_defaults;

typedef enum td_sched_cadence_kind {
    TD_SCHED_CADENCE_WAKE, // its next is near; at most once for each
    TD_SCHED_CADENCE_GONE, // silent for too long; its cadence is forgotten
} td_sched_cadence_kind;

typedef struct td_sched_cadence_event {
    td_sched_cadence_kind kind;
    uint32_t client;
} td_sched_cadence_event;

typedef struct td_sched_cadence td_sched_cadence;

// For the clients below `capacity`. Owned by the caller. INVALID if there are
// none, or for settings that make no sense.
TD_NODISCARD td_err
td_sched_cadence_new(const td_sched_cadence_settings *settings,
                     uint32_t capacity, td_sched_cadence **ret_cadence);
void td_sched_cadence_free(td_sched_cadence *cadence);
TD_AUTO_FREE(td_sched_cadence, td_sched_cadence_free)

// Other settings from now on; what is known of the clients stays. INVALID.
TD_NODISCARD td_err td_sched_cadence_use(
    td_sched_cadence *cadence, const td_sched_cadence_settings *settings);

void td_sched_cadence_arrived(td_sched_cadence *cadence, uint32_t number,
                              int64_t now_ns);

// The client left in good order: no event follows.
void td_sched_cadence_forget(td_sched_cadence *cadence, uint32_t number);

// When the client's next is expected; NEVER before two have come.
int64_t td_sched_cadence_expected_ns(const td_sched_cadence *cadence,
                                     uint32_t number);

// Takes the next event that is due, the earliest first. False: none is.
bool td_sched_cadence_next(td_sched_cadence *cadence, int64_t now_ns,
                           td_sched_cadence_event *ret_event);

// When to ask again; NEVER while nobody is here.
int64_t td_sched_cadence_wake_ns(const td_sched_cadence *cadence);

#endif
