// SPDX-License-Identifier: Apache-2.0
#ifndef TD_PLAN_MEMORY_H
#define TD_PLAN_MEMORY_H

// The memory of a plan: one arena, freed with it.

#include "base/arena.h"
#include "plan/plan.h"

// An empty plan. Free with td_plan_free(). The arena is the plan's, borrowed.
// NOMEM.
TD_NODISCARD td_err td_plan_new(td_plan **ret_plan, td_arena **ret_arena);

// Copies every text that the plan points to into its arena. NOMEM.
TD_NODISCARD td_err td_plan_memory_copy_names(td_plan *plan, td_arena *arena);

// As td_plan_new(), with all that `plan` has.
TD_NODISCARD td_err td_plan_copy(const td_plan *plan, td_plan **ret_copy,
                                 td_arena **ret_arena);

#endif
