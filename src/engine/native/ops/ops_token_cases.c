// SPDX-License-Identifier: Apache-2.0
// Cases of the operations that policies which see and read are made of: rows of
// a member that may be shorter than another's, with positions and choices that
// are data. What lies beyond a length is NaN here.
#include "base/err.h"
#include "engine/native/ops/ops_case.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static double number_of(const td_ops_case *w, const char *name)
{
    return json_number_value(json_object_get(w->sizes, name));
}

static uint32_t at(const td_ops_case *w, const char *name, size_t index)
{
    const json_t *list = json_object_get(w->sizes, name);
    return (uint32_t)json_integer_value(json_array_get(list, index));
}

// Numbers from outside: bytes of `values`, in a buffer of their own.
static td_err input(td_ops_case *w, td_ops_dtype dtype, uint32_t batch,
                    uint32_t rows, uint32_t cols, const void *values,
                    td_ops_view *ret_view)
{
    td_ops_io *io = &w->inputs[w->input_count];
    size_t bytes = (size_t)batch * rows * cols * 4;
    if (w->input_count == TD_OPS_CASE_IOS) abort();
    TD_TRY(w->ops->alloc_io(w->backend, bytes, io, &w->info));
    w->input_bytes[w->input_count++] = bytes;
    memcpy(io->host, values, bytes);
    *ret_view = td_ops_dense(io->device, dtype, batch, rows, cols);
    return TD_OK;
}

// (a * member + b * row) % most of each row.
static td_err counted(td_ops_case *w, uint32_t batch, uint32_t rows, uint32_t a,
                      uint32_t b, uint32_t most, td_ops_view *ret_view)
{
    uint32_t *values = malloc((size_t)batch * rows * sizeof *values);
    if (!values) abort();
    for (uint32_t i = 0; i < batch * rows; i++)
        values[i] = (a * (i / rows) + b * (i % rows)) % most;
    td_err err = input(w, TD_OPS_U32, batch, rows, 1, values, ret_view);
    free(values);
    return err;
}

static td_err begin(td_ops_case *w)
{
    TD_TRY(w->ops->begin(w->backend, &w->info));
    for (uint32_t i = 0; i < w->input_count; i++)
        TD_TRY(w->ops->copy_in(w->backend, &w->inputs[i], w->input_bytes[i],
                               &w->info));
    return TD_OK;
}

// A view of F32, whatever the backend computes in.
static td_err floats(td_ops_case *w, const char *part, uint32_t rows,
                     uint32_t cols, uint32_t batch, td_ops_view *ret_view)
{
    void *data = NULL;
    size_t bytes = (size_t)rows * cols * sizeof(float);
    TD_TRY(w->ops->alloc(w->backend, bytes, &data, &w->info));
    *ret_view =
        td_ops_shared(td_ops_dense(data, TD_OPS_F32, 1, rows, cols), batch);
    return td_ops_case_fill(w, part, *ret_view);
}

// A table of `rows` of a modulation, and which of them each row takes.
static td_err modulate(td_ops_case *w, const char *part, uint32_t table_rows,
                       const td_ops_view *of, td_ops_modulation *ret_by)
{
    td_ops_modulation by = {0};
    TD_TRY(floats(w, part, table_rows, 3 * of->cols, of->batch, &by.table));
    if (table_rows > 1)
        TD_TRY(counted(w, of->batch, of->rows, 1, 1, table_rows, &by.choice));
    *ret_by = by;
    return TD_OK;
}

static td_err make_rms(td_ops_case *w, uint32_t cols, bool own,
                       td_ops_norm **ret_norm)
{
    td_ops_norm_source norm = {.cols = cols,
                               .epsilon = 1e-6f,
                               .kind = TD_OPS_RMS_NORM,
                               .base = (float)number_of(w, "base")};
    if (own) norm.weight = td_ops_case_source(w, "n.weight", 1, 1, cols);
    return w->ops->norm_weight(w->backend, &norm, ret_norm, &w->info);
}

static td_err lacks(td_ops_case *w, const char *name)
{
    return td_fail(&w->info, TD_ERR_UNSUPPORTED, "%s has no %s", w->ops->name,
                   name);
}

