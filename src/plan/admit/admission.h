// SPDX-License-Identifier: Apache-2.0
#ifndef TD_PLAN_ADMIT_ADMISSION_H
#define TD_PLAN_ADMIT_ADMISSION_H

// What admission knows: a plan of its own, and what its servers can
// take.

#include "plan/admit/admit.h"
#include "plan/search/problem.h"

struct td_plan_admission {
    td_plan_problem *problem;
    td_plan *plan;
    td_arena *arena;            // the plan's
    const td_plan_pool **pools; // of each server; NULL: a standby, or idle
    size_t *types;
    uint32_t *streams_of; // of each server, how many
    size_t robot_room, stream_room;
};

// The pool of a component of a task; NULL: none.
const td_plan_pool *td_plan_admission_pool(const td_plan_problem *problem,
                                           uint32_t task, uint32_t component);

#endif
