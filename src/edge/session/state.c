// SPDX-License-Identifier: Apache-2.0
#include "edge/session/state.h"

#include <stdio.h>
#include <string.h>

#define ON(from, event, to, meaning)                                           \
    {TD_EDGE_##from, TD_EDGE_EVENT_##event, TD_EDGE_##to, meaning}

// What is not here is ignored.
static const td_edge_transition transitions[] = {
    ON(CONNECTING, ATTACHED, STREAMING, "attached to server @"),
    ON(CONNECTING, MISMATCH, STOPPED, "the server does not fit this robot"),
    ON(CONNECTING, TURNED_AWAY, STOPPED, "no server takes this robot"),
    ON(CONNECTING, STOP, STOPPED, "stopped before it had a server"),

    ON(STREAMING, STARVED, DEGRADED, "no action from server @: holding"),
    ON(STREAMING, LIMITS, DEGRADED,
       "limits hit too often in a row: the fail-safe acts"),
    ON(STREAMING, DRIVER, DEGRADED,
       "the driver blocks, fails or lies: the fail-safe acts"),
    ON(STREAMING, OVERDUE, STALLED,
       "no chunk from server @ for too long: asking whether it is there"),
    ON(STREAMING, SILENT, RECONNECTING,
       "server @ answers but sends no chunk: holding, looking for another"),
    ON(STREAMING, GONE, RECONNECTING,
       "server @ is gone: holding, looking for one"),
    ON(STREAMING, STOP, STOPPED, "stopped"),

    ON(DEGRADED, RECOVERED, STREAMING, "playing the actions of server @"),
    ON(DEGRADED, OVERDUE, STALLED,
       "no chunk from server @ for too long: asking whether it is there"),
    ON(DEGRADED, SILENT, RECONNECTING,
       "server @ answers but sends no chunk: holding, looking for another"),
    ON(DEGRADED, GONE, RECONNECTING,
       "server @ is gone: holding, looking for one"),
    ON(DEGRADED, STOP, STOPPED, "stopped"),

    ON(STALLED, CHUNK, STREAMING, "server @ sends chunks after all"),
    ON(STALLED, STILL_THERE, DEGRADED,
       "server @ is there and fits: holding until its next chunk"),
    ON(STALLED, GONE, RECONNECTING,
       "server @ is not there, or not ready: holding, looking for one"),
    ON(STALLED, REFUSED, RECONNECTING,
       "server @ no longer takes this robot: holding, looking for one"),
    ON(STALLED, MISMATCH, RECONNECTING,
       "server @ no longer fits: holding, looking for one"),
    ON(STALLED, STOP, STOPPED, "stopped"),

    ON(RECONNECTING, ATTACHED, DEGRADED,
       "attached to server @: holding until its first chunk"),
    ON(RECONNECTING, STOP, STOPPED, "stopped while it had no server"),
};

const td_edge_transition *td_edge_state_next(td_edge_state state,
                                             td_edge_event event)
{
    for (size_t i = 0; i < sizeof transitions / sizeof *transitions; i++)
        if (transitions[i].from == state && transitions[i].event == event)
            return &transitions[i];
    return NULL;
}

bool td_edge_state_is_attached(td_edge_state state)
{
    return state == TD_EDGE_STREAMING || state == TD_EDGE_DEGRADED ||
           state == TD_EDGE_STALLED;
}

const char *td_edge_state_name(td_edge_state state)
{
    static const char *const names[] = {
#define TD_EDGE_STATE_NAME(name, counter) #name,
        TD_EDGE_STATES(TD_EDGE_STATE_NAME)
#undef TD_EDGE_STATE_NAME
    };
    return names[state];
}

const char *td_edge_state_counter(td_edge_state state)
{
    static const char *const names[] = {
#define TD_EDGE_STATE_COUNTER(name, counter) counter,
        TD_EDGE_STATES(TD_EDGE_STATE_COUNTER)
#undef TD_EDGE_STATE_COUNTER
    };
    return names[state];
}

void td_edge_state_describe(const td_edge_transition *transition,
                            const char *server, char *ret_text, size_t size)
{
    const char *meaning = transition->meaning;
    const char *at = strchr(meaning, '@');
    if (at)
        (void)snprintf(ret_text, size, "%.*s%s%s", (int)(at - meaning), meaning,
                       server, at + 1);
    else
        (void)snprintf(ret_text, size, "%s", meaning);
}

bool td_edge_state_overdue(int64_t now_ns, int64_t since_ns, uint32_t left,
                           int64_t watchdog_ns)
{
    return left == 0 && now_ns - since_ns > watchdog_ns;
}

int64_t td_edge_state_retry_ns(uint32_t attempt, td_rand *rand)
{
    int64_t bound_ns = TD_EDGE_RETRY_MIN_NS;
    for (uint32_t i = 0; i <= attempt && bound_ns < TD_EDGE_RETRY_MAX_NS; i++)
        bound_ns *= 2;
    if (bound_ns > TD_EDGE_RETRY_MAX_NS) bound_ns = TD_EDGE_RETRY_MAX_NS;
    int64_t range_ns = bound_ns - TD_EDGE_RETRY_MIN_NS;
    return TD_EDGE_RETRY_MIN_NS +
           (int64_t)(td_rand_unit(rand) * (double)range_ns);
}