td_err td_ops_case_rms(td_ops_case *w)
{
    uint32_t cols = td_ops_case_size(w, "cols");
    uint32_t table = td_ops_case_size(w, "table");
    td_ops_norm *norm = NULL;
    td_ops_linear_weight *same = NULL;
    td_ops_view x, out;
    td_ops_modulation by = {0};
    if (!w->ops->modulate) return lacks(w, "modulated norm");
    TD_TRY(make_rms(w, cols, table == 0, &norm));
    TD_TRY(td_ops_case_make_same(w, cols, &same));
    TD_TRY(td_ops_case_room(w, td_ops_case_size(w, "batch"),
                            td_ops_case_size(w, "rows"), cols, &x));
    TD_TRY(td_ops_case_room(w, x.batch, x.rows, cols, &out));
    TD_TRY(td_ops_case_fill(w, "x", x));
    if (table) TD_TRY(modulate(w, "m", table, &x, &by));
    TD_TRY(td_ops_case_open_out(w, x.batch, x.rows, cols));
    TD_TRY(begin(w));
    if (table)
        TD_TRY(w->ops->modulate(w->backend, norm, &by, &x, &out, &w->info));
    else
        TD_TRY(w->ops->norm(w->backend, norm, &x, &out, &w->info));
    return td_ops_case_give_as_it_is(w, out, same);
}

// Three parts in one product, of which the second has no bias; columns beyond
// `split` go elsewhere, and the first of all are turned.
static td_err parts_case(td_ops_case *w, td_ops_linear *op)
{
    uint32_t in = td_ops_case_size(w, "inputs"), cols = 0;
    uint32_t batch = op->x.batch, rows = op->x.rows;
    static const char *const names[][2] = {
        {"w0", "b0"}, {"w1", NULL}, {"w2", "b2"}};
    td_ops_linear_part parts[3];
    for (size_t i = 0; i < 3; i++) {
        td_ops_linear_part *part = &parts[i];
        part->out = at(w, "parts", i);
        part->weight =
            td_ops_case_source(w, names[i][0], 2, in, (size_t)in * part->out);
        part->bias = (td_ops_source){0};
        if (names[i][1])
            part->bias = td_ops_case_source(w, names[i][1], 1, 1, part->out);
        cols += part->out;
    }
    const td_ops_linear_source from = {
        .weight = parts[0].weight,
        .bias = parts[0].bias,
        .in = in,
        .out = parts[0].out,
        .more = {parts[1], parts[2]},
    };
    td_ops_linear_weight *weight = NULL;
    TD_TRY(w->ops->linear_weight(w->backend, &from, &weight, &w->info));
    op->weight = weight;
    uint32_t split = td_ops_case_size(w, "split");
    TD_TRY(td_ops_case_room(w, batch, rows, split, &op->out));
    TD_TRY(td_ops_case_room(w, batch, rows, cols - split, &op->rest));
    op->rotary.size = td_ops_case_size(w, "size");
    op->rotary.cols = td_ops_case_size(w, "turned");
    uint32_t places = td_ops_case_size(w, "places");
    TD_TRY(floats(w, "angles", places, op->rotary.size, 1, &op->rotary.table));
    return counted(w, batch, rows, 7, 3, places, &op->rotary.positions);
}

static td_err gated_case(td_ops_case *w, td_ops_linear *op)
{
    uint32_t in = td_ops_case_size(w, "inputs");
    uint32_t out = td_ops_case_size(w, "outputs");
    const td_ops_linear_source from = {
        .weight = td_ops_case_source(w, "w0", 2, in, (size_t)in * out),
        .in = in,
        .out = out,
        .more = {{.weight =
                      td_ops_case_source(w, "w1", 2, in, (size_t)in * out),
                  .bias = td_ops_case_source(w, "b1", 1, 1, out),
                  .out = out}},
        .gated = true,
    };
    td_ops_linear_weight *weight = NULL;
    TD_TRY(w->ops->linear_weight(w->backend, &from, &weight, &w->info));
    op->weight = weight;
    return td_ops_case_room(w, op->x.batch, op->x.rows, out, &op->out);
}

