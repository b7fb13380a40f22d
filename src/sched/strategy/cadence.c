// SPDX-License-Identifier: Apache-2.0
#include "sched/strategy/cadence.h"

#include "sched/strategy/heap.h"

#include <assert.h>
#include <stdlib.h>

const td_sched_cadence_settings td_sched_cadence_defaults =
    TD_SCHED_CADENCE_DEFAULTS;

typedef struct client {
    bool here;
    bool awake; // told of its next already
    uint32_t intervals;
    int64_t last_ns;
    double interval_ns; // moving average
} client;

struct td_sched_cadence {
    td_sched_cadence_settings settings;
    uint32_t capacity;
    td_sched_heap events; // of each client that is here, its next
    client clients[];
};

static bool makes_sense(const td_sched_cadence_settings *s)
{
    return s->alpha > 0 && s->alpha <= 1 && s->gone_ns > 0 &&
           s->wake_ahead_ns >= 0;
}

td_err td_sched_cadence_new(const td_sched_cadence_settings *settings,
                            uint32_t capacity, td_sched_cadence **ret_cadence)
{
    if (capacity == 0 || !makes_sense(settings)) return TD_ERR_INVALID;
    TD_AUTO(td_sched_cadence) *cadence =
        calloc(1, sizeof *cadence + capacity * sizeof cadence->clients[0]);
    if (!cadence) return TD_ERR_NOMEM;
    cadence->settings = *settings;
    cadence->capacity = capacity;
    TD_TRY(td_sched_heap_init(&cadence->events, capacity));
    *ret_cadence = TD_TAKE(cadence);
    return TD_OK;
}

void td_sched_cadence_free(td_sched_cadence *cadence)
{
    td_sched_heap_done(&cadence->events);
    free(cadence);
}

static int64_t expected_ns(const client *c)
{
    if (c->intervals == 0) return TD_SCHED_NEVER_NS;
    return c->last_ns + (int64_t)c->interval_ns;
}

static bool wakes(const td_sched_cadence *cadence, const client *c)
{
    return !c->awake && c->intervals >= cadence->settings.wake_samples &&
           c->intervals > 0;
}

static void plan(td_sched_cadence *cadence, uint32_t number)
{
    const client *c = &cadence->clients[number];
    int64_t at_ns = c->last_ns + cadence->settings.gone_ns;
    if (wakes(cadence, c)) {
        int64_t wake_ns = expected_ns(c) - cadence->settings.wake_ahead_ns;
        if (wake_ns < at_ns) at_ns = wake_ns;
    }
    td_sched_heap_put(&cadence->events, number, at_ns);
}

td_err td_sched_cadence_use(td_sched_cadence *cadence,
                            const td_sched_cadence_settings *settings)
{
    if (!makes_sense(settings)) return TD_ERR_INVALID;
    cadence->settings = *settings;
    for (uint32_t i = 0; i < cadence->capacity; i++)
        if (cadence->clients[i].here) plan(cadence, i);
    return TD_OK;
}

void td_sched_cadence_arrived(td_sched_cadence *cadence, uint32_t number,
                              int64_t now_ns)
{
    assert(number < cadence->capacity);
    client *c = &cadence->clients[number];
    if (c->here) {
        double interval_ns = (double)(now_ns - c->last_ns);
        double weight = c->intervals == 0 ? 1 : cadence->settings.alpha;
        c->interval_ns += weight * (interval_ns - c->interval_ns);
        if (c->intervals < UINT32_MAX) c->intervals++;
    }
    c->here = true;
    c->awake = false;
    c->last_ns = now_ns;
    plan(cadence, number);
}

void td_sched_cadence_forget(td_sched_cadence *cadence, uint32_t number)
{
    cadence->clients[number] = (client){0};
    td_sched_heap_take(&cadence->events, number);
}

int64_t td_sched_cadence_expected_ns(const td_sched_cadence *cadence,
                                     uint32_t number)
{
    return expected_ns(&cadence->clients[number]);
}

bool td_sched_cadence_next(td_sched_cadence *cadence, int64_t now_ns,
                           td_sched_cadence_event *ret_event)
{
    if (td_sched_heap_key(&cadence->events) > now_ns) return false;
    uint32_t number = td_sched_heap_first(&cadence->events);
    client *c = &cadence->clients[number];
    bool gone = now_ns - c->last_ns >= cadence->settings.gone_ns;
    *ret_event = (td_sched_cadence_event){
        gone ? TD_SCHED_CADENCE_GONE : TD_SCHED_CADENCE_WAKE, number};
    if (gone) {
        td_sched_cadence_forget(cadence, number);
    } else {
        c->awake = true;
        plan(cadence, number);
    }
    return true;
}

int64_t td_sched_cadence_wake_ns(const td_sched_cadence *cadence)
{
    return td_sched_heap_key(&cadence->events);
}
