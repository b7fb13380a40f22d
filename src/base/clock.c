// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"

#include <errno.h>
#include <time.h>

static int64_t monotonic_now_ns(const td_clock *clock)
{
    (void)clock;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * TD_NS_PER_S + now.tv_nsec;
}

const td_clock td_clock_monotonic = {.now_ns = monotonic_now_ns};

int64_t td_clock_wall_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / TD_NS_PER_MS;
}

static int64_t virtual_now_ns(const td_clock *clock)
{
    // The clock is the first member of the virtual one.
    return atomic_load(&((const td_clock_virtual *)clock)->at_ns);
}

void td_clock_virtual_init(td_clock_virtual *clock, int64_t start_ns)
{
    clock->clock.now_ns = virtual_now_ns;
    atomic_init(&clock->at_ns, start_ns);
}

void td_clock_virtual_advance_to(td_clock_virtual *clock, int64_t at_ns)
{
    int64_t seen_ns = atomic_load(&clock->at_ns);
    while (seen_ns < at_ns &&
           !atomic_compare_exchange_weak(&clock->at_ns, &seen_ns, at_ns))
        continue;
}

void td_clock_sleep_until(int64_t at_ns)
{
    const struct timespec until = {at_ns / TD_NS_PER_S, at_ns % TD_NS_PER_S};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) ==
           EINTR)
        continue;
}
