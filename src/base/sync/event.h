// SPDX-License-Identifier: Apache-2.0
#ifndef TD_BASE_SYNC_EVENT_H
#define TD_BASE_SYNC_EVENT_H

// Wakes one waiting thread. Signals do not add up: however many came since the
// last wait, the next wait returns once, at once.
//
// A real-time thread may signal: it costs one atomic exchange, and one futex
// wake only when somebody sleeps.

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct td_event {
    _Atomic uint32_t state;
} td_event;

void td_event_init(td_event *event);

// Any thread; never blocks.
void td_event_signal(td_event *event);

// Sleeps until signalled or until CLOCK_MONOTONIC reads `until_ns` (INT64_MAX:
// no limit). True if signalled. One waiting thread at a time; blocks.
bool td_event_wait_until(td_event *event, int64_t until_ns);

#endif
