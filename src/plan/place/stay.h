// SPDX-License-Identifier: Apache-2.0
#ifndef TD_PLAN_PLACE_STAY_H
#define TD_PLAN_PLACE_STAY_H

// What a new plan can leave as it is in the previous one.

#include "plan/place/assemble.h"

// Finds the robots of the previous plan again. Nothing without one. NOMEM.
TD_NODISCARD td_err td_plan_stay_find(td_plan_draft *draft);

// Whether this model was at work on this GPU.
bool td_plan_stay_was_here(const td_plan_draft *draft, const char *node,
                           uint32_t gpu, const char *model);

// How many streams keep their server if a share goes to this GPU.
uint32_t td_plan_stay_streams(const td_plan_draft *draft,
                              const td_plan_share *share, const char *node,
                              uint32_t gpu);

// The server that a robot asks already for a component, as an index of the new
// plan; NONE: another, or none.
uint32_t td_plan_stay_server(const td_plan_draft *draft, uint32_t robot,
                             uint32_t component);

// GPUs and streams of the plan that differ from the previous one.
void td_plan_stay_count(td_plan *plan, const td_plan *previous);

#endif
