// SPDX-License-Identifier: Apache-2.0
#ifndef TD_PLAN_SEARCH_ALLOCATION_H
#define TD_PLAN_SEARCH_ALLOCATION_H

// What the servers of a packing are asked, what they give, and what that leaves
// to the robots' loops.

#include "plan/search/evaluate.h"

// What a server is asked.
double td_plan_allocation_hz(const td_plan_evaluator *evaluator,
                             const td_plan_allocation *allocation,
                             const double *rates_hz);

// What a server gives streams of unlike rates: all at that of the fastest, in
// phases, or each at its own, without, whatever takes less time. False when it
// cannot.
bool td_plan_allocation_unlike(const td_plan_evaluator *evaluator,
                               const td_plan_allocation *allocation,
                               const double *rates_hz,
                               td_plan_point *ret_point);

// What a server gives, all that was merged into it counted. False when it
// cannot.
bool td_plan_allocation_point(const td_plan_evaluator *evaluator, size_t index,
                              const double *rates_hz, td_plan_point *ret_point);

// How many GPUs load another model for these: of each kind and type, as many as
// are more than served it before.
uint32_t td_plan_allocation_loads(const td_plan_problem *problem,
                                  const td_plan_allocation *allocations,
                                  size_t count);

// Fills in loops_hz.
void td_plan_allocation_loops(td_plan_evaluator *evaluator,
                              const double *rates_hz);

// Compaction, as in the Rosa paper: servers of the same component of different
// classes are merged, the emptiest into the fullest that still holds every
// deadline, until there are GPUs for all.

// False when they still do not fit.
bool td_plan_compact(td_plan_evaluator *evaluator, const double *rates_hz);

#endif
