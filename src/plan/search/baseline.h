// SPDX-License-Identifier: Apache-2.0
#ifndef TD_PLAN_SEARCH_BASELINE_H
#define TD_PLAN_SEARCH_BASELINE_H

// How others divide GPUs: the baselines of the Rosa paper.

#include "plan/search/search.h"

// How many servers each pool gets, by td_plan_split EQUAL or BY_SIZE. LIMIT
// when there are fewer GPUs than models.
TD_NODISCARD td_err td_plan_baseline_split(td_plan_problem *problem,
                                           td_errinfo *info);

// Shares without rates: streams spread evenly over the servers of each pool,
// or each robot with GPUs of its own for as long as there are any. NOMEM.
TD_NODISCARD td_err td_plan_baseline_allocate(const td_plan_problem *problem,
                                              td_plan_solution *ret_found);

#endif
