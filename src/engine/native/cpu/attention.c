// SPDX-License-Identifier: Apache-2.0
// A task is one head of one member: its keys and values are packed once, then
// the queries go through them in blocks.
#include "engine/native/cpu/backend.h"

#include <string.h>

#define QUERIES 48 // of a block

// Sizes of one head, in floats.
typedef struct head {
    uint32_t size;        // columns
    uint32_t keys;        // rows of k and v
    uint32_t wide;        // keys, in whole panels
    size_t packed_keys;   // [panels of keys][size][panel]
    size_t packed_values; // [panels of columns][keys][panel]
    size_t scores;        // [QUERIES][wide]
} head;

static head head_of(const td_ops_attention *op, uint32_t panel)
{
    head of = {.size = op->q.cols / op->heads, .keys = op->k.rows};
    of.wide = td_native_cpu_ceil(of.keys, panel) * panel;
    of.packed_keys = (size_t)of.wide * of.size;
    of.packed_values =
        (size_t)td_native_cpu_ceil(of.size, panel) * panel * of.keys;
    of.scores = (size_t)QUERIES * of.wide;
    return of;
}

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static void pack_keys(const td_ops_attention *op, const head *of,
                      uint32_t member, uint32_t first, uint32_t panel,
                      float *to)
{
    memset(to, 0, of->packed_keys * sizeof *to);
    for (uint32_t key = 0; key < of->keys; key++) {
        const float *from = td_native_cpu_row(&op->k, member, key) + first;
        float *at = to + (size_t)(key / panel) * panel * of->size + key % panel;
        for (uint32_t i = 0; i < of->size; i++)
            at[(size_t)i * panel] = from[i];
    }
}

static void pack_values(const td_ops_attention *op, const head *of,
                        uint32_t member, uint32_t first, uint32_t panel,
                        float *to)
{
    memset(to, 0, of->packed_values * sizeof *to);
    for (uint32_t key = 0; key < of->keys; key++) {
        const float *from = td_native_cpu_row(&op->v, member, key) + first;
        for (uint32_t i = 0; i < of->size; i += panel)
            memcpy(to + ((size_t)i * of->keys + (size_t)key * panel), from + i,
                   least(panel, of->size - i) * sizeof *to);
    }
}

// c = a * packed, for all panels of it.
static void multiply(const td_native_cpu_kernel *kernel,
                     td_native_cpu_product product, const float *packed,
                     uint32_t cols)
{
    float *c = product.c;
    product.fresh = true;
    for (uint32_t at = 0; at < cols; at += kernel->panel) {
        product.panel = packed + (size_t)at * product.depth;
        product.c = c + at;
        product.cols = least(kernel->panel, cols - at);
        kernel->multiply(&product);
    }
}

static void run_head(const td_native_cpu_step *step, uint32_t task,
                     float *scratch)
{
    const td_ops_attention *op = &step->as.attention;
    const td_native_cpu_kernel *kernel = step->kernel;
    head of = head_of(op, kernel->panel);
    uint32_t member = task / op->heads, first = task % op->heads * of.size;
    float *keys = scratch, *values = keys + of.packed_keys;
    float *scores = values + of.packed_values;
    pack_keys(op, &of, member, first, kernel->panel, keys);
    pack_values(op, &of, member, first, kernel->panel, values);
    for (uint32_t row = 0; row < op->q.rows; row += QUERIES) {
        uint32_t rows = least(QUERIES, op->q.rows - row);
        const td_native_cpu_product ask = {
            .a = td_native_cpu_row(&op->q, member, row) + first,
            .a_stride = op->q.row_stride,
            .starts = &(size_t){0},
            .runs = 1,
            .depth = of.size,
            .c = scores,
            .c_stride = of.wide,
            .rows = rows,
        };
        multiply(kernel, ask, keys, of.keys);
        for (uint32_t i = 0; i < rows; i++)
            kernel->softmax(scores + (size_t)i * of.wide, of.keys, op->scale);
        const td_native_cpu_product answer = {
            .a = scores,
            .a_stride = of.wide,
            .starts = &(size_t){0},
            .runs = 1,
            .depth = of.keys,
            .c = td_native_cpu_row(&op->out, member, row) + first,
            .c_stride = op->out.row_stride,
            .rows = rows,
        };
        multiply(kernel, answer, values, of.size);
    }
}

td_err td_native_cpu_attention(td_ops_backend *backend,
                               const td_ops_attention *op, td_errinfo *info)
{
    if (op->heads == 0 || op->q.cols % op->heads != 0 ||
        op->k.cols != op->q.cols || op->v.cols != op->q.cols ||
        op->out.cols != op->q.cols || op->k.rows != op->v.rows ||
        op->out.rows != op->q.rows || op->out.batch != op->q.batch ||
        op->k.batch != op->q.batch || op->v.batch != op->q.batch)
        return td_fail(info, TD_ERR_INVALID,
                       "an attention of %u heads does not fit its views",
                       op->heads);
    td_native_cpu_step step = td_native_cpu_backend_step(backend);
    head of = head_of(op, step.kernel->panel);
    step.task = run_head;
    step.tasks = op->q.batch * op->heads;
    step.as.attention = *op;
    return td_native_cpu_backend_add(
        backend, &step, of.packed_keys + of.packed_values + of.scores, info);
}
