// SPDX-License-Identifier: Apache-2.0
// The Action Chunking Transformer, as LeRobot has it: pictures through a
// ResNet, one token a pixel of its last map; an encoder over all tokens; a
// decoder whose learned queries, one for each step of the chunk, look at what
// the encoder made. The latent is zero when a policy acts.
//
// build() adds the operations of one batch size to a graph, top to bottom:
// embed (pictures, state, environment), encode, decode, the head, the copy out.
// Nothing is computed here. Weights and tables are there already (act_load.c,
// act_layers.c), and so is memory for the largest batch: a graph of fewer
// members uses the first of it.
//
// A layer's sum alternates between two buffers, since an operation may not read
// where it writes. Where norms come first, the norm of the layer after is fused
// into the operation before it; else the layer's own.
#include "engine/native/act/act.h"

#include <math.h>

// One graph while it is built.
typedef struct builder {
    const td_native_act_network *act;
    const td_ops *ops;
    td_ops_backend *backend;
    uint32_t batch;
    td_errinfo *info;
} builder;

// What a layer reads: the sum so far, and what of it goes into the layer.
typedef struct state {
    const td_native_act_stream *stream;
    td_ops_view sum, in;
    uint32_t turn;
} state;

static td_ops_view room(const builder *graph, void *data, uint32_t rows,
                        uint32_t cols)
{
    return td_ops_dense(data, graph->act->dtype, graph->batch, rows, cols);
}

static td_ops_view shared(const builder *graph, td_ops_view table)
{
    return td_ops_shared(table, graph->batch);
}

static td_err linear(const builder *graph, const td_ops_linear *op)
{
    return graph->ops->linear(graph->backend, op, graph->info);
}

// Adds x W + b to the sum. `norm` is of the layer after where norms come first,
// and else of this one.
static td_err add(const builder *graph, state *now,
                  const td_ops_linear_weight *weight, td_ops_view x,
                  const td_ops_norm *norm)
{
    td_ops_view next =
        td_ops_members(now->stream->sums[now->turn], graph->batch);
    td_ops_linear op = {
        .weight = weight, .x = x, .add = now->sum, .norm = norm};
    if (graph->act->norm_first) {
        op.out = next;
        op.normed = td_ops_members(now->stream->normed, graph->batch);
    } else {
        op.normed = next;
    }
    TD_TRY(linear(graph, &op));
    now->sum = next;
    now->in = op.normed;
    now->turn = 1 - now->turn;
    return TD_OK;
}

static td_err attend(const builder *graph, td_ops_view q, td_ops_view k,
                     td_ops_view v, td_ops_view *ret_out)
{
    const td_native_act_network *act = graph->act;
    const td_ops_attention op = {
        .q = q,
        .k = k,
        .v = v,
        .out = room(graph, act->attended, q.rows, act->width),
        .heads = act->heads,
        .scale = 1.0f / sqrtf((float)act->width / (float)act->heads),
    };
    TD_TRY(graph->ops->attention(graph->backend, &op, graph->info));
    *ret_out = op.out;
    return TD_OK;
}

static td_err attend_self(const builder *graph, const td_native_act_layer *of,
                          state *now, const td_ops_norm *norm)
{
    uint32_t d = graph->act->width;
    td_ops_view attended = {0};
    const td_ops_linear op = {
        .weight = of->self.qkv,
        .x = now->in,
        .add = shared(graph, of->self.table),
        .out = room(graph, graph->act->wide, now->in.rows, 3 * d),
    };
    TD_TRY(linear(graph, &op));
    TD_TRY(attend(graph, td_ops_cols(op.out, 0, d), td_ops_cols(op.out, d, d),
                  td_ops_cols(op.out, 2 * d, d), &attended));
    return add(graph, now, of->self.out, attended, norm);
}

