// SPDX-License-Identifier: Apache-2.0
#ifndef TD_BASE_CLOCK_H
#define TD_BASE_CLOCK_H

// Time in nanoseconds. Deciding code never reads a clock: it is given the time.
// Shells hold a td_clock, which is the machine's monotonic one or a virtual one
// that stands still until a test or the simulator advances it.

#include <stdatomic.h>
#include <stdint.h>

#define TD_NS_PER_US INT64_C(1000)
#define TD_NS_PER_MS INT64_C(1000000)
#define TD_NS_PER_S INT64_C(1000000000)

typedef struct td_clock td_clock;
struct td_clock {
    int64_t (*now_ns)(const td_clock *clock);
};

// Never goes back. Any thread; never blocks.
static inline int64_t td_clock_now_ns(const td_clock *clock)
{
    return clock->now_ns(clock);
}

// CLOCK_MONOTONIC.
extern const td_clock td_clock_monotonic;

// What CLOCK_MONOTONIC reads. Any thread; never blocks.
static inline int64_t td_clock_monotonic_ns(void)
{
    return td_clock_now_ns(&td_clock_monotonic);
}

// Milliseconds since 1970, by the machine's wall clock, which may be set back:
// for a number that grows with each start, never for a duration.
int64_t td_clock_wall_ms(void);

typedef struct td_clock_virtual {
    td_clock clock;
    _Atomic int64_t at_ns;
} td_clock_virtual;

void td_clock_virtual_init(td_clock_virtual *clock, int64_t start_ns);

// Moves to `at_ns`; a time before the present one changes nothing. Any thread.
void td_clock_virtual_advance_to(td_clock_virtual *clock, int64_t at_ns);

// Sleeps until CLOCK_MONOTONIC reads `at_ns`, through signals.
void td_clock_sleep_until(int64_t at_ns);

#endif
