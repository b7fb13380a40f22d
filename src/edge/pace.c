// SPDX-License-Identifier: Apache-2.0
#include "edge/pace.h"

#include "base/clock.h"

void td_edge_pace_init(td_edge_pace *pace, int64_t hz, int64_t burst_ns)
{
    pace->interval_ns = TD_NS_PER_S / hz;
    pace->burst_ns = burst_ns;
    atomic_init(&pace->next_ns, INT64_MIN);
}

int64_t td_edge_pace_take(td_edge_pace *pace, int64_t now_ns)
{
    int64_t next_ns = atomic_load(&pace->next_ns), place_ns;
    do {
        int64_t first_ns = now_ns - pace->burst_ns;
        place_ns = next_ns > first_ns ? next_ns : first_ns;
    } while (!atomic_compare_exchange_weak(&pace->next_ns, &next_ns,
                                           place_ns + pace->interval_ns));
    return place_ns;
}
