// SPDX-License-Identifier: Apache-2.0
#ifndef TD_PLAN_SEARCH_INFEASIBLE_H
#define TD_PLAN_SEARCH_INFEASIBLE_H

// Why a factory cannot even have its least, and the way out.

#include "plan/search/evaluate.h"

// `answer` came of the rates `least_hz`; `scratch_hz` has room for as many.
// LIMIT with the class or the component that cannot be met; NOMEM.
TD_NODISCARD td_err td_plan_infeasible(td_plan_evaluator *evaluator,
                                       td_plan_answer answer,
                                       const double *least_hz,
                                       double *scratch_hz, td_errinfo *info);

#endif
