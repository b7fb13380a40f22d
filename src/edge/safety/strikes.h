// SPDX-License-Identifier: Apache-2.0
#ifndef TD_EDGE_SAFETY_STRIKES_H
#define TD_EDGE_SAFETY_STRIKES_H

// What goes wrong with one robot in a row, and when it is too much: late
// answers, warnings of its safety model, failures of its task.
//
// Late answers count for each component by itself; one on time forgives them.
// Only an explicit warning counts as unsafe: a late check is a late answer.
// Whoever gets the answer that it is too much does what the task says for that,
// and the count begins again at 0.
//
// Pure. One thread; never blocks or allocates, O(1).

#include "tendon/wire.h"

#include <stdbool.h>

typedef struct td_edge_strikes_limits {
    uint32_t late;    // in a row are too much; 0 counts as 1
    uint32_t replans; // warnings in a row that the fallback answers; one more
                      // is too much
    uint32_t retries; // of a task that failed; one more failure is too much
} td_edge_strikes_limits;

typedef struct td_edge_strikes {
    td_edge_strikes_limits limits;
    uint32_t late[TD_WIRE_MAX_COMPONENTS];
    uint32_t warnings, failures;
} td_edge_strikes;

void td_edge_strikes_init(td_edge_strikes *strikes,
                          const td_edge_strikes_limits *limits);

// An answer of the component, or none by its deadline. True: too much.
bool td_edge_strikes_answer(td_edge_strikes *strikes, uint32_t component,
                            bool on_time);

// What the safety model says. True: too much.
bool td_edge_strikes_safety(td_edge_strikes *strikes, bool safe);

// What the monitor says: the task has failed, or it goes well. True: too much.
bool td_edge_strikes_task(td_edge_strikes *strikes, bool failed);

#endif
