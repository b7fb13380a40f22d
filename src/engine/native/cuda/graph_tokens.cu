// SPDX-License-Identifier: Apache-2.0
// From an operation of the table to its kernels, while a graph is captured:
// rows of numbers.
//
// A linear is one kernel (linear.cu) with all that is done with its result but
// norms, the exact GELU, and turns of heads whose size fits no tile. Linears of
// inputs, which are floats, are another (small.cu); they go aside, on the
// second stream, where nothing before them writes what they read.
#include "engine/native/cuda/backend.h"

#define MOST_LINE_ROWS 1300

static td_native_cuda_numbers numbers_of(const td_ops_view *view)
{
    const td_native_cuda_numbers numbers = {(const uint32_t *)view->data,
                                            (int64_t)view->batch_stride,
                                            (int32_t)view->row_stride};
    return numbers;
}

static td_native_cuda_floats floats_of(const td_ops_view *view)
{
    const td_native_cuda_floats floats = {(float *)view->data,
                                          (int64_t)view->batch_stride,
                                          (int32_t)view->row_stride};
    return floats;
}

static td_native_cuda_table table_of(const td_ops_view *table,
                                     const td_ops_view *choice)
{
    const td_native_cuda_table of = {(const float *)table->data,
                                     (int32_t)table->row_stride,
                                     numbers_of(choice)};
    return of;
}

// Inputs that a view is a part of come before what is added next.
static td_err fetch(td_ops_backend *backend, const td_ops_view *view,
                    td_errinfo *info)
{
    if (!view->data) return TD_OK;
    size_t last = (view->batch - 1) * view->batch_stride +
                  (view->rows - 1) * view->row_stride + view->cols;
    return td_native_cuda_backend_fetch_part(
        backend, view->data, last * td_ops_bytes(view->dtype), info);
}

static bool same_rows(const td_ops_view *a, const td_ops_view *b)
{
    return a->batch == b->batch && a->rows == b->rows;
}

// A number of each row, or nothing.
static bool counts(const td_ops_view *numbers, const td_ops_view *rows)
{
    return !numbers->data || (numbers->dtype == TD_OPS_U32 &&
                              numbers->cols == 1 && same_rows(numbers, rows));
}

// Tables are floats at multiples of 16 bytes.
static bool is_table(const td_ops_view *table, uint32_t cols)
{
    return table->dtype == TD_OPS_F32 && table->cols == cols &&
           table->row_stride % 4 == 0 && (uintptr_t)table->data % 16 == 0;
}

static bool modulation_fits(const td_ops_modulation *of, const td_ops_view *to)
{
    return !of->table.data ||
           (is_table(&of->table, 3 * to->cols) && counts(&of->choice, to));
}

td_err td_native_cuda_graph_modulate(td_ops_backend *backend,
                                     const td_ops_norm *norm,
                                     const td_ops_modulation *modulation,
                                     const td_ops_view *x,
                                     const td_ops_view *out, td_errinfo *info)
{
    TD_TRY(td_native_cuda_graph_check(x, "what is normalised", info));
    TD_TRY(td_native_cuda_graph_check(out, "what a norm gives", info));
    if (x->cols != (uint32_t)norm->width || out->cols != x->cols ||
        !same_rows(x, out) || !modulation_fits(modulation, x))
        return td_fail(info, TD_ERR_INVALID,
                       "a norm of %d columns does not fit its views of %u",
                       norm->width, x->cols);
    TD_TRY(fetch(backend, &modulation->choice, info));
    td_native_cuda_norm op = {};
    op.x = td_native_cuda_graph_rows(x);
    op.out = td_native_cuda_graph_rows(out);
    op.weight = norm->weight;
    op.bias = norm->bias;
    op.table = table_of(&modulation->table, &modulation->choice);
    op.batches = (int32_t)x->batch;
    op.rows = (int32_t)x->rows;
    op.width = norm->width;
    op.epsilon = norm->epsilon;
    op.base = norm->base;
    op.rms = norm->rms;
    return td_native_cuda_graph_added(
        td_native_cuda_norm_run(&op, td_native_cuda_backend_order(backend)),
        "adding a norm", info);
}

