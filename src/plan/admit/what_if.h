// SPDX-License-Identifier: Apache-2.0
#ifndef TD_PLAN_ADMIT_WHAT_IF_H
#define TD_PLAN_ADMIT_WHAT_IF_H

// A factory like another, with more or fewer robots or GPUs: for "what if".

#include "base/arena.h"
#include "config/factory/factory.h"

// Shares of `robots` in all, in the proportions that the tasks have, each with
// at least one; robots beyond those that have names are called TASK-n. 0: as
// they are. `gpus` in all are added to or taken from the last node; 0: as they
// are. The copy borrows from `factory`, and is the arena's. INVALID, NOMEM.
TD_NODISCARD td_err td_plan_what_if(const td_config_factory *factory,
                                    uint32_t robots, uint32_t gpus,
                                    td_arena *arena,
                                    td_config_factory **ret_factory,
                                    td_errinfo *info);

#endif
