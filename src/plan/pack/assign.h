// SPDX-License-Identifier: Apache-2.0
#ifndef TD_PLAN_PACK_ASSIGN_H
#define TD_PLAN_PACK_ASSIGN_H

// The assignment problem: a column of its own for each row, so that what the
// pairs are worth is the most in all. Exact (the Hungarian method, by shortest
// paths), in rows^2 * columns steps.

#include "base/err.h"

// `worth` is [rows][columns], finite; no more rows than columns. NOMEM.
TD_NODISCARD td_err td_plan_assign(const double *worth, size_t rows,
                                   size_t columns, size_t *ret_columns);

#endif
