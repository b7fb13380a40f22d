// SPDX-License-Identifier: Apache-2.0
// Norms of rows. A task is a few of them.
#include "engine/native/cpu/backend.h"

#define ROWS 16 // of a task

bool td_native_cpu_modulation_fits(const td_ops_modulation *of,
                                   const td_ops_view *to)
{
    return !of->table.data ||
           (of->table.cols == 3 * to->cols &&
            (!of->choice.data || td_native_cpu_same_rows(&of->choice, to)));
}

static void norm_row(const td_native_cpu_step *step, uint32_t member,
                     uint32_t row)
{
    const td_ops_norm *norm = step->as.norm.norm;
    const td_ops_modulation *by = &step->as.norm.modulation;
    const float *x = td_native_cpu_row(&step->as.norm.x, member, row);
    float *out = td_native_cpu_row(&step->as.norm.out, member, row);
    if (norm->kind == TD_OPS_LAYER_NORM) {
        step->kernel->norm(x, norm->weight, norm->bias, norm->cols,
                           norm->epsilon, out);
    } else if (by->table.data) {
        const float *scale = td_native_cpu_modulation(by, member, row);
        step->kernel->rms(x, scale, scale + norm->cols, 1, norm->cols,
                          norm->epsilon, out);
    } else {
        step->kernel->rms(x, norm->weight, NULL, norm->base, norm->cols,
                          norm->epsilon, out);
    }
}

static void run_norm(const td_native_cpu_step *step, uint32_t task,
                     float *scratch) // NOLINT(readability-non-const-parameter)
{
    (void)scratch;
    const td_ops_view *x = &step->as.norm.x;
    uint32_t rows = x->batch * x->rows, first = task * ROWS;
    for (uint32_t i = first; i < rows && i < first + ROWS; i++)
        norm_row(step, i / x->rows, i % x->rows);
}

// Weights are the norm's own or the modulation's, never both.
static bool norm_fits(const td_ops_norm *norm, const td_ops_modulation *by,
                      const td_ops_view *x, const td_ops_view *out)
{
    bool own = norm->kind == TD_OPS_LAYER_NORM ? norm->weight && norm->bias
                                               : norm->weight && !norm->bias;
    bool modulated = norm->kind == TD_OPS_RMS_NORM && by->table.data &&
                     !norm->weight && !norm->bias;
    return td_native_cpu_same_rows(x, out) && x->cols == norm->cols &&
           out->cols == norm->cols && td_native_cpu_modulation_fits(by, x) &&
           (by->table.data ? modulated : own);
}

td_err td_native_cpu_modulate(td_ops_backend *backend, const td_ops_norm *norm,
                              const td_ops_modulation *modulation,
                              const td_ops_view *x, const td_ops_view *out,
                              td_errinfo *info)
{
    if (!norm_fits(norm, modulation, x, out))
        return td_fail(info, TD_ERR_INVALID,
                       "a norm of %u does not fit its views", norm->cols);
    td_native_cpu_step step = td_native_cpu_backend_step(backend);
    step.task = run_norm;
    step.tasks = td_native_cpu_ceil((size_t)x->batch * x->rows, ROWS);
    step.as.norm.norm = norm;
    step.as.norm.modulation = *modulation;
    step.as.norm.x = *x;
    step.as.norm.out = *out;
    return td_native_cpu_backend_add(backend, &step, 0, info);
}

td_err td_native_cpu_norm(td_ops_backend *backend, const td_ops_norm *norm,
                          const td_ops_view *x, const td_ops_view *out,
                          td_errinfo *info)
{
    const td_ops_modulation none = {0};
    return td_native_cpu_modulate(backend, norm, &none, x, out, info);
}