// The weight is the right half of a wider one.
static td_err half_case(td_ops_case *w, td_ops_linear *op)
{
    uint32_t in = td_ops_case_size(w, "inputs");
    uint32_t out = td_ops_case_size(w, "outputs");
    float *wide = td_ops_case_numbers(w, "w", 2, in, (size_t)in * 2 * out);
    const td_ops_linear_source from = {
        .weight = {wide + in, TD_OPS_F32},
        .bias = td_ops_case_source(w, "b", 1, 1, out),
        .in = in,
        .out = out,
        .stride = 2 * in,
    };
    td_ops_linear_weight *weight = NULL;
    TD_TRY(w->ops->linear_weight(w->backend, &from, &weight, &w->info));
    op->weight = weight;
    op->scale = (float)number_of(w, "scale");
    uint32_t gates = td_ops_case_size(w, "gates");
    TD_TRY(td_ops_case_room(w, op->x.batch, op->x.rows, out, &op->out));
    if (td_ops_case_holds(w, "add")) {
        op->add = op->out; // a residual that is added in its own place
        TD_TRY(td_ops_case_fill(w, "add", op->out));
    }
    if (gates) TD_TRY(modulate(w, "gates", gates, &op->out, &op->gate));
    if (!td_ops_case_holds(w, "norm")) return TD_OK;
    td_ops_norm *norm = NULL;
    TD_TRY(make_rms(w, out, false, &norm));
    op->norm = norm;
    TD_TRY(td_ops_case_room(w, op->x.batch, op->x.rows, out, &op->normed));
    return modulate(w, "m", gates, &op->normed, &op->modulation);
}

// Two views side by side.
static td_err give_both(td_ops_case *w, td_ops_view left, td_ops_view right,
                        td_ops_linear_weight *const *same)
{
    td_ops_view whole = w->out_view;
    const td_ops_linear first = {
        .weight = same[0], .x = left, .out = td_ops_cols(whole, 0, left.cols)};
    const td_ops_linear second = {
        .weight = same[1],
        .x = right,
        .out = td_ops_cols(whole, left.cols, right.cols)};
    TD_TRY(w->ops->linear(w->backend, &first, &w->info));
    TD_TRY(w->ops->linear(w->backend, &second, &w->info));
    return td_ops_case_give(w);
}

td_err td_ops_case_token(td_ops_case *w)
{
    td_ops_linear op = {0};
    td_ops_linear_weight *same[2] = {NULL, NULL};
    if (!w->ops->modulate) return lacks(w, "modulated norm");
    TD_TRY(td_ops_case_room(w, td_ops_case_size(w, "batch"),
                            td_ops_case_size(w, "rows"),
                            td_ops_case_size(w, "inputs"), &op.x));
    TD_TRY(td_ops_case_fill(w, "x", op.x));
    if (td_ops_case_is(w, "act", "silu")) op.activation = TD_OPS_SILU;
    if (td_ops_case_is(w, "act", "tanh")) op.activation = TD_OPS_GELU_TANH;
    if (td_ops_case_is(w, "kind", "parts")) TD_TRY(parts_case(w, &op));
    if (td_ops_case_is(w, "kind", "gated")) TD_TRY(gated_case(w, &op));
    if (td_ops_case_is(w, "kind", "half")) TD_TRY(half_case(w, &op));
    td_ops_view second = op.norm ? op.normed : op.rest;
    uint32_t cols = op.out.cols + (second.data ? second.cols : 0);
    TD_TRY(td_ops_case_make_same(w, op.out.cols, &same[0]));
    if (second.data) TD_TRY(td_ops_case_make_same(w, second.cols, &same[1]));
    TD_TRY(td_ops_case_open_out(w, op.x.batch, op.x.rows, cols));
    TD_TRY(begin(w));
    TD_TRY(w->ops->linear(w->backend, &op, &w->info));
    if (second.data) return give_both(w, op.out, second, same);
    return td_ops_case_give_as_it_is(w, op.out, same[0]);
}

