// SPDX-License-Identifier: Apache-2.0
// A task is one head of one member: its keys and values are packed once, then
// the queries go through them in blocks. What is past comes before k and v; of
// what has a length no more is ever read. A query sees keys in a row, whichever
// mask there is: the scores before and after them are zeros.
#include "engine/native/cpu/backend.h"

#include <string.h>

#define QUERIES 48 // of a block

// Sizes of one head, in floats.
typedef struct head {
    uint32_t size;        // columns
    uint32_t past, keys;  // rows of what is past, and in all
    uint32_t wide;        // keys, in whole panels
    size_t packed_keys;   // [panels of keys][size][panel]
    size_t packed_values; // [panels of columns][keys][panel]
    size_t scores;        // [QUERIES][wide]
} head;

static head head_of(const td_ops_attention *op, uint32_t past, uint32_t fresh,
                    uint32_t panel)
{
    head of = {
        .size = op->q.cols / op->heads, .past = past, .keys = past + fresh};
    of.wide = td_native_cpu_ceil(of.keys, panel) * panel;
    of.packed_keys = (size_t)of.wide * of.size;
    of.packed_values =
        (size_t)td_native_cpu_ceil(of.size, panel) * panel * of.keys;
    of.scores = (size_t)QUERIES * of.wide;
    return of;
}

static uint32_t rows_of(const td_ops_view *view)
{
    return view->data ? view->rows : 0;
}

// As long as this member is.
static head head_of_member(const td_ops_attention *op, uint32_t member,
                           uint32_t panel)
{
    uint32_t past = rows_of(&op->past_k), fresh = rows_of(&op->k);
    uint32_t *of = past ? &past : &fresh;
    if (op->lengths.data) {
        uint32_t length = td_native_cpu_whole(&op->lengths, member, 0);
        if (length < *of) *of = length;
    }
    return head_of(op, past, fresh, panel);
}

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

// Row `key` of what is past and new.
static const float *key_row(const td_ops_view *past, const td_ops_view *fresh,
                            const head *of, uint32_t member, uint32_t key)
{
    if (key < of->past) return td_native_cpu_row(past, member, key);
    return td_native_cpu_row(fresh, member, key - of->past);
}

static void pack_keys(const td_ops_attention *op, const head *of,
                      uint32_t member, uint32_t first, uint32_t panel,
                      float *to)
{
    memset(to, 0, of->packed_keys * sizeof *to);
    for (uint32_t key = 0; key < of->keys; key++) {
        const float *from =
            key_row(&op->past_k, &op->k, of, member, key) + first;
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
        const float *from =
            key_row(&op->past_v, &op->v, of, member, key) + first;
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

// The keys that query `row` sees.
static void seen_by(const td_ops_attention *op, const head *of, uint32_t row,
                    uint32_t *ret_from, uint32_t *ret_to)
{
    *ret_from = 0;
    *ret_to = of->keys;
    if (op->mask == TD_OPS_SEES_EARLIER) *ret_to = of->past + row + 1;
    if (op->mask == TD_OPS_FIRST_SEES_SELF && row == 0) *ret_to = of->past + 1;
    if (op->mask == TD_OPS_FIRST_UNSEEN && row > 0) *ret_from = 1;
    if (*ret_to > of->keys) *ret_to = of->keys;
    if (*ret_from >= *ret_to) *ret_from = 0;
}

static void weigh(const td_native_cpu_step *step, const head *of, uint32_t row,
                  float *scores)
{
    const td_ops_attention *op = &step->as.attention;
    uint32_t from = 0, to = 0;
    seen_by(op, of, row, &from, &to);
    step->kernel->softmax(scores + from, to - from, op->scale);
    memset(scores, 0, from * sizeof *scores);
    memset(scores + to, 0, (of->keys - to) * sizeof *scores);
}

static void run_head(const td_native_cpu_step *step, uint32_t task,
                     float *scratch)
{
    const td_ops_attention *op = &step->as.attention;
    const td_native_cpu_kernel *kernel = step->kernel;
    uint32_t member = task / op->heads, index = task % op->heads;
    head of = head_of_member(op, member, kernel->panel);
    uint32_t share = op->kv_heads ? op->heads / op->kv_heads : 1;
    uint32_t first = index * of.size, shared = index / share * of.size;
    float *keys = scratch, *values = keys + of.packed_keys;
    float *scores = values + of.packed_values;
    pack_keys(op, &of, member, shared, kernel->panel, keys);
    pack_values(op, &of, member, shared, kernel->panel, values);
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
            weigh(step, &of, row + i, scores + (size_t)i * of.wide);
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

static bool pair_fits(const td_ops_attention *op, const td_ops_view *k,
                      const td_ops_view *v)
{
    uint32_t kv_heads = op->kv_heads ? op->kv_heads : op->heads;
    uint32_t cols = op->q.cols / op->heads * kv_heads;
    return k->cols == cols && v->cols == cols && k->rows == v->rows &&
           k->batch == op->q.batch && v->batch == op->q.batch && v->data;
}

static bool fits(const td_ops_attention *op)
{
    const td_ops_view *lengths = &op->lengths;
    return op->heads > 0 && op->q.cols % op->heads == 0 &&
           (!op->kv_heads || op->heads % op->kv_heads == 0) &&
           op->out.cols == op->q.cols && op->out.rows == op->q.rows &&
           op->out.batch == op->q.batch && (op->k.data || op->past_k.data) &&
           (!op->k.data || pair_fits(op, &op->k, &op->v)) &&
           (!op->past_k.data || pair_fits(op, &op->past_k, &op->past_v)) &&
           (op->mask != TD_OPS_FIRST_UNSEEN || !op->past_k.data) &&
           (!lengths->data ||
            (lengths->dtype == TD_OPS_U32 && lengths->batch == op->q.batch &&
             lengths->rows == 1 && lengths->cols == 1));
}

td_err td_native_cpu_attention(td_ops_backend *backend,
                               const td_ops_attention *op, td_errinfo *info)
{
    if (!fits(op))
        return td_fail(info, TD_ERR_INVALID,
                       "an attention of %u heads does not fit its views",
                       op->heads);
    td_native_cpu_step step = td_native_cpu_backend_step(backend);
    head of =
        head_of(op, rows_of(&op->past_k), rows_of(&op->k), step.kernel->panel);
    step.task = run_head;
    step.tasks = op->q.batch * op->heads;
    step.as.attention = *op;
    return td_native_cpu_backend_add(
        backend, &step, of.packed_keys + of.packed_values + of.scores, info);
}
