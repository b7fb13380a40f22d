// SPDX-License-Identifier: Apache-2.0
// A task is a group of columns: it packs their weights, which are then in the
// nearest memory, and goes through all rows.
#include "engine/native/cpu/backend.h"

#include <math.h>
#include <string.h>

#define GROUP 64                // columns of a task
#define NEAR_FLOATS (64u << 10) // of rows that are used again for each panel
#define STRIP 6                 // rows that a kernel computes together
#define NORM_ROWS 16            // of a task

_Static_assert(GROUP % TD_NATIVE_CPU_MAX_PANEL == 0, "whole panels");

static void pack(const td_ops_linear_source *source, uint32_t first,
                 uint32_t cols, uint32_t panel, float *to)
{
    size_t depth = source->in;
    if (cols < panel) memset(to, 0, depth * panel * sizeof *to);
    if (source->weight.dtype == TD_OPS_F32) {
        const float *from = (const float *)source->weight.data + first * depth;
        for (size_t k = 0; k < depth; k++)
            for (uint32_t col = 0; col < cols; col++)
                to[k * panel + col] = from[col * depth + k];
        return;
    }
    for (size_t k = 0; k < depth; k++)
        for (uint32_t col = 0; col < cols; col++)
            to[k * panel + col] = td_native_cpu_number(
                &source->weight, (first + col) * depth + k);
}

static const td_ops_view *target(const td_ops_linear *op)
{
    return op->out.data ? &op->out : &op->normed;
}

// What the sums begin with.
static void fill(const td_ops_linear *op, uint32_t member, uint32_t row,
                 uint32_t first, uint32_t cols)
{
    const float *bias = op->weight->bias;
    float *to = td_native_cpu_row(target(op), member, row) + first;
    if (op->add.data) {
        const float *add = td_native_cpu_row(&op->add, member, row) + first;
        for (uint32_t i = 0; i < cols; i++)
            to[i] = add[i] + (bias ? bias[first + i] : 0.0f);
    } else if (bias) {
        memcpy(to, bias + first, cols * sizeof *to);
    } else {
        memset(to, 0, cols * sizeof *to);
    }
}

static void activate(td_ops_activation activation, float *row, uint32_t cols)
{
    if (activation == TD_OPS_RELU)
        for (uint32_t i = 0; i < cols; i++)
            row[i] = row[i] > 0 ? row[i] : 0;
    if (activation == TD_OPS_GELU)
        for (uint32_t i = 0; i < cols; i++)
            row[i] *= 0.5f * (1.0f + erff(row[i] * 0.70710678f));
}

typedef struct part {
    uint32_t member, row, rows; // of these rows
    uint32_t first, cols;       // these columns
} part;

static void multiply(const td_native_cpu_step *step, const part *of,
                     const float *packed)
{
    const td_ops_linear *op = &step->as.linear;
    const td_ops_view *to = target(op);
    uint32_t panel = step->kernel->panel, depth = op->weight->source.in;
    for (uint32_t at = 0; at < of->cols; at += panel) {
        uint32_t left = of->cols - at;
        const td_native_cpu_product product = {
            .a = td_native_cpu_row(&op->x, of->member, of->row),
            .a_stride = op->x.row_stride,
            .starts = &(size_t){0},
            .runs = 1,
            .depth = depth,
            .panel = packed + (size_t)at * depth,
            .c = td_native_cpu_row(to, of->member, of->row) + of->first + at,
            .c_stride = to->row_stride,
            .rows = of->rows,
            .cols = left < panel ? left : panel,
        };
        step->kernel->multiply(&product);
    }
}

static void run_part(const td_native_cpu_step *step, const part *of,
                     const float *packed)
{
    const td_ops_linear *op = &step->as.linear;
    for (uint32_t i = 0; i < of->rows; i++)
        fill(op, of->member, of->row + i, of->first, of->cols);
    multiply(step, of, packed);
    for (uint32_t i = 0; i < of->rows; i++)
        activate(op->activation,
                 td_native_cpu_row(target(op), of->member, of->row + i) +
                     of->first,
                 of->cols);
}

