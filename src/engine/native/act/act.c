// SPDX-License-Identifier: Apache-2.0
// The Action Chunking Transformer, as LeRobot has it: pictures through a
// ResNet, one token a pixel of its last map; an encoder over all tokens; a
// decoder whose learned queries, one for each step of the chunk, look at what
// the encoder made. The latent is zero when a policy acts.
#include "engine/native/act/act.h"

#include <math.h>

// One program while it is recorded.
typedef struct recording {
    const td_native_act_body *act;
    const td_ops *ops;
    td_ops_side *side;
    uint32_t batch;
    td_errinfo *info;
} recording;

// What a layer reads: the sum so far, and what of it goes into the layer.
typedef struct state {
    const td_native_act_stream *stream;
    td_ops_view sum, in;
    uint32_t turn;
} state;

static td_ops_view room(const recording *rec, void *data, uint32_t rows,
                        uint32_t cols)
{
    return td_ops_dense(data, rec->act->dtype, rec->batch, rows, cols);
}

static td_ops_view shared(const recording *rec, td_ops_view table)
{
    return td_ops_shared(table, rec->batch);
}

static td_err linear(const recording *rec, const td_ops_linear *op)
{
    return rec->ops->linear(rec->side, op, rec->info);
}

// Adds x W + b to the sum. `norm` is of the layer after where norms come first,
// and else of this one.
static td_err add(const recording *rec, state *now,
                  const td_ops_linear_weight *weight, td_ops_view x,
                  const td_ops_norm *norm)
{
    td_ops_view next =
        td_native_body_part(now->stream->sums[now->turn], rec->batch);
    td_ops_linear op = {
        .weight = weight, .x = x, .add = now->sum, .norm = norm};
    if (rec->act->norm_first) {
        op.out = next;
        op.normed = td_native_body_part(now->stream->normed, rec->batch);
    } else {
        op.normed = next;
    }
    TD_TRY(linear(rec, &op));
    now->sum = next;
    now->in = op.normed;
    now->turn = 1 - now->turn;
    return TD_OK;
}

static td_err attend(const recording *rec, td_ops_view q, td_ops_view k,
                     td_ops_view v, td_ops_view *ret_out)
{
    const td_native_act_body *act = rec->act;
    const td_ops_attention op = {
        .q = q,
        .k = k,
        .v = v,
        .out = room(rec, act->attended, q.rows, act->width),
        .heads = act->heads,
        .scale = 1.0f / sqrtf((float)act->width / (float)act->heads),
    };
    TD_TRY(rec->ops->attention(rec->side, &op, rec->info));
    *ret_out = op.out;
    return TD_OK;
}

static td_err attend_self(const recording *rec, const td_native_act_layer *of,
                          state *now, const td_ops_norm *norm)
{
    uint32_t d = rec->act->width;
    td_ops_view attended = {0};
    const td_ops_linear op = {
        .weight = of->self.qkv,
        .x = now->in,
        .add = shared(rec, of->self.table),
        .out = room(rec, rec->act->wide, now->in.rows, 3 * d),
    };
    TD_TRY(linear(rec, &op));
    TD_TRY(attend(rec, td_ops_cols(op.out, 0, d), td_ops_cols(op.out, d, d),
                  td_ops_cols(op.out, 2 * d, d), &attended));
    return add(rec, now, of->self.out, attended, norm);
}

static td_err make_queries(const recording *rec, const td_native_act_layer *of,
                           const state *now, td_ops_view *ret_queries)
{
    if (!of->cross.q) {
        *ret_queries = shared(rec, of->cross.q_table);
        return TD_OK;
    }
    const td_ops_linear op = {
        .weight = of->cross.q,
        .x = now->in,
        .add = shared(rec, of->cross.q_table),
        .out = room(rec, rec->act->queries, rec->act->chunk, rec->act->width),
    };
    TD_TRY(linear(rec, &op));
    *ret_queries = op.out;
    return TD_OK;
}

static td_err attend_cross(const recording *rec, const td_native_act_layer *of,
                           td_ops_view memory, state *now,
                           const td_ops_norm *norm)
{
    uint32_t d = rec->act->width;
    td_ops_view queries = {0}, attended = {0};
    TD_TRY(make_queries(rec, of, now, &queries));
    const td_ops_linear op = {
        .weight = of->cross.kv,
        .x = memory,
        .add = shared(rec, of->cross.kv_table),
        .out = room(rec, rec->act->wide, memory.rows, 2 * d),
    };
    TD_TRY(linear(rec, &op));
    TD_TRY(attend(rec, queries, td_ops_cols(op.out, 0, d),
                  td_ops_cols(op.out, d, d), &attended));
    return add(rec, now, of->cross.out, attended, norm);
}

static td_err feed_forward(const recording *rec, const td_native_act_layer *of,
                           state *now, const td_ops_norm *norm)
{
    const td_ops_linear op = {
        .weight = of->up,
        .x = now->in,
        .act = rec->act->act,
        .out = room(rec, rec->act->raised, now->in.rows, rec->act->hidden),
    };
    TD_TRY(linear(rec, &op));
    return add(rec, now, of->down, op.out, norm);
}

