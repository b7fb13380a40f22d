// SPDX-License-Identifier: Apache-2.0
#ifndef TD_PLAN_PACK_INTEGER_H
#define TD_PLAN_PACK_INTEGER_H

// Integer programs: the least cost of so many of each column, within limits.
//
// Solved by CBC (EPL-2.0), which is loaded when the first one comes: whoever
// plans no such factory needs none of it.

#include "base/err.h"

#include <stdbool.h>

// Column by column, as sparse matrices are: those of column i are from start[i]
// to start[i + 1].
typedef struct td_plan_integer {
    int columns, rows;
    const int *start, *row;
    const double *factor;
    const double *most;       // of each column; the least is 0
    const double *cost;       // of each column
    const double *low, *high; // of each row
} td_plan_integer;

// Whether the library is there. Any thread.
bool td_plan_integer_can(void);

// One at a time: the library answers wrongly from several threads, so others
// wait. EMPTY when there is no solution; UNSUPPORTED without the library;
// INTERNAL when it gives up; NOMEM.
TD_NODISCARD td_err td_plan_integer_solve(const td_plan_integer *program,
                                          double *ret_counts, double *ret_cost);

#endif
