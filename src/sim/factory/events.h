// SPDX-License-Identifier: Apache-2.0
#ifndef TD_SIM_FACTORY_EVENTS_H
#define TD_SIM_FACTORY_EVENTS_H

// What happens when: the earliest first, those of one moment as they were put.

#include "base/err.h"

#include <stdbool.h>

typedef struct td_sim_factory_event {
    int64_t at_ns;
    uint64_t order; // set by put
    void *subject;
    uint64_t tag; // the putter's: tells one that no longer counts
    uint32_t kind;
} td_sim_factory_event;

typedef struct td_sim_factory_events {
    td_sim_factory_event *cells; // a heap, the next at 0
    size_t count, room;
    uint64_t put, taken;
    td_err err;          // NOMEM: one was not put
} td_sim_factory_events; // all 0: empty

void td_sim_factory_events_done(td_sim_factory_events *events);

// When there is no memory, `err` says so and the event is lost.
void td_sim_factory_events_put(td_sim_factory_events *events,
                               const td_sim_factory_event *event);

// False: there is none.
bool td_sim_factory_events_take(td_sim_factory_events *events,
                                td_sim_factory_event *ret_event);

#endif
