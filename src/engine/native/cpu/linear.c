// SPDX-License-Identifier: Apache-2.0
// A linear.
//
// A task is a group of columns of what the linear gives: it packs their
// weights, which are then in the nearest memory, and goes through all rows, a
// part of them at a time. Sums begin with the bias and what is added, and grow
// where they will stay. Where the product itself is multiplied (a gate, a
// scale, a second product beside it) it grows in scratch memory instead and is
// joined with the rest at the end.
//
// A row's sum is added up in one order however many rows there are. Rotary
// positions and a norm are steps of their own after the linear.
#include "engine/native/cpu/backend.h"

#include <math.h>
#include <string.h>

#define GROUP 64                // columns of a task
#define NEAR_FLOATS (64u << 10) // of rows that are used again for each panel
#define STRIP 6                 // rows that a kernel computes together
#define APART_ROWS 48           // whose product grows in scratch memory

_Static_assert(GROUP % TD_NATIVE_CPU_MAX_PANEL == 0, "whole panels");

// Columns of out, or of rest, and the rows of the weight that make them.
typedef struct group {
    const td_ops_view *to;
    uint32_t first, cols; // in that view
    uint32_t row;         // of the weight
} group;

// Where a row of the weight begins.
static td_ops_source row_of(const td_ops_linear_weight *weight, uint32_t row)
{
    const td_ops_linear_part *part = weight->parts;
    while (row >= part->out)
        row -= part++->out;
    size_t bytes = td_ops_bytes(part->weight.dtype);
    return (td_ops_source){(const char *)part->weight.data +
                               row * weight->stride * bytes,
                           part->weight.dtype};
}

static void pack_floats(const float *const *rows, uint32_t cols, size_t depth,
                        uint32_t panel, float *to)
{
    for (size_t k = 0; k < depth; k++)
        for (uint32_t col = 0; col < cols; col++)
            to[k * panel + col] = rows[col][k];
}

static void pack_halves(const uint16_t *row, size_t depth, uint32_t panel,
                        float *to)
{
    for (size_t k = 0; k < depth; k++) {
        uint32_t bits = (uint32_t)row[k] << 16;
        memcpy(to + k * panel, &bits, sizeof bits);
    }
}

static void pack_row(const td_ops_source *row, size_t depth, uint32_t panel,
                     float *to)
{
    if (row->dtype == TD_OPS_BF16) {
        pack_halves(row->data, depth, panel, to);
        return;
    }
    for (size_t k = 0; k < depth; k++)
        to[k * panel] = td_native_cpu_number(row, k);
}

static void pack_panel(const td_ops_linear_weight *weight, uint32_t first,
                       uint32_t cols, uint32_t panel, float *to)
{
    size_t depth = weight->source.in;
    const float *floats[TD_NATIVE_CPU_MAX_PANEL];
    bool plain = true;
    if (cols < panel) memset(to, 0, depth * panel * sizeof *to);
    for (uint32_t col = 0; col < cols; col++) {
        td_ops_source row = row_of(weight, first + col);
        floats[col] = row.data;
        plain = plain && row.dtype == TD_OPS_F32;
    }
    if (plain) {
        pack_floats(floats, cols, depth, panel, to);
        return;
    }
    for (uint32_t col = 0; col < cols; col++) {
        td_ops_source row = row_of(weight, first + col);
        pack_row(&row, depth, panel, to + col);
    }
}

static void pack(const td_ops_linear_weight *weight, uint32_t first,
                 uint32_t cols, uint32_t panel, float *to)
{
    for (uint32_t at = 0; at < cols; at += panel)
        pack_panel(weight, first + at, cols - at < panel ? cols - at : panel,
                   panel, to + (size_t)at * weight->source.in);
}

static const td_ops_view *target(const td_ops_linear *op)
{
    return op->out.data ? &op->out : &op->normed;
}

static bool is_apart(const td_ops_linear *op)
{
    return op->weight->source.gated || op->gate.table.data || op->scale != 0;
}

// What the sums begin with.
static void fill(const td_ops_linear *op, const group *of, uint32_t member,
                 uint32_t row)
{
    const float *bias = op->weight->bias;
    float *to = td_native_cpu_row(of->to, member, row) + of->first;
    if (op->add.data) {
        const float *add = td_native_cpu_row(&op->add, member, row) + of->first;
        for (uint32_t i = 0; i < of->cols; i++)
            to[i] = add[i] + (bias ? bias[of->row + i] : 0.0f);
    } else if (bias) {
        memcpy(to, bias + of->row, of->cols * sizeof *to);
    } else {
        memset(to, 0, of->cols * sizeof *to);
    }
}

