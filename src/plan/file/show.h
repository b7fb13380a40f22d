// SPDX-License-Identifier: Apache-2.0
#ifndef TD_PLAN_FILE_SHOW_H
#define TD_PLAN_FILE_SHOW_H

// A plan for people: tables, reasons, a picture.
//
// Each writes onto a stream and returns nothing; ask the stream (ferror) at the
// end. Blocks on it.

#include "plan/plan.h"

// Classes with their rates, then GPUs with what runs on each.
void td_plan_show(const td_plan *plan, FILE *out);

// What binds each class, and what one GPU more, one robot more and one GPU less
// would do: three plans more. As td_plan_make() where the first of them fails
// for another reason than that it cannot be done.
TD_NODISCARD td_err td_plan_explain(const td_config_factory *factory,
                                    const td_config_profiles *profiles,
                                    const td_plan_options *options,
                                    const td_plan *plan, FILE *out);

// GPUs, what runs on each, who uses it and how much is left, as SVG.
void td_plan_picture(const td_plan *plan, FILE *out);

// How many robots of a class ask a server.
uint32_t td_plan_users(const td_plan *plan, uint32_t server, uint32_t task);

#endif
