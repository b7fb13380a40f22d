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

// How others divide GPUs: the baselines of the Rosa paper.
//
// How many servers each pool gets, by td_plan_split EQUAL or BY_SIZE. LIMIT
// when there are fewer GPUs than models.
TD_NODISCARD td_err td_plan_baseline_split(td_plan_problem *problem,
                                           td_errinfo *info);

// Shares without rates: streams spread evenly over the servers of each pool,
// or each robot with GPUs of its own for as long as there are any. NOMEM.
TD_NODISCARD td_err td_plan_baseline_allocate(const td_plan_problem *problem,
                                              td_plan_solution *ret_found);

// Which plan is taken beside a previous one: of those that are nearly as good
// as the best, one that loads the fewest models.
// `found` is the best, and becomes the one to take. NOMEM.
TD_NODISCARD td_err td_plan_fewest_loads(td_plan_problem *problem,
                                         td_plan_solution *found);

// Why a factory cannot even have its least, and the way out.
// `answer` came of the rates `least_hz`; `scratch_hz` has room for as many.
// LIMIT with the class or the component that cannot be met; NOMEM.
TD_NODISCARD td_err td_plan_infeasible(td_plan_evaluator *evaluator,
                                       td_plan_answer answer,
                                       const double *least_hz,
                                       double *scratch_hz, td_errinfo *info);

#endif