static void activate(const td_native_cpu_kernel *kernel,
                     td_ops_activation activation, float *row, uint32_t cols)
{
    if (activation == TD_OPS_RELU)
        for (uint32_t i = 0; i < cols; i++)
            row[i] = row[i] > 0 ? row[i] : 0;
    if (activation == TD_OPS_GELU)
        for (uint32_t i = 0; i < cols; i++)
            row[i] *= 0.5f * (1.0f + erff(row[i] * 0.70710678f));
    if (activation == TD_OPS_GELU_TANH || activation == TD_OPS_SILU)
        kernel->sigmoid(row, cols, activation == TD_OPS_GELU_TANH);
}

typedef struct part {
    uint32_t member, row, rows; // of these rows
    const group *of;            // these columns
} part;

static void multiply(const td_native_cpu_step *step, const part *now,
                     const float *packed, float *c, size_t c_stride)
{
    const td_ops_linear *op = &step->as.linear;
    uint32_t panel = step->kernel->panel, depth = op->weight->source.in;
    for (uint32_t at = 0; at < now->of->cols; at += panel) {
        uint32_t left = now->of->cols - at;
        const td_native_cpu_product product = {
            .a = td_native_cpu_row(&op->x, now->member, now->row),
            .a_stride = op->x.row_stride,
            .starts = &(size_t){0},
            .runs = 1,
            .depth = depth,
            .panel = packed + (size_t)at * depth,
            .c = c + at,
            .c_stride = c_stride,
            .rows = now->rows,
            .cols = left < panel ? left : panel,
        };
        step->kernel->multiply(&product);
    }
}

static void run_in_place(const td_native_cpu_step *step, const part *now,
                         const float *packed)
{
    const td_ops_linear *op = &step->as.linear;
    const group *of = now->of;
    for (uint32_t i = 0; i < now->rows; i++)
        fill(op, of, now->member, now->row + i);
    multiply(step, now, packed,
             td_native_cpu_row(of->to, now->member, now->row) + of->first,
             of->to->row_stride);
    for (uint32_t i = 0; i < now->rows; i++)
        activate(step->kernel, op->activation,
                 td_native_cpu_row(of->to, now->member, now->row + i) +
                     of->first,
                 of->cols);
}

// x W^T + b of rows of the weight that are packed.
static void product_apart(const td_native_cpu_step *step, const part *now,
                          const float *packed, uint32_t row, float *tile)
{
    const float *bias = step->as.linear.weight->bias;
    for (uint32_t i = 0; i < now->rows; i++) {
        float *to = tile + (size_t)i * GROUP;
        if (bias)
            memcpy(to, bias + row, now->of->cols * sizeof *to);
        else
            memset(to, 0, now->of->cols * sizeof *to);
    }
    multiply(step, now, packed, tile, GROUP);
}

// out = add + scale * gate * product.
static void join_gate(const td_ops_linear *op, const part *now, uint32_t row,
                      const float *product)
{
    const group *of = now->of;
    float *to = td_native_cpu_row(of->to, now->member, row) + of->first;
    const float *gate = NULL, *add = NULL;
    float scale = op->scale != 0 ? op->scale : 1;
    if (op->gate.table.data)
        gate = td_native_cpu_modulation(&op->gate, now->member, row) +
               (size_t)op->gate.table.cols / 3 * 2 + of->first;
    if (op->add.data)
        add = td_native_cpu_row(&op->add, now->member, row) + of->first;
    for (uint32_t i = 0; i < of->cols; i++) {
        float value = product[i] * scale;
        if (gate) value *= gate[i];
        to[i] = add ? add[i] + value : value;
    }
}

static void run_apart(const td_native_cpu_step *step, const part *now,
                      const float *packed, float *tiles)
{
    const td_ops_linear *op = &step->as.linear;
    const td_ops_linear_source *source = &op->weight->source;
    const group *of = now->of;
    float *second = tiles + (size_t)APART_ROWS * GROUP;
    product_apart(step, now, packed, of->row, tiles);
    if (source->gated)
        product_apart(step, now, packed + (size_t)GROUP * source->in,
                      of->row + source->out, second);
    for (uint32_t i = 0; i < now->rows; i++) {
        float *row = tiles + (size_t)i * GROUP;
        if (!source->gated) {
            join_gate(op, now, now->row + i, row);
            continue;
        }
        float *to =
            td_native_cpu_row(of->to, now->member, now->row + i) + of->first;
        activate(step->kernel, op->activation, row, of->cols);
        for (uint32_t k = 0; k < of->cols; k++)
            to[k] = row[k] * second[(size_t)i * GROUP + k];
    }
}

