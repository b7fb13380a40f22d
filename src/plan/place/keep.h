// SPDX-License-Identifier: Apache-2.0
#ifndef TD_PLAN_PLACE_KEEP_H
#define TD_PLAN_PLACE_KEEP_H

// What a new plan can leave as it is in the previous one.

#include "plan/place/assemble.h"

// Finds the robots of the previous plan again. Nothing without one. NOMEM.
TD_NODISCARD td_err td_plan_keep_find(td_plan_draft *draft);

// Whether this model was at work on this GPU.
bool td_plan_keep_had_model(const td_plan_draft *draft, const char *node,
                            uint32_t gpu, const char *model);

// How many streams keep their server if an allocation goes to this GPU.
uint32_t td_plan_keep_streams(const td_plan_draft *draft,
                              const td_plan_allocation *allocation,
                              const char *node, uint32_t gpu);

// The server that a robot asks already for a component, as an index of the new
// plan; NONE: another, or none.
uint32_t td_plan_keep_server(const td_plan_draft *draft, uint32_t robot,
                             uint32_t component);

// GPUs and streams of the plan that differ from the previous one.
void td_plan_keep_count_changes(td_plan *plan, const td_plan *previous);

#endif