td_err td_native_cuda_graph_norm(td_ops_backend *backend,
                                 const td_ops_norm *norm, const td_ops_view *x,
                                 const td_ops_view *out, td_errinfo *info)
{
    const td_ops_modulation none = {};
    return td_native_cuda_graph_modulate(backend, norm, &none, x, out, info);
}

static td_native_cuda_activation activation_of(td_ops_activation activation)
{
    switch (activation) {
    case TD_OPS_RELU:
        return TD_NATIVE_CUDA_RELU;
    case TD_OPS_GELU:
        return TD_NATIVE_CUDA_GELU;
    case TD_OPS_GELU_TANH:
        return TD_NATIVE_CUDA_GELU_TANH;
    case TD_OPS_SILU:
        return TD_NATIVE_CUDA_SILU;
    case TD_OPS_NO_ACTIVATION:
        break;
    }
    return TD_NATIVE_CUDA_PLAIN;
}

static bool has_extras(const td_ops_linear *op)
{
    return op->rest.data || op->rotary.table.data || op->gate.table.data ||
           op->scale != 0 || op->weight->second;
}

// Inputs are floats of any width.
static td_err build_token(td_ops_backend *backend, const td_ops_linear *op,
                          const td_ops_view *out, td_errinfo *info)
{
    if (has_extras(op))
        return td_fail(info, TD_ERR_UNSUPPORTED,
                       "CUDA has no linear of inputs with gates, a scale, "
                       "rotary positions or two results");
    td_native_cuda_token token = {};
    token.x = (const float *)op->x.data;
    token.x_batch = (int64_t)op->x.batch_stride;
    token.x_row = (int32_t)op->x.row_stride;
    token.filter = op->weight->filter;
    if (op->add.data) token.add = td_native_cuda_graph_rows(&op->add);
    token.out = td_native_cuda_graph_rows(out);
    if (out->dtype == TD_OPS_F32) token.out_float = (float *)out->data;
    token.batches = (int32_t)op->x.batch;
    token.rows = (int32_t)op->x.rows;
    token.activation = activation_of(op->activation);
    const td_native_cuda_order order =
        op->add.data || backend->has_floats
            ? td_native_cuda_backend_order(backend)
            : td_native_cuda_backend_order_aside(backend);
    return td_native_cuda_graph_added(td_native_cuda_token_run(&token, order),
                                      "adding a linear", info);
}

static td_native_cuda_rotary rotary_of(const td_ops_rotary *rotary)
{
    const td_native_cuda_rotary of = {
        table_of(&rotary->table, &rotary->positions), (int32_t)rotary->cols,
        (int32_t)rotary->size};
    return of;
}

// A GELU that the product itself does not have.
static bool has_gelu(const td_ops_linear *op)
{
    return op->activation == TD_OPS_GELU && op->x.dtype != TD_OPS_F32;
}

static td_native_cuda_linear product_of(const td_ops_linear *op,
                                        const td_ops_view *out)
{
    td_native_cuda_linear product = {};
    product.x = td_native_cuda_graph_rows(&op->x);
    product.weight = op->weight->filter;
    product.second = op->weight->second;
    if (op->add.data) product.add = td_native_cuda_graph_rows(&op->add);
    product.out = td_native_cuda_graph_rows(out);
    if (op->rest.data) product.rest = td_native_cuda_graph_rows(&op->rest);
    if (out->dtype == TD_OPS_F32) product.out_float = (float *)out->data;
    product.out_cols = (int32_t)out->cols;
    product.batches = (int32_t)op->x.batch;
    product.rows = (int32_t)op->x.rows;
    if (!has_gelu(op)) product.activation = activation_of(op->activation);
    product.scale = op->scale;
    product.gates = table_of(&op->gate.table, &op->gate.choice);
    return product;
}

// Plain products of some hundred rows are sooner done as convolutions of one
// line: ACT's, which were measured both ways.
static bool is_line(const td_ops_linear *op)
{
    const uint32_t rows = op->x.batch * op->x.rows;
    return !has_extras(op) && rows > 64 && rows <= MOST_LINE_ROWS &&
           (op->activation <= TD_OPS_RELU || has_gelu(op));
}