static group group_of(const td_ops_linear *op, uint32_t task)
{
    const td_ops_view *to = target(op);
    uint32_t before = 0, own = td_native_cpu_ceil(to->cols, GROUP);
    if (task >= own) {
        before = to->cols;
        to = &op->rest;
        task -= own;
    }
    group of = {.to = to, .first = task * GROUP, .cols = GROUP};
    if (to->cols - of.first < GROUP) of.cols = to->cols - of.first;
    of.row = before + of.first;
    return of;
}

// Rows that are worth to be near, in whole strips.
static uint32_t rows_at_once(const td_ops_linear *op)
{
    uint32_t most = NEAR_FLOATS / op->weight->source.in / STRIP * STRIP;
    if (most < STRIP) most = STRIP;
    return is_apart(op) && most > APART_ROWS ? APART_ROWS : most;
}

static void run_linear(const td_native_cpu_step *step, uint32_t task,
                       float *scratch)
{
    const td_ops_linear *op = &step->as.linear;
    const td_ops_linear_source *source = &op->weight->source;
    group of = group_of(op, task);
    size_t packed = (size_t)GROUP * source->in;
    pack(op->weight, of.row, of.cols, step->kernel->panel, scratch);
    if (source->gated)
        pack(op->weight, of.row + source->out, of.cols, step->kernel->panel,
             scratch + packed);
    uint32_t most = rows_at_once(op);
    for (uint32_t member = 0; member < op->x.batch; member++)
        for (uint32_t row = 0; row < op->x.rows; row += most) {
            uint32_t left = op->x.rows - row;
            const part now = {member, row, left < most ? left : most, &of};
            if (is_apart(op))
                run_apart(step, &now, scratch,
                          scratch + (source->gated ? 2 : 1) * packed);
            else
                run_in_place(step, &now, scratch);
        }
}

static size_t scratch_of(const td_ops_linear *op)
{
    size_t packed = (size_t)op->weight->source.in * GROUP;
    if (!is_apart(op)) return packed;
    size_t products = op->weight->source.gated ? 2 : 1;
    return products * packed + 2 * (size_t)APART_ROWS * GROUP;
}

static bool joins_fit(const td_ops_linear *op)
{
    bool gated = op->weight->source.gated;
    bool apart = is_apart(op);
    bool alone = op->rest.data || gated || op->rotary.table.data;
    return td_native_cpu_modulation_fits(&op->gate, target(op)) &&
           (!apart || gated || op->activation == TD_OPS_NO_ACTIVATION) &&
           (!gated || (!op->add.data && !op->gate.table.data &&
                       !op->rest.data && op->scale == 0)) &&
           (!alone || !op->norm) && (!op->rest.data || !op->add.data);
}

static bool fits(const td_ops_linear *op)
{
    const td_ops_linear_source *source = &op->weight->source;
    const td_ops_view *to = target(op);
    uint32_t cols = source->gated ? source->out : op->weight->rows;
    return to->data && op->x.cols == source->in &&
           to->cols + (op->rest.data ? op->rest.cols : 0) == cols &&
           td_native_cpu_same_rows(&op->x, to) &&
           (!op->rest.data || td_native_cpu_same_rows(&op->rest, to)) &&
           (!op->add.data || (td_native_cpu_same_rows(&op->add, to) &&
                              op->add.cols == to->cols)) &&
           (!op->norm || (td_native_cpu_same_rows(&op->normed, to) &&
                          op->normed.data && op->normed.cols == to->cols)) &&
           joins_fit(op);
}

td_err td_native_cpu_linear(td_ops_backend *backend, const td_ops_linear *op,
                            td_errinfo *info)
{
    if (!fits(op))
        return td_fail(info, TD_ERR_INVALID,
                       "a linear of %u to %u does not fit its views",
                       op->weight->source.in, op->weight->rows);
    td_native_cpu_step step = td_native_cpu_backend_step(backend);
    step.task = run_linear;
    step.tasks = td_native_cpu_ceil(target(op)->cols, GROUP);
    if (op->rest.data) step.tasks += td_native_cpu_ceil(op->rest.cols, GROUP);
    step.as.linear = *op;
    TD_TRY(td_native_cpu_backend_add(backend, &step, scratch_of(op), info));
    if (op->rotary.table.data)
        TD_TRY(td_native_cpu_rotary(backend, &op->rotary, target(op), &op->rest,
                                    info));
    if (!op->norm) return TD_OK;
    return td_native_cpu_modulate(backend, op->norm, &op->modulation,
                                  target(op), &op->normed, info);
}