// Rows of k or v; those beyond a member's length are NaN.
static td_err keys(td_ops_case *w, const char *part, uint32_t rows, bool cut,
                   td_ops_view *ret_view)
{
    uint32_t batch = td_ops_case_size(w, "batch");
    uint32_t cols =
        td_ops_case_size(w, "kv_heads") * td_ops_case_size(w, "size");
    TD_TRY(td_ops_case_room(w, batch, rows, cols, ret_view));
    size_t each = (size_t)rows * cols;
    float *values = td_ops_case_numbers(w, part, 0, 0, batch * each);
    for (uint32_t i = 0; cut && i < batch; i++)
        for (size_t k = (size_t)at(w, "lengths", i) * cols; k < each; k++)
            values[i * each + k] = NAN;
    return w->ops->upload(w->backend, ret_view, values, &w->info);
}

static td_err lengths_of(td_ops_case *w, uint32_t batch, td_ops_view *ret_view)
{
    uint32_t values[8];
    if (batch > TD_COUNT_OF(values)) abort();
    for (uint32_t i = 0; i < batch; i++)
        values[i] = at(w, "lengths", i);
    return input(w, TD_OPS_U32, batch, 1, 1, values, ret_view);
}

static td_ops_mask mask_of(const td_ops_case *w)
{
    if (td_ops_case_is(w, "mask", "earlier")) return TD_OPS_SEES_EARLIER;
    if (td_ops_case_is(w, "mask", "first_sees_self"))
        return TD_OPS_FIRST_SEES_SELF;
    return td_ops_case_is(w, "mask", "first_unseen") ? TD_OPS_FIRST_UNSEEN
                                                     : TD_OPS_SEES_ALL;
}

td_err td_ops_case_grouped(td_ops_case *w)
{
    uint32_t batch = td_ops_case_size(w, "batch");
    uint32_t past = td_ops_case_size(w, "past");
    uint32_t fresh = td_ops_case_size(w, "keys");
    bool cut = json_is_array(json_object_get(w->sizes, "lengths"));
    td_ops_linear_weight *same = NULL;
    td_ops_attention op = {
        .heads = td_ops_case_size(w, "heads"),
        .kv_heads = td_ops_case_size(w, "kv_heads"),
        .mask = mask_of(w),
        .scale = 3.0f / sqrtf((float)td_ops_case_size(w, "size")),
    };
    uint32_t cols = op.heads * td_ops_case_size(w, "size");
    if (!td_ops_is_whole(w->ops)) return lacks(w, "grouped attention");
    TD_TRY(td_ops_case_make_same(w, cols, &same));
    TD_TRY(td_ops_case_room(w, batch, td_ops_case_size(w, "queries"), cols,
                            &op.q));
    TD_TRY(td_ops_case_room(w, batch, op.q.rows, cols, &op.out));
    TD_TRY(td_ops_case_fill(w, "q", op.q));
    if (past) TD_TRY(keys(w, "pk", past, cut, &op.past_k));
    if (past) TD_TRY(keys(w, "pv", past, cut, &op.past_v));
    if (fresh) TD_TRY(keys(w, "k", fresh, cut && !past, &op.k));
    if (fresh) TD_TRY(keys(w, "v", fresh, cut && !past, &op.v));
    if (cut) TD_TRY(lengths_of(w, batch, &op.lengths));
    TD_TRY(td_ops_case_open_out(w, batch, op.q.rows, cols));
    TD_TRY(begin(w));
    TD_TRY(w->ops->attention(w->backend, &op, &w->info));
    return td_ops_case_give_as_it_is(w, op.out, same);
}

td_err td_ops_case_embed(td_ops_case *w)
{
    uint32_t batch = td_ops_case_size(w, "batch");
    uint32_t rows = td_ops_case_size(w, "rows");
    uint32_t cols = td_ops_case_size(w, "cols");
    uint32_t vocabulary = td_ops_case_size(w, "vocabulary");
    td_ops_linear_weight *same = NULL;
    td_ops_embedding *embedding = NULL;
    td_ops_view ids, out;
    if (!w->ops->embed) return lacks(w, "embedding");
    const td_ops_embedding_source from = {
        .weight = td_ops_case_source(w, "w", 2, 64, (size_t)vocabulary * cols),
        .rows = vocabulary,
        .cols = cols,
        .scale = (float)number_of(w, "scale"),
    };
    TD_TRY(w->ops->embedding(w->backend, &from, &embedding, &w->info));
    TD_TRY(td_ops_case_make_same(w, cols, &same));
    TD_TRY(counted(w, batch, rows, 31, 17, vocabulary, &ids));
    TD_TRY(td_ops_case_room(w, batch, rows, cols, &out));
    TD_TRY(td_ops_case_open_out(w, batch, rows, cols));
    TD_TRY(begin(w));
    TD_TRY(w->ops->embed(w->backend, embedding, &ids, &out, &w->info));
    return td_ops_case_give_as_it_is(w, out, same);
}