static td_native_cuda_conv line_of(const td_ops_linear *op,
                                   const td_ops_view *out)
{
    td_native_cuda_conv conv = {};
    conv.x.rows = td_native_cuda_graph_rows(&op->x);
    conv.x.height = conv.out_height = 1;
    conv.x.width = conv.out_width = (int32_t)op->x.rows;
    conv.x.filter = op->weight->filter;
    if (op->add.data) conv.add = td_native_cuda_graph_rows(&op->add);
    conv.out = td_native_cuda_graph_rows(out);
    if (out->dtype == TD_OPS_F32) conv.out_float = (float *)out->data;
    conv.batches = (int32_t)op->x.batch;
    conv.relu = op->activation == TD_OPS_RELU;
    return conv;
}

static td_err build_line(td_ops_backend *backend, const td_ops_linear *op,
                         const td_ops_view *out, td_errinfo *info)
{
    const td_native_cuda_conv conv = line_of(op, out);
    return td_native_cuda_graph_added(
        td_native_cuda_conv_run(&conv, td_native_cuda_backend_order(backend)),
        "adding a linear", info);
}

static td_err build_turn(td_ops_backend *backend, const td_ops_linear *op,
                         const td_ops_view *out,
                         const td_native_cuda_rotary *rotary, td_errinfo *info)
{
    td_native_cuda_turn turn = {};
    turn.out = td_native_cuda_graph_rows(out);
    if (op->rest.data) turn.rest = td_native_cuda_graph_rows(&op->rest);
    turn.out_cols = (int32_t)out->cols;
    turn.batches = (int32_t)out->batch;
    turn.rows = (int32_t)out->rows;
    turn.rotary = *rotary;
    return td_native_cuda_graph_added(
        td_native_cuda_turn_run(&turn, td_native_cuda_backend_order(backend)),
        "adding rotary positions", info);
}

static td_err build_product(td_ops_backend *backend, const td_ops_linear *op,
                            const td_ops_view *out, td_errinfo *info)
{
    td_native_cuda_linear product = product_of(op, out);
    const td_native_cuda_rotary rotary = rotary_of(&op->rotary);
    const bool turns =
        op->rotary.table.data && td_native_cuda_linear_turns(&rotary);
    TD_TRY(fetch(backend, &op->rotary.positions, info));
    TD_TRY(fetch(backend, &op->gate.choice, info));
    if (turns) product.rotary = rotary;
    TD_TRY(td_native_cuda_graph_added(
        td_native_cuda_linear_run(&product,
                                  td_native_cuda_backend_order(backend)),
        "adding a linear", info));
    if (!op->rotary.table.data || turns) return TD_OK;
    return build_turn(backend, op, out, &rotary, info);
}

// The views of a product are what kernels can read and write.
static td_err check_views(const td_ops_linear *op, const td_ops_view *out,
                          td_errinfo *info)
{
    if (out->dtype != TD_OPS_F32) {
        TD_TRY(td_native_cuda_graph_check(out, "what a linear gives", info));
        if (out->cols % 8 != 0 || op->rest.cols % 8 != 0)
            return td_fail(info, TD_ERR_UNSUPPORTED,
                           "CUDA: %u and %u columns are no multiples of 8",
                           out->cols, op->rest.cols);
    } else if (op->rest.data || op->gate.table.data || op->norm ||
               has_gelu(op)) {
        return td_fail(info, TD_ERR_UNSUPPORTED,
                       "CUDA: a linear that gives floats gives them alone");
    }
    if (op->rest.data)
        TD_TRY(
            td_native_cuda_graph_check(&op->rest, "what a linear gives", info));
    if (op->add.data)
        TD_TRY(
            td_native_cuda_graph_check(&op->add, "what a linear adds", info));
    if (op->weight->second && op->activation == TD_OPS_GELU)
        return td_fail(info, TD_ERR_UNSUPPORTED,
                       "CUDA has no product gated by the exact GELU");
    if (op->x.dtype == TD_OPS_F32) return TD_OK;
    if (op->x.batch > 1 && op->x.batch_stride == 0)
        return td_fail(info, TD_ERR_UNSUPPORTED,
                       "CUDA: a linear of rows that members share");
    return td_native_cuda_graph_check(&op->x, "what a linear reads", info);
}

