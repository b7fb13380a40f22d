// SPDX-License-Identifier: Apache-2.0
#ifndef TD_PLAN_SEARCH_COMPACT_H
#define TD_PLAN_SEARCH_COMPACT_H

// Compaction, as in the Rosa paper: servers of the same component of different
// classes are merged, the emptiest into the fullest that still holds every
// deadline, until there are GPUs for all.

#include "plan/search/evaluate.h"

// False when they still do not fit.
bool td_plan_compact(td_plan_evaluator *evaluator, const double *rates_hz);

#endif