// Pictures come from outside, features from the backend.
static td_err map_input(td_ops_case *w, uint32_t rows, uint32_t cols,
                        td_ops_view *ret_view)
{
    uint32_t batch = td_ops_case_size(w, "batch");
    size_t count = (size_t)batch * rows * cols;
    void *data = NULL;
    if (cols == 3)
        return input(w, TD_OPS_F32, batch, rows, cols,
                     td_ops_case_numbers(w, "x", 0, 0, count), ret_view);
    TD_TRY(w->ops->alloc(w->backend, count * td_ops_bytes(w->dtype), &data,
                         &w->info));
    *ret_view = td_ops_dense(data, w->dtype, batch, rows, cols);
    return td_ops_case_fill(w, "x", *ret_view);
}

td_err td_ops_case_blocks(td_ops_case *w)
{
    td_ops_linear_weight *same = NULL;
    td_ops_blocks op = {
        .height = td_ops_case_size(w, "height"),
        .width = td_ops_case_size(w, "width"),
        .side = td_ops_case_size(w, "side"),
        .scale = (float)number_of(w, "scale"),
        .shift = (float)number_of(w, "shift"),
    };
    if (!w->ops->blocks) return lacks(w, "blocks");
    uint32_t area = op.side * op.side, cols = td_ops_case_size(w, "cols");
    TD_TRY(map_input(w, op.height * op.width, cols, &op.x));
    TD_TRY(td_ops_case_make_same(w, area * cols, &same));
    TD_TRY(td_ops_case_room(w, op.x.batch, op.x.rows / area, area * cols,
                            &op.out));
    TD_TRY(td_ops_case_open_out(w, op.x.batch, op.x.rows / area, area * cols));
    TD_TRY(begin(w));
    TD_TRY(w->ops->blocks(w->backend, &op, &w->info));
    return td_ops_case_give_as_it_is(w, op.out, same);
}

static td_err step_input(td_ops_case *w, const char *part, uint32_t cols,
                         td_ops_view *ret_view)
{
    uint32_t batch = td_ops_case_size(w, "batch");
    uint32_t rows = td_ops_case_size(w, "rows");
    size_t count = (size_t)batch * rows * cols;
    return input(w, TD_OPS_F32, batch, rows, cols,
                 td_ops_case_numbers(w, part, 0, 0, count), ret_view);
}

// Every third row of the first member is guided by nothing.
static td_err guide(td_ops_case *w, td_ops_step *op)
{
    TD_TRY(step_input(w, "tail", op->x.cols, &op->tail));
    TD_TRY(step_input(w, "weight", 1, &op->weight));
    float *weights = w->inputs[w->input_count - 1].host;
    for (uint32_t i = 0; i < op->x.rows; i += 3)
        weights[i] = 0;
    return TD_OK;
}

td_err td_ops_case_step(td_ops_case *w)
{
    td_ops_step op = {
        .time = (float)number_of(w, "time"),
        .dt = (float)number_of(w, "dt"),
        .guidance = (float)number_of(w, "guidance"),
    };
    uint32_t cols = td_ops_case_size(w, "cols");
    if (!w->ops->step) return lacks(w, "steps");
    TD_TRY(step_input(w, "x", cols, &op.x));
    w->out = w->inputs[0];
    w->out_view = op.x;
    TD_TRY(step_input(w, "v", cols, &op.v));
    if (td_ops_case_holds(w, "guided")) TD_TRY(guide(w, &op));
    if (td_ops_case_holds(w, "kept"))
        TD_TRY(counted(w, op.x.batch, op.x.rows, 1, 1, 2, &op.kept));
    TD_TRY(begin(w));
    TD_TRY(w->ops->step(w->backend, &op, &w->info));
    return td_ops_case_give(w);
}
