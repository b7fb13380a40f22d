// SPDX-License-Identifier: Apache-2.0
#ifndef TD_PLAN_PLACE_ASSEMBLE_H
#define TD_PLAN_PLACE_ASSEMBLE_H

// From allocations of pools to a plan: GPUs, routes, rates, phases, standbys.

#include "plan/search/search.h"

// A plan in the making. Indices are those of the plan.
typedef struct td_plan_draft {
    const td_plan_problem *problem; // borrowed
    const td_plan_solution *found;  // borrowed
    td_arena *arena;                // the plan's
    td_plan *plan;
    uint32_t *allocation_server; // of each allocation
    const td_plan_pool **pools;  // of each server; NULL: a standby
    size_t *types;               // of each server
    uint32_t *streams_of;        // of each server, how many
    double *rates_hz, *saved_hz; // of each robot, actions
    double *loads_hz;            // of each server
    bool *unlike;  // of each server: its robots have rates of their own
    uint32_t *was; // of each robot, its index in the previous plan; NONE. NULL:
                   // there is no previous plan
} td_plan_draft;

// Owned by the caller. NOMEM.
TD_NODISCARD td_err td_plan_assemble(const td_plan_problem *problem,
                                     const td_plan_solution *found,
                                     td_plan **ret_plan);

// Parts of it, in this order.
TD_NODISCARD td_err td_plan_place(td_plan_draft *draft); // servers on GPUs
TD_NODISCARD td_err td_plan_route(td_plan_draft *draft); // streams to servers
void td_plan_robot_rates(td_plan_draft *draft);          // rates of robots
void td_plan_robot_phases(td_plan_draft *draft);

// What a server gives its streams now. False when it cannot hold them.
bool td_plan_draft_point(const td_plan_draft *draft, uint32_t server,
                         double rate_hz, td_plan_point *ret_point);

#endif
