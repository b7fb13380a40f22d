// SPDX-License-Identifier: Apache-2.0
#ifndef TD_PLAN_SEARCH_FEWEST_LOADS_H
#define TD_PLAN_SEARCH_FEWEST_LOADS_H

// Which plan is taken beside a previous one: of those that are nearly as good
// as the best, one that loads the fewest models.

#include "plan/search/search.h"

// `found` is the best, and becomes the one to take. NOMEM.
TD_NODISCARD td_err td_plan_fewest_loads(td_plan_problem *problem,
                                         td_plan_solution *found);

#endif