static void run_linear(const td_native_cpu_step *step, uint32_t task,
                       float *scratch)
{
    const td_ops_linear *op = &step->as.linear;
    const td_ops_linear_source *source = &op->weight->source;
    uint32_t panel = step->kernel->panel, first = task * GROUP;
    uint32_t cols = source->out - first < GROUP ? source->out - first : GROUP;
    for (uint32_t at = 0; at < cols; at += panel)
        pack(source, first + at, cols - at < panel ? cols - at : panel, panel,
             scratch + (size_t)at * source->in);
    uint32_t most = NEAR_FLOATS / source->in / STRIP * STRIP;
    if (most < STRIP) most = STRIP;
    for (uint32_t member = 0; member < op->x.batch; member++)
        for (uint32_t row = 0; row < op->x.rows; row += most) {
            uint32_t left = op->x.rows - row;
            const part of = {member, row, left < most ? left : most, first,
                             cols};
            run_part(step, &of, scratch);
        }
}

static bool same_rows(const td_ops_view *a, const td_ops_view *b)
{
    return a->batch == b->batch && a->rows == b->rows;
}

static bool fits(const td_ops_linear *op)
{
    const td_ops_linear_source *source = &op->weight->source;
    const td_ops_view *to = target(op);
    return to->data && op->x.cols == source->in && to->cols == source->out &&
           same_rows(&op->x, to) &&
           (!op->add.data ||
            (same_rows(&op->add, to) && op->add.cols == to->cols)) &&
           (!op->norm || (same_rows(&op->normed, to) && op->normed.data &&
                          op->normed.cols == to->cols));
}

td_err td_native_cpu_linear(td_ops_backend *backend, const td_ops_linear *op,
                            td_errinfo *info)
{
    if (!fits(op))
        return td_fail(info, TD_ERR_INVALID,
                       "a linear of %u to %u does not fit its views",
                       op->weight->source.in, op->weight->source.out);
    td_native_cpu_step step = td_native_cpu_backend_step(backend);
    step.task = run_linear;
    step.tasks = td_native_cpu_ceil(op->weight->source.out, GROUP);
    step.as.linear = *op;
    TD_TRY(td_native_cpu_backend_add(
        backend, &step, (size_t)op->weight->source.in * GROUP, info));
    if (!op->norm) return TD_OK;
    return td_native_cpu_norm(backend, op->norm, target(op), &op->normed, info);
}

static void run_norm(const td_native_cpu_step *step, uint32_t task,
                     float *scratch) // NOLINT(readability-non-const-parameter)
{
    (void)scratch;
    const td_ops_norm *norm = step->as.norm.norm;
    const td_ops_view *x = &step->as.norm.x, *out = &step->as.norm.out;
    uint32_t rows = x->batch * x->rows, first = task * NORM_ROWS;
    for (uint32_t i = first; i < rows && i < first + NORM_ROWS; i++)
        step->kernel->norm(td_native_cpu_row(x, i / x->rows, i % x->rows),
                           norm->weight, norm->bias, norm->cols, norm->epsilon,
                           td_native_cpu_row(out, i / x->rows, i % x->rows));
}

td_err td_native_cpu_norm(td_ops_backend *backend, const td_ops_norm *norm,
                          const td_ops_view *x, const td_ops_view *out,
                          td_errinfo *info)
{
    if (!same_rows(x, out) || x->cols != norm->cols || out->cols != norm->cols)
        return td_fail(info, TD_ERR_INVALID,
                       "a norm of %u does not fit its views", norm->cols);
    td_native_cpu_step step = td_native_cpu_backend_step(backend);
    step.task = run_norm;
    step.tasks = td_native_cpu_ceil((size_t)x->batch * x->rows, NORM_ROWS);
    step.as.norm.norm = norm;
    step.as.norm.x = *x;
    step.as.norm.out = *out;
    return td_native_cpu_backend_add(backend, &step, 0, info);
}