static bool rotary_fits(const td_ops_rotary *of, const td_ops_view *out,
                        const td_ops_view *rest)
{
    const uint32_t cols = out->cols + (rest->data ? rest->cols : 0);
    return !of->table.data ||
           (of->size >= 2 && of->size % 2 == 0 && of->cols <= cols &&
            of->cols % of->size == 0 &&
            (of->cols <= out->cols || out->cols % of->size == 0) &&
            is_table(&of->table, of->size) && of->positions.data &&
            counts(&of->positions, out));
}

static bool joins_fit(const td_ops_linear *op, const td_ops_view *out)
{
    const bool gated = op->weight->second != 0;
    const bool scaled = op->scale != 0 || op->gate.table.data;
    return (!scaled || (!gated && !op->activation && !op->rest.data)) &&
           (!gated || (!op->add.data && !op->rest.data)) &&
           (!op->rest.data || !op->add.data) &&
           (!op->norm ||
            (!gated && !op->rest.data && !op->rotary.table.data)) &&
           (!op->add.data ||
            (same_rows(&op->add, out) && op->add.cols == out->cols)) &&
           (!op->rest.data || same_rows(&op->rest, out)) &&
           modulation_fits(&op->gate, out) &&
           rotary_fits(&op->rotary, out, &op->rest);
}

static td_err check_linear(const td_ops_linear *op, const td_ops_view *out,
                           td_errinfo *info)
{
    const td_native_cuda_filter *of = &op->weight->filter;
    const int32_t outs = op->weight->second ? op->weight->second : of->outs;
    const uint32_t rest = op->rest.data ? op->rest.cols : 0;
    if (op->x.cols == (uint32_t)of->ins && out->cols + rest == (uint32_t)outs &&
        same_rows(out, &op->x) && joins_fit(op, out))
        return check_views(op, out, info);
    return td_fail(info, TD_ERR_INVALID,
                   "a linear of %d to %d over %u x %u x %u does not give "
                   "%u x %u x %u and %u columns, or not with what it joins",
                   of->ins, outs, op->x.batch, op->x.rows, op->x.cols,
                   out->batch, out->rows, out->cols, rest);
}

// A norm alone wants no memory of its own: the sum stands where it goes.
td_err td_native_cuda_graph_linear(td_ops_backend *backend,
                                   const td_ops_linear *op, td_errinfo *info)
{
    const td_ops_view *out = op->out.data ? &op->out : &op->normed;
    TD_TRY(check_linear(op, out, info));
    TD_TRY(fetch(backend, &op->x, info));
    if (op->x.dtype == TD_OPS_F32)
        TD_TRY(build_token(backend, op, out, info));
    else if (is_line(op))
        TD_TRY(build_line(backend, op, out, info));
    else
        TD_TRY(build_product(backend, op, out, info));
    if (has_gelu(op)) TD_TRY(td_native_cuda_graph_gelu(backend, out, info));
    if (out->dtype == TD_OPS_F32) backend->has_floats = true;
    if (!op->norm) return TD_OK;
    return td_native_cuda_graph_modulate(backend, op->norm, &op->modulation,
                                         out, &op->normed, info);
}

static td_err check_pair(const td_ops_attention *op, const td_ops_view *k,
                         const td_ops_view *v, uint32_t cols, td_errinfo *info)
{
    if (!k->data) return TD_OK;
    if (!v->data || k->cols != cols || v->cols != cols || k->rows != v->rows ||
        k->batch != op->q.batch || v->batch != op->q.batch)
        return td_fail(info, TD_ERR_INVALID,
                       "an attention of %u heads does not fit its k and v",
                       op->heads);
    TD_TRY(td_native_cuda_graph_check(k, "k", info));
    return td_native_cuda_graph_check(v, "v", info);
}

