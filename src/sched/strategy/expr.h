// SPDX-License-Identifier: Apache-2.0
#ifndef TD_SCHED_STRATEGY_EXPR_H
#define TD_SCHED_STRATEGY_EXPR_H

// A score as an expression over named fields: no code of its writer runs.
//
//   25 * urgency + min(age_ms / budget_ms, 1) * 15 + (steps < 3) * 100
//
// Numbers, fields, + - * /, comparisons (1 or 0, one a level: a < b < c is
// refused), parentheses, min(a, b, …), max(a, b, …), clamp(x, low, high).
// x / 0 is 0, and what would be beyond the largest number is the largest
// number, so that a value is always finite.
//
// Compiled once into a bounded program; evaluating takes no memory and a time
// that the program's length bounds. A compiled expression is plain data: it may
// be copied, and any thread may evaluate it.

#include "base/err.h"

#define TD_SCHED_EXPR_MAX_TEXT 1024
#define TD_SCHED_EXPR_MAX_OPS 256
#define TD_SCHED_EXPR_MAX_DEPTH 32 // parentheses, calls and signs in each other
#define TD_SCHED_EXPR_MAX_STACK 32 // values waiting at a time

typedef struct td_sched_expr_op {
    uint8_t what;
    uint16_t field; // FIELD: which
    double number;  // NUMBER
} td_sched_expr_op;

typedef struct td_sched_expr {
    uint32_t count;
    td_sched_expr_op ops[TD_SCHED_EXPR_MAX_OPS];
} td_sched_expr;

// The fields that an expression may name, in the order of its values.
typedef struct td_sched_expr_fields {
    const char *const *names;
    uint32_t count;
} td_sched_expr_fields;

// FORMAT with column, what is there and what would be right; LIMIT if it is too
// long or nested too deeply.
TD_NODISCARD td_err td_sched_expr_compile(const char *text, size_t size,
                                          td_sched_expr_fields fields,
                                          td_sched_expr *ret_expr,
                                          td_errinfo *info);

// `values` has one for each field; what is not finite among them counts as 0.
double td_sched_expr_eval(const td_sched_expr *expr, const double *values);

#endif
