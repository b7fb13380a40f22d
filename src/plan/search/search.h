// SPDX-License-Identifier: Apache-2.0
#ifndef TD_PLAN_SEARCH_SEARCH_H
#define TD_PLAN_SEARCH_SEARCH_H

// The search for the rates of the classes: bisection for one class, the paper's
// adaptive frontier search for several, and from several starts with exchanges
// between classes where the options allow more than the paper's.
//
// Feasibility is monotone (plan/capacity/curve.h), so a rate vector above one
// that was found infeasible is never tried.

#include "plan/search/evaluate.h"

typedef struct td_plan_solution {
    double *rates_hz; // by task
    td_plan_allocation *allocations;
    size_t allocation_count;
    double *loops_hz;
    double *bounds_hz; // by task: no more is possible beside the others' rates
    bool *by_loop;     // and it is the robot's own loop that says so
    double value_hz;
    uint32_t points;
} td_plan_solution;

// Memory is the problem's. LIMIT with the class that cannot have its minimum;
// NOMEM.
TD_NODISCARD td_err td_plan_search(const td_plan_problem *problem,
                                   td_plan_solution *ret_found,
                                   td_errinfo *info);

#endif