static td_err check_attention(const td_ops_attention *op, td_errinfo *info)
{
    const uint32_t heads = op->kv_heads ? op->kv_heads : op->heads;
    const uint32_t size = op->q.cols / op->heads;
    const td_ops_view *lengths = &op->lengths;
    if (size * op->heads != op->q.cols || size % 8 != 0 || size > 256)
        return td_fail(info, TD_ERR_UNSUPPORTED,
                       "CUDA has no attention of %u columns in %u heads",
                       op->q.cols, op->heads);
    if (op->heads % heads != 0 || op->out.cols != op->q.cols ||
        !same_rows(&op->out, &op->q) || !(op->k.data || op->past_k.data) ||
        (op->mask == TD_OPS_FIRST_UNSEEN && op->past_k.data) ||
        (lengths->data &&
         (lengths->dtype != TD_OPS_U32 || lengths->batch != op->q.batch ||
          lengths->rows != 1 || lengths->cols != 1)))
        return td_fail(info, TD_ERR_INVALID,
                       "an attention of %u heads does not fit its views",
                       op->heads);
    TD_TRY(check_pair(op, &op->k, &op->v, heads * size, info));
    TD_TRY(check_pair(op, &op->past_k, &op->past_v, heads * size, info));
    TD_TRY(td_native_cuda_graph_check(&op->q, "q", info));
    return td_native_cuda_graph_check(&op->out, "what attention gives", info);
}

static td_native_cuda_mask mask_of(td_ops_mask mask)
{
    switch (mask) {
    case TD_OPS_SEES_EARLIER:
        return TD_NATIVE_CUDA_SEES_EARLIER;
    case TD_OPS_FIRST_SEES_SELF:
        return TD_NATIVE_CUDA_FIRST_SEES_SELF;
    case TD_OPS_FIRST_UNSEEN:
        return TD_NATIVE_CUDA_FIRST_UNSEEN;
    case TD_OPS_SEES_ALL:
        break;
    }
    return TD_NATIVE_CUDA_SEES_ALL;
}

static td_native_cuda_rows rows_or_none(const td_ops_view *view)
{
    const td_native_cuda_rows none = {};
    return view->data ? td_native_cuda_graph_rows(view) : none;
}

td_err td_native_cuda_graph_attention(td_ops_backend *backend,
                                      const td_ops_attention *op,
                                      td_errinfo *info)
{
    TD_TRY(check_attention(op, info));
    TD_TRY(fetch(backend, &op->lengths, info));
    td_native_cuda_attention attention = {};
    attention.q = td_native_cuda_graph_rows(&op->q);
    attention.k = rows_or_none(&op->k);
    attention.v = rows_or_none(&op->v);
    attention.past_k = rows_or_none(&op->past_k);
    attention.past_v = rows_or_none(&op->past_v);
    attention.out = td_native_cuda_graph_rows(&op->out);
    attention.lengths = numbers_of(&op->lengths);
    attention.batches = (int32_t)op->q.batch;
    attention.queries = (int32_t)op->q.rows;
    attention.keys = op->k.data ? (int32_t)op->k.rows : 0;
    attention.past = op->past_k.data ? (int32_t)op->past_k.rows : 0;
    attention.heads = (int32_t)op->heads;
    attention.kv_heads = (int32_t)(op->kv_heads ? op->kv_heads : op->heads);
    attention.size = (int32_t)(op->q.cols / op->heads);
    attention.mask = mask_of(op->mask);
    attention.scale = op->scale;
    return td_native_cuda_graph_added(
        td_native_cuda_attention_run(&attention,
                                     td_native_cuda_backend_order(backend)),
        "adding attention", info);
}

td_err td_native_cuda_graph_embed(td_ops_backend *backend,
                                  const td_ops_embedding *embedding,
                                  const td_ops_view *ids,
                                  const td_ops_view *out, td_errinfo *info)
{
    TD_TRY(td_native_cuda_graph_check(out, "what an embedding gives", info));
    if (!ids->data || !counts(ids, out) || out->cols != embedding->cols)
        return td_fail(info, TD_ERR_INVALID,
                       "an embedding of %u columns does not fit its views",
                       embedding->cols);
    TD_TRY(fetch(backend, ids, info));
    td_native_cuda_embed embed = {};
    embed.weight = embedding->weight;
    embed.ids = numbers_of(ids);
    embed.out = td_native_cuda_graph_rows(out);
    embed.batches = (int32_t)out->batch;
    embed.rows = (int32_t)out->rows;
    embed.width = (int32_t)out->cols;
    embed.scale = embedding->scale;
    return td_native_cuda_graph_added(
        td_native_cuda_embed_run(&embed, td_native_cuda_backend_order(backend)),
        "adding an embedding", info);
}