static td_err make_queries(const builder *graph, const td_native_act_layer *of,
                           const state *now, td_ops_view *ret_queries)
{
    if (!of->cross.q) {
        *ret_queries = shared(graph, of->cross.q_table);
        return TD_OK;
    }
    const td_ops_linear op = {
        .weight = of->cross.q,
        .x = now->in,
        .add = shared(graph, of->cross.q_table),
        .out = room(graph, graph->act->queries, graph->act->chunk,
                    graph->act->width),
    };
    TD_TRY(linear(graph, &op));
    *ret_queries = op.out;
    return TD_OK;
}

static td_err attend_cross(const builder *graph, const td_native_act_layer *of,
                           td_ops_view memory, state *now,
                           const td_ops_norm *norm)
{
    uint32_t d = graph->act->width;
    td_ops_view queries = {0}, attended = {0};
    TD_TRY(make_queries(graph, of, now, &queries));
    const td_ops_linear op = {
        .weight = of->cross.kv,
        .x = memory,
        .add = shared(graph, of->cross.kv_table),
        .out = room(graph, graph->act->wide, memory.rows, 2 * d),
    };
    TD_TRY(linear(graph, &op));
    TD_TRY(attend(graph, queries, td_ops_cols(op.out, 0, d),
                  td_ops_cols(op.out, d, d), &attended));
    return add(graph, now, of->cross.out, attended, norm);
}

static td_err feed_forward(const builder *graph, const td_native_act_layer *of,
                           state *now, const td_ops_norm *norm)
{
    const td_ops_linear op = {
        .weight = of->up,
        .x = now->in,
        .activation = graph->act->activation,
        .out =
            room(graph, graph->act->raised, now->in.rows, graph->act->hidden),
    };
    TD_TRY(linear(graph, &op));
    return add(graph, now, of->down, op.out, norm);
}

static td_err embed_cameras(const builder *graph, const td_native_model *model,
                            const td_native_act_cameras *of, uint32_t row,
                            td_ops_view embedded)
{
    const td_native_act_network *act = graph->act;
    uint32_t pixels = of->height * of->width;
    uint32_t rows = of->count * of->shape.rows * of->shape.cols;
    td_native_resnet_input input = {
        .frames = td_ops_dense(of->frames.device, TD_OPS_U8,
                               graph->batch * of->count, pixels, 3),
        .pixels = of->pixels,
        .height = of->height,
        .width = of->width,
        .dtype = act->dtype,
    };
    for (uint32_t i = 0; i < TD_NATIVE_RESNET_MAPS; i++)
        input.maps[i] = act->maps[i];
    td_ops_view features = {0};
    TD_TRY(graph->ops->copy_in(graph->backend, &of->frames,
                               (size_t)graph->batch * of->count * pixels * 3,
                               graph->info));
    TD_TRY(td_native_resnet_build(act->resnet, model, &input, &features,
                                  graph->info));
    const td_ops_linear op = {
        .weight = act->image_proj,
        .x = room(graph, features.data, rows, features.cols),
        .out = td_ops_rows(embedded, row, rows),
    };
    return linear(graph, &op);
}

static td_err embed_vector(const builder *graph, const td_ops_io *from,
                           uint32_t size, const td_ops_linear_weight *weight,
                           td_ops_view to)
{
    const td_ops_linear op = {
        .weight = weight,
        .x = td_ops_dense(from->device, TD_OPS_F32, graph->batch, 1, size),
        .out = to,
    };
    TD_TRY(graph->ops->copy_in(graph->backend, from,
                               (size_t)graph->batch * size * sizeof(float),
                               graph->info));
    return linear(graph, &op);
}

