// SPDX-License-Identifier: Apache-2.0
#include "sched/strategy/expr.h"

#include <math.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// What compiles has a finite value, whatever the fields hold.
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"age_ms", "urgency", "priority"};
    static const double values[][3] = {
        {30, 0.5, 2}, {0, 0, 0}, {1e308, -1e308, 5e-324}, {NAN, INFINITY, -1}};
    td_sched_expr_fields fields = {names, TD_COUNT_OF(names)};
    td_sched_expr expr;
    td_errinfo info = {""};
    if (td_sched_expr_compile((const char *)data, size, fields, &expr, &info))
        return 0;
    for (size_t i = 0; i < TD_COUNT_OF(values); i++)
        if (!isfinite(td_sched_expr_eval(&expr, values[i]))) abort();
    return 0;
}