static td_err embed_cameras(const recording *rec, const td_native_model *model,
                            const td_native_act_cameras *of, uint32_t row,
                            td_ops_view embedded)
{
    const td_native_act_body *act = rec->act;
    uint32_t pixels = of->height * of->width;
    uint32_t rows = of->count * of->shape.rows * of->shape.cols;
    td_native_resnet_input input = {
        .frames = td_ops_dense(of->frames.device, TD_OPS_U8,
                               rec->batch * of->count, pixels, 3),
        .pixels = of->pixels,
        .height = of->height,
        .width = of->width,
        .dtype = act->dtype,
    };
    for (uint32_t i = 0; i < TD_NATIVE_RESNET_MAPS; i++)
        input.maps[i] = act->maps[i];
    td_ops_view features = {0};
    TD_TRY(rec->ops->fetch(rec->side, &of->frames,
                           (size_t)rec->batch * of->count * pixels * 3,
                           rec->info));
    TD_TRY(td_native_resnet_record(act->resnet, model, &input, &features,
                                   rec->info));
    const td_ops_linear op = {
        .weight = act->image_proj,
        .x = room(rec, features.data, rows, features.cols),
        .out = td_ops_rows(embedded, row, rows),
    };
    return linear(rec, &op);
}

static td_err embed_vector(const recording *rec, const td_ops_io *from,
                           uint32_t size, const td_ops_linear_weight *weight,
                           td_ops_view to)
{
    const td_ops_linear op = {
        .weight = weight,
        .x = td_ops_dense(from->device, TD_OPS_F32, rec->batch, 1, size),
        .out = to,
    };
    TD_TRY(rec->ops->fetch(
        rec->side, from, (size_t)rec->batch * size * sizeof(float), rec->info));
    return linear(rec, &op);
}

static td_err embed(const recording *rec, const td_native_model *model,
                    td_ops_view *ret_embedded)
{
    const td_native_act_body *act = rec->act;
    const td_native_policy *policy = &model->checkpoint->policy;
    td_ops_view embedded = td_native_body_part(act->embedded, rec->batch);
    const uint32_t state_row = 1; // after the latent
    const uint32_t env_row = state_row + (act->state_proj != NULL);
    uint32_t row = env_row + (act->env_proj != NULL);
    for (uint32_t i = 0; i < act->camera_groups; i++) {
        const td_native_act_cameras *of = &act->cameras[i];
        TD_TRY(embed_cameras(rec, model, of, row, embedded));
        row += of->count * of->shape.rows * of->shape.cols;
    }
    if (act->state_proj)
        TD_TRY(embed_vector(rec, &act->state, policy->state_dim,
                            act->state_proj,
                            td_ops_rows(embedded, state_row, 1)));
    if (act->env_proj)
        TD_TRY(embed_vector(rec, &act->env, policy->env_dim, act->env_proj,
                            td_ops_rows(embedded, env_row, 1)));
    *ret_embedded = embedded;
    return TD_OK;
}

static td_err encode(const recording *rec, td_ops_view embedded,
                     td_ops_view *ret_memory)
{
    const td_native_act_body *act = rec->act;
    state now = {.stream = &act->encoding, .sum = embedded, .in = embedded};
    bool first = act->norm_first;
    if (first) {
        now.in = td_native_body_part(act->encoding.normed, rec->batch);
        TD_TRY(rec->ops->norm(rec->side, act->encoder[0].norms[0], &now.sum,
                              &now.in, rec->info));
    }
    for (uint32_t i = 0; i < act->encoder_layers; i++) {
        const td_native_act_layer *of = &act->encoder[i];
        const td_ops_norm *after = i + 1 < act->encoder_layers
                                       ? act->encoder[i + 1].norms[0]
                                       : act->encoder_norm;
        TD_TRY(attend_self(rec, of, &now, of->norms[first ? 1 : 0]));
        TD_TRY(feed_forward(rec, of, &now, first ? after : of->norms[1]));
    }
    *ret_memory = now.in;
    return TD_OK;
}

static td_err decode(const recording *rec, td_ops_view memory,
                     td_ops_view *ret_decoded)
{
    const td_native_act_body *act = rec->act;
    state now = {.stream = &act->decoding, .sum = shared(rec, act->start)};
    bool first = act->norm_first;
    for (uint32_t i = 0; i < act->decoder_layers; i++) {
        const td_native_act_layer *of = &act->decoder[i];
        const td_ops_norm *after = i + 1 < act->decoder_layers
                                       ? act->decoder[i + 1].norms[0]
                                       : act->decoder_norm;
        if (i > 0) TD_TRY(attend_self(rec, of, &now, of->norms[first ? 1 : 0]));
        TD_TRY(attend_cross(rec, of, memory, &now, of->norms[first ? 2 : 1]));
        TD_TRY(feed_forward(rec, of, &now, first ? after : of->norms[2]));
    }
    if (!first)
        TD_TRY(rec->ops->norm(rec->side, act->decoder_norm, &now.in, &now.in,
                              rec->info));
    *ret_decoded = now.in;
    return TD_OK;
}

static td_err record(td_native_model *model, uint32_t batch, td_errinfo *info)
{
    const td_native_act_body *act = model->body;
    const recording rec = {.act = act,
                           .ops = model->side_ops,
                           .side = model->side,
                           .batch = batch,
                           .info = info};
    uint32_t actions = model->checkpoint->policy.action_dim;
    td_ops_view embedded = {0}, memory = {0}, decoded = {0};
    TD_TRY(embed(&rec, model, &embedded));
    TD_TRY(encode(&rec, embedded, &memory));
    TD_TRY(decode(&rec, memory, &decoded));
    const td_ops_linear head = {
        .weight = act->head,
        .x = decoded,
        .out = td_ops_dense(act->actions.device, TD_OPS_F32, batch, act->chunk,
                            actions),
    };
    TD_TRY(linear(&rec, &head));
    return rec.ops->give(rec.side, &act->actions,
                         (size_t)batch * act->chunk * actions * sizeof(float),
                         info);
}

const td_native_body_ops td_native_act = {
    .type = TD_NATIVE_POLICY_ACT,
    .check = td_native_act_check,
    .load = td_native_act_load,
    .record = record,
    .free = td_native_act_free,
};
