// SPDX-License-Identifier: Apache-2.0
#include "edge/safety/strikes.h"

void td_edge_strikes_init(td_edge_strikes *strikes,
                          const td_edge_strikes_limits *limits)
{
    *strikes = (td_edge_strikes){.limits = *limits};
}

// One more, or none any longer. True when that makes more than `allowed`.
static bool count(uint32_t *strikes, bool bad, uint32_t allowed)
{
    if (bad && (*strikes)++ < allowed) return false;
    *strikes = 0;
    return bad;
}

bool td_edge_strikes_answer(td_edge_strikes *strikes, uint32_t component,
                            bool on_time)
{
    uint32_t late = strikes->limits.late;
    return count(&strikes->late[component], !on_time, late > 0 ? late - 1 : 0);
}

bool td_edge_strikes_safety(td_edge_strikes *strikes, bool safe)
{
    return count(&strikes->warnings, !safe, strikes->limits.replans);
}

bool td_edge_strikes_task(td_edge_strikes *strikes, bool failed)
{
    return count(&strikes->failures, failed, strikes->limits.retries);
}