static td_err embed(const builder *graph, const td_native_model *model,
                    td_ops_view *ret_embedded)
{
    const td_native_act_network *act = graph->act;
    const td_native_policy *policy = &model->checkpoint->policy;
    td_ops_view embedded = td_ops_members(act->embedded, graph->batch);
    const uint32_t state_row = 1; // after the latent
    const uint32_t env_row = state_row + (act->state_proj != NULL);
    uint32_t row = env_row + (act->env_proj != NULL);
    for (uint32_t i = 0; i < act->camera_groups; i++) {
        const td_native_act_cameras *of = &act->cameras[i];
        TD_TRY(embed_cameras(graph, model, of, row, embedded));
        row += of->count * of->shape.rows * of->shape.cols;
    }
    if (act->state_proj)
        TD_TRY(embed_vector(graph, &act->state, policy->state_dim,
                            act->state_proj,
                            td_ops_rows(embedded, state_row, 1)));
    if (act->env_proj)
        TD_TRY(embed_vector(graph, &act->env, policy->env_dim, act->env_proj,
                            td_ops_rows(embedded, env_row, 1)));
    *ret_embedded = embedded;
    return TD_OK;
}

static td_err encode(const builder *graph, td_ops_view embedded,
                     td_ops_view *ret_memory)
{
    const td_native_act_network *act = graph->act;
    state now = {.stream = &act->encoding, .sum = embedded, .in = embedded};
    bool first = act->norm_first;
    if (first) {
        now.in = td_ops_members(act->encoding.normed, graph->batch);
        TD_TRY(graph->ops->norm(graph->backend, act->encoder[0].norms[0],
                                &now.sum, &now.in, graph->info));
    }
    for (uint32_t i = 0; i < act->encoder_layers; i++) {
        const td_native_act_layer *of = &act->encoder[i];
        const td_ops_norm *after = i + 1 < act->encoder_layers
                                       ? act->encoder[i + 1].norms[0]
                                       : act->encoder_norm;
        TD_TRY(attend_self(graph, of, &now, of->norms[first ? 1 : 0]));
        TD_TRY(feed_forward(graph, of, &now, first ? after : of->norms[1]));
    }
    *ret_memory = now.in;
    return TD_OK;
}

static td_err decode(const builder *graph, td_ops_view memory,
                     td_ops_view *ret_decoded)
{
    const td_native_act_network *act = graph->act;
    state now = {.stream = &act->decoding, .sum = shared(graph, act->start)};
    bool first = act->norm_first;
    for (uint32_t i = 0; i < act->decoder_layers; i++) {
        const td_native_act_layer *of = &act->decoder[i];
        const td_ops_norm *after = i + 1 < act->decoder_layers
                                       ? act->decoder[i + 1].norms[0]
                                       : act->decoder_norm;
        if (i > 0)
            TD_TRY(attend_self(graph, of, &now, of->norms[first ? 1 : 0]));
        TD_TRY(attend_cross(graph, of, memory, &now, of->norms[first ? 2 : 1]));
        TD_TRY(feed_forward(graph, of, &now, first ? after : of->norms[2]));
    }
    if (!first)
        TD_TRY(graph->ops->norm(graph->backend, act->decoder_norm, &now.in,
                                &now.in, graph->info));
    *ret_decoded = now.in;
    return TD_OK;
}

static td_err build(td_native_model *model, const td_native_build *of,
                    td_errinfo *info)
{
    const td_native_act_network *act = model->network;
    uint32_t batch = of->batch;
    const builder graph = {.act = act,
                           .ops = model->ops,
                           .backend = model->backend,
                           .batch = batch,
                           .info = info};
    uint32_t actions = model->checkpoint->policy.action_dim;
    td_ops_view embedded = {0}, memory = {0}, decoded = {0};
    TD_TRY(embed(&graph, model, &embedded));
    TD_TRY(encode(&graph, embedded, &memory));
    TD_TRY(decode(&graph, memory, &decoded));
    const td_ops_linear head = {
        .weight = act->head,
        .x = decoded,
        .out = td_ops_dense(act->actions.device, TD_OPS_F32, batch, act->chunk,
                            actions),
    };
    TD_TRY(linear(&graph, &head));
    return graph.ops->copy_out(
        graph.backend, &act->actions,
        (size_t)batch * act->chunk * actions * sizeof(float), info);
}

const td_native_architecture_ops td_native_act = {
    .type = TD_NATIVE_POLICY_ACT,
    .check = td_native_act_check,
    .load = td_native_act_load,
    .build = build,
    .free = td_native_act_free,
};
