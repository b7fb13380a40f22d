// SPDX-License-Identifier: Apache-2.0
#include "sim/factory/events.h"

#include <stdlib.h>

void td_sim_factory_events_done(td_sim_factory_events *events)
{
    free(events->cells);
    *events = (td_sim_factory_events){0};
}

static bool before(const td_sim_factory_event *a, const td_sim_factory_event *b)
{
    return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->order < b->order;
}

static bool grow(td_sim_factory_events *events)
{
    if (events->count < events->room) return true;
    size_t room = 2 * events->room + 64;
    td_sim_factory_event *cells =
        realloc(events->cells, room * sizeof *events->cells);
    if (!cells) {
        events->err = TD_ERR_NOMEM;
        return false;
    }
    events->cells = cells;
    events->room = room;
    return true;
}

void td_sim_factory_events_put(td_sim_factory_events *events,
                               const td_sim_factory_event *event)
{
    if (!grow(events)) return;
    td_sim_factory_event entered = *event;
    entered.order = events->put++;
    size_t at = events->count++;
    while (at > 0 && before(&entered, &events->cells[(at - 1) / 2])) {
        events->cells[at] = events->cells[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    events->cells[at] = entered;
}

// The last one sinks from the top to where it belongs.
static void sink(td_sim_factory_events *events)
{
    td_sim_factory_event last = events->cells[events->count];
    size_t at = 0, child;
    while ((child = 2 * at + 1) < events->count) {
        if (child + 1 < events->count &&
            before(&events->cells[child + 1], &events->cells[child]))
            child++;
        if (!before(&events->cells[child], &last)) break;
        events->cells[at] = events->cells[child];
        at = child;
    }
    events->cells[at] = last;
}

bool td_sim_factory_events_take(td_sim_factory_events *events,
                                td_sim_factory_event *ret_event)
{
    if (events->count == 0) return false;
    *ret_event = events->cells[0];
    events->count--;
    events->taken++;
    if (events->count > 0) sink(events);
    return true;
}