static bool blocks_fit(const td_ops_blocks *op)
{
    const uint32_t area = op->side * op->side;
    return op->side > 0 && op->height % op->side == 0 &&
           op->width % op->side == 0 && op->x.rows == op->height * op->width &&
           op->x.row_stride == op->x.cols && op->x.batch == op->out.batch &&
           op->out.rows * area == op->x.rows &&
           op->out.cols == area * op->x.cols;
}

td_err td_native_cuda_graph_blocks(td_ops_backend *backend,
                                   const td_ops_blocks *op, td_errinfo *info)
{
    if (!blocks_fit(op))
        return td_fail(info, TD_ERR_INVALID,
                       "blocks of %u in %u x %u do not fit their views",
                       op->side, op->height, op->width);
    if (op->out.dtype != TD_OPS_BF16 ||
        (op->x.dtype != TD_OPS_F32 && op->x.dtype != TD_OPS_BF16))
        return td_fail(info, TD_ERR_UNSUPPORTED,
                       "CUDA has no blocks of such numbers");
    TD_TRY(fetch(backend, &op->x, info));
    td_native_cuda_blocks blocks = {};
    blocks.x = op->x.data;
    blocks.is_float = op->x.dtype == TD_OPS_F32;
    blocks.x_batch = (int64_t)op->x.batch_stride;
    blocks.out = td_native_cuda_graph_rows(&op->out);
    blocks.batches = (int32_t)op->x.batch;
    blocks.height = (int32_t)op->height;
    blocks.width = (int32_t)op->width;
    blocks.channels = (int32_t)op->x.cols;
    blocks.side = (int32_t)op->side;
    blocks.scale = op->scale;
    blocks.shift = op->shift;
    return td_native_cuda_graph_added(
        td_native_cuda_blocks_run(&blocks,
                                  td_native_cuda_backend_order(backend)),
        "adding blocks", info);
}

static bool step_fits(const td_ops_step *op)
{
    const bool guided = op->tail.data != NULL;
    return op->x.dtype == TD_OPS_F32 && op->v.dtype == TD_OPS_F32 &&
           same_rows(&op->v, &op->x) && op->v.cols == op->x.cols &&
           guided == (op->weight.data != NULL) &&
           (!guided ||
            (same_rows(&op->tail, &op->x) && op->tail.cols == op->x.cols &&
             same_rows(&op->weight, &op->x) && op->weight.cols == 1)) &&
           counts(&op->kept, &op->x);
}

td_err td_native_cuda_graph_step(td_ops_backend *backend, const td_ops_step *op,
                                 td_errinfo *info)
{
    if (!step_fits(op))
        return td_fail(info, TD_ERR_INVALID,
                       "a step of %u columns does not fit its views",
                       op->x.cols);
    const td_ops_view *inputs[] = {&op->x, &op->v, &op->tail, &op->weight,
                                   &op->kept};
    for (const td_ops_view *input : inputs)
        TD_TRY(fetch(backend, input, info));
    td_native_cuda_step step = {};
    step.x = floats_of(&op->x);
    step.v = floats_of(&op->v);
    step.tail = floats_of(&op->tail);
    step.weight = floats_of(&op->weight);
    step.kept = numbers_of(&op->kept);
    step.batches = (int32_t)op->x.batch;
    step.rows = (int32_t)op->x.rows;
    step.width = (int32_t)op->x.cols;
    step.time = op->time;
    step.dt = op->dt;
    step.guidance = op->guidance;
    backend->has_floats = true;
    return td_native_cuda_graph_added(
        td_native_cuda_step_run(&step, td_native_cuda_backend_order(backend)),
        "adding a step", info);
}
