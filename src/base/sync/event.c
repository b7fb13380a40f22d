// SPDX-License-Identifier: Apache-2.0
#include "base/sync/event.h"

#include "base/clock.h"

#include <errno.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { IDLE, SIGNALLED, WAITING };

void td_event_init(td_event *event)
{
    atomic_init(&event->state, IDLE);
}

void td_event_signal(td_event *event)
{
    if (atomic_exchange(&event->state, SIGNALLED) == WAITING)
        syscall(SYS_futex, &event->state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void sleep_while_waiting(td_event *event, int64_t until_ns)
{
    if (until_ns < 0) until_ns = 0;
    const struct timespec until = {until_ns / TD_NS_PER_S,
                                   until_ns % TD_NS_PER_S};
    const struct timespec *limit = until_ns == INT64_MAX ? NULL : &until;

    // The bitset form is the one that takes an absolute time.
    while (atomic_load(&event->state) == WAITING) {
        long rc = syscall(SYS_futex, &event->state, FUTEX_WAIT_BITSET_PRIVATE,
                          WAITING, limit, NULL, FUTEX_BITSET_MATCH_ANY);
        if (rc < 0 && errno == ETIMEDOUT) return;
    }
}

bool td_event_wait_until(td_event *event, int64_t until_ns)
{
    uint32_t idle = IDLE;
    if (atomic_compare_exchange_strong(&event->state, &idle, WAITING))
        sleep_while_waiting(event, until_ns);
    return atomic_exchange(&event->state, IDLE) == SIGNALLED;
}
