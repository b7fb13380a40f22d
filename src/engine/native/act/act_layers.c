// SPDX-License-Identifier: Apache-2.0
// ACT's layers from the checkpoint to the backend, and what of them is
// constant.
//
// Positions are added to what makes queries and keys alone, and (x + p) W is x
// W + p W: the second part, with the biases, does not depend on an observation.
// It is computed here once, by the backend itself, and kept as a table that the
// layer adds. So queries, keys and values are one product.
//
// The decoder begins with zeros, of which its first layer attends to itself:
// whatever the observation, the same comes out. That result, and the queries of
// the first attention to the encoder, are computed here too, in double, and the
// layer's own attention to itself is never built.
#include "engine/native/act/act_load.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

td_err td_native_act_table_new(const td_native_act_loading *load, uint32_t rows,
                               uint32_t cols, td_ops_view *ret_view)
{
    td_native_model *model = load->model;
    td_ops_dtype dtype = load->act->dtype;
    void *data = NULL;
    TD_TRY(model->ops->alloc(model->backend,
                             (size_t)rows * cols * td_ops_bytes(dtype), &data,
                             load->info));
    *ret_view = td_ops_dense(data, dtype, 1, rows, cols);
    return TD_OK;
}

td_err td_native_act_table_fill(const td_native_act_loading *load,
                                td_ops_view to, const float *from)
{
    return load->model->ops->upload(load->model->backend, &to, from,
                                    load->info);
}

td_err td_native_act_table_repeat(const td_native_act_loading *load,
                                  td_ops_view to, const float *row)
{
    size_t rows = (size_t)to.batch * to.rows;
    float *all = malloc(rows * to.cols * sizeof *all);
    if (!all) return TD_ERR_NOMEM;
    for (size_t i = 0; i < rows; i++)
        memcpy(all + i * to.cols, row, to.cols * sizeof *all);
    td_err err = td_native_act_table_fill(load, to, all);
    free(all);
    return err;
}

td_err td_native_act_table_make(const td_native_act_loading *load,
                                const td_ops_linear_weight *weight,
                                td_ops_view x, const float *bias, uint32_t cols,
                                uint32_t placed, td_ops_view *ret_table)
{
    const td_ops *ops = load->model->ops;
    td_ops_backend *backend = load->model->backend;
    td_ops_graph *graph = NULL;
    td_ops_view table = {0};
    TD_TRY(td_native_act_table_new(load, x.rows, cols, &table));
    TD_TRY(td_native_act_table_repeat(load, table, bias));
    const td_ops_linear op = {
        .weight = weight, .x = x, .add = table, .out = table};
    TD_TRY(ops->begin(backend, load->info));
    TD_TRY(ops->linear(backend, &op, load->info));
    TD_TRY(ops->end(backend, &graph, load->info));
    TD_TRY(ops->run(backend, graph, load->info));
    if (placed < cols)
        TD_TRY(td_native_act_table_repeat(
            load, td_ops_cols(table, placed, cols - placed), bias + placed));
    *ret_table = table;
    return TD_OK;
}

// Rows [first, first + rows) of "PREFIX.in_proj_weight", without a bias.
static td_err give_rows(const td_native_act_loading *load, const char *prefix,
                        uint32_t first, uint32_t rows,
                        td_ops_linear_weight **ret_weight)
{
    uint32_t d = load->act->width;
    char name[TD_NATIVE_NAME_BYTES];
    const td_native_tensor *tensor = NULL;
    td_native_params_name(name, "%s.in_proj_weight", prefix);
    TD_TRY(td_native_params_tensor(load->model, name, 2,
                                   (const uint64_t[]){3 * (uint64_t)d, d},
                                   &tensor, load->info));
    const td_ops_linear_source source = {
        .weight = td_native_params_source(tensor, (uint64_t)first * d),
        .in = d,
        .out = rows,
    };
    return load->model->ops->linear_weight(load->model->backend, &source,
                                           ret_weight, load->info);
}

static td_err read_bias(const td_native_act_loading *load, const char *prefix,
                        float **ret_bias)
{
    char name[TD_NATIVE_NAME_BYTES];
    td_native_params_name(name, "%s.in_proj_bias", prefix);
    return td_native_params_floats(
        load->model, name, 1,
        (const uint64_t[]){3 * (uint64_t)load->act->width}, ret_bias,
        load->info);
}

static td_err give_linear(const td_native_act_loading *load, const char *prefix,
                          const char *rest, uint32_t in, uint32_t out,
                          td_ops_linear_weight **ret_weight)
{
    char name[TD_NATIVE_NAME_BYTES];
    td_native_params_name(name, "%s.%s", prefix, rest);
    return td_native_params_linear(load->model, name, in, out, ret_weight,
                                   load->info);
}

static td_err load_self(const td_native_act_loading *load, const char *prefix,
                        td_ops_view positions, td_native_act_self *self)
{
    uint32_t d = load->act->width;
    float *bias = NULL;
    TD_TRY(give_rows(load, prefix, 0, 3 * d, &self->qkv));
    TD_TRY(give_linear(load, prefix, "out_proj", d, d, &self->out));
    TD_TRY(read_bias(load, prefix, &bias));
    td_err err = td_native_act_table_make(load, self->qkv, positions, bias,
                                          3 * d, 2 * d, &self->table);
    free(bias);
    return err;
}

// `queries` are what positions are to q: the steps, or all of what q is made
// from in the first layer.
static td_err load_cross(const td_native_act_loading *load, const char *prefix,
                         td_ops_view queries, bool constant,
                         td_native_act_cross *cross)
{
    uint32_t d = load->act->width;
    td_ops_linear_weight *q = NULL;
    float *bias = NULL;
    TD_TRY(give_rows(load, prefix, 0, d, &q));
    TD_TRY(give_rows(load, prefix, d, 2 * d, &cross->kv));
    TD_TRY(give_linear(load, prefix, "out_proj", d, d, &cross->out));
    TD_TRY(read_bias(load, prefix, &bias));
    td_err err =
        td_native_act_table_make(load, q, queries, bias, d, d, &cross->q_table);
    if (err == TD_OK)
        err = td_native_act_table_make(load, cross->kv, load->positions_view,
                                       bias + d, 2 * d, d, &cross->kv_table);
    free(bias);
    if (!constant) cross->q = q;
    return err;
}

static td_err load_rest(const td_native_act_loading *load, const char *prefix,
                        uint32_t norms, td_native_act_layer *layer)
{
    const td_native_act_network *act = load->act;
    TD_TRY(give_linear(load, prefix, "linear1", act->width, act->hidden,
                       &layer->up));
    TD_TRY(give_linear(load, prefix, "linear2", act->hidden, act->width,
                       &layer->down));
    for (uint32_t i = 0; i < norms; i++) {
        char name[TD_NATIVE_NAME_BYTES];
        td_native_params_name(name, "%s.norm%u", prefix, i + 1);
        TD_TRY(td_native_params_norm(load->model, name, act->width,
                                     &layer->norms[i], load->info));
    }
    return TD_OK;
}

static void times(const float *matrix, const float *x, const float *bias,
                  uint32_t size, float *to)
{
    for (uint32_t i = 0; i < size; i++) {
        double sum = bias[i];
        for (uint32_t k = 0; k < size; k++)
            sum += (double)matrix[(size_t)i * size + k] * x[k];
        to[i] = (float)sum;
    }
}

static void normalise(const float *x, const float *weight, const float *bias,
                      uint32_t size, float *to)
{
    double mean = 0, variance = 0;
    for (uint32_t i = 0; i < size; i++)
        mean += x[i] / (double)size;
    for (uint32_t i = 0; i < size; i++)
        variance += (x[i] - mean) * (x[i] - mean) / (double)size;
    double factor = 1 / sqrt(variance + 1e-5);
    for (uint32_t i = 0; i < size; i++)
        to[i] = (float)((x[i] - mean) * factor * weight[i] + bias[i]);
}

// Floats of the first layer of the decoder.
typedef struct first_layer {
    float *in_weight, *in_bias, *out_weight, *out_bias;
    float *norm_weight[2], *norm_bias[2];
} first_layer;

static void first_layer_done(first_layer *of)
{
    free(of->in_weight);
    free(of->in_bias);
    free(of->out_weight);
    free(of->out_bias);
    for (int i = 0; i < 2; i++) {
        free(of->norm_weight[i]);
        free(of->norm_bias[i]);
    }
}

static td_err read_first_layer(const td_native_act_loading *load,
                               first_layer *of)
{
    uint64_t d = load->act->width;
    const struct {
        const char *name;
        uint32_t rank;
        uint64_t shape[2];
        float **to;
    } each[] = {
        {"self_attn.in_proj_weight", 2, {3 * d, d}, &of->in_weight},
        {"self_attn.in_proj_bias", 1, {3 * d}, &of->in_bias},
        {"self_attn.out_proj.weight", 2, {d, d}, &of->out_weight},
        {"self_attn.out_proj.bias", 1, {d}, &of->out_bias},
        {"norm1.weight", 1, {d}, &of->norm_weight[0]},
        {"norm1.bias", 1, {d}, &of->norm_bias[0]},
        {"norm2.weight", 1, {d}, &of->norm_weight[1]},
        {"norm2.bias", 1, {d}, &of->norm_bias[1]},
    };
    for (size_t i = 0; i < TD_COUNT_OF(each); i++) {
        char name[TD_NATIVE_NAME_BYTES];
        td_native_params_name(name, "model.decoder.layers.0.%s", each[i].name);
        TD_TRY(td_native_params_floats(load->model, name, each[i].rank,
                                       each[i].shape, each[i].to, load->info));
    }
    return TD_OK;
}

// All rows of the input are equal, zero or the norm of zero; so are the values
// that they attend to, and an average of equal values is that value, whatever
// the weights of the average are. `sum` is what the layer adds to from there,
// `in` what goes into the attention to the encoder.
static void attend_to_nothing(const first_layer *of, uint32_t d,
                              bool norm_first, float *value, float *sum,
                              float *in)
{
    const float *value_weight = of->in_weight + 2 * (size_t)d * d;
    const float *value_bias = of->in_bias + 2 * (size_t)d;
    if (norm_first)
        times(value_weight, of->norm_bias[0], value_bias, d, value);
    else
        memcpy(value, value_bias, d * sizeof *value);
    times(of->out_weight, value, of->out_bias, d, sum);
    normalise(sum, of->norm_weight[norm_first], of->norm_bias[norm_first], d,
              in);
    if (!norm_first) memcpy(sum, in, d * sizeof *sum);
}

// The start of the decoder, and what its first queries are made from.
static td_err load_start(const td_native_act_loading *load,
                         td_ops_view *ret_queries)
{
    td_native_act_network *act = load->act;
    uint32_t d = act->width;
    first_layer of = {0};
    float *rows = malloc((size_t)(act->chunk + 3) * d * sizeof *rows);
    td_err err = rows ? read_first_layer(load, &of) : TD_ERR_NOMEM;
    if (err == TD_OK) {
        float *value = rows + (size_t)act->chunk * d, *sum = value + d;
        float *in = sum + d;
        attend_to_nothing(&of, d, act->norm_first, value, sum, in);
        for (size_t i = 0; i < (size_t)act->chunk * d; i++)
            rows[i] = in[i % d] + load->steps[i];
        err = td_native_act_table_new(load, act->chunk, d, &act->start);
        if (err == TD_OK)
            err = td_native_act_table_repeat(load, act->start, sum);
        if (err == TD_OK)
            err = td_native_act_table_new(load, act->chunk, d, ret_queries);
        if (err == TD_OK)
            err = td_native_act_table_fill(load, *ret_queries, rows);
    }
    first_layer_done(&of);
    free(rows);
    return err;
}

static td_err load_encoder(const td_native_act_loading *load)
{
    td_native_act_network *act = load->act;
    for (uint32_t i = 0; i < act->encoder_layers; i++) {
        td_native_act_layer *layer = &act->encoder[i];
        char prefix[TD_NATIVE_NAME_BYTES], self[TD_NATIVE_NAME_BYTES];
        td_native_params_name(prefix, "model.encoder.layers.%u", i);
        td_native_params_name(self, "%s.self_attn", prefix);
        TD_TRY(load_self(load, self, load->positions_view, &layer->self));
        TD_TRY(load_rest(load, prefix, 2, layer));
    }
    if (!act->norm_first) return TD_OK;
    return td_native_params_norm(load->model, "model.encoder.norm", act->width,
                                 &act->encoder_norm, load->info);
}

static td_err load_decoder(const td_native_act_loading *load)
{
    td_native_act_network *act = load->act;
    td_ops_view queries = {0};
    TD_TRY(load_start(load, &queries));
    for (uint32_t i = 0; i < act->decoder_layers; i++) {
        td_native_act_layer *layer = &act->decoder[i];
        char prefix[TD_NATIVE_NAME_BYTES], part[TD_NATIVE_NAME_BYTES];
        td_native_params_name(prefix, "model.decoder.layers.%u", i);
        td_native_params_name(part, "%s.self_attn", prefix);
        if (i > 0)
            TD_TRY(load_self(load, part, load->steps_view, &layer->self));
        td_native_params_name(part, "%s.multihead_attn", prefix);
        TD_TRY(load_cross(load, part, i > 0 ? load->steps_view : queries,
                          i == 0, &layer->cross));
        TD_TRY(load_rest(load, prefix, 3, layer));
    }
    TD_TRY(td_native_params_norm(load->model, "model.decoder.norm", act->width,
                                 &act->decoder_norm, load->info));
    return td_native_params_linear(load->model, "model.action_head", act->width,
                                   load->model->checkpoint->policy.action_dim,
                                   &act->head, load->info);
}

td_err td_native_act_layers_load(const td_native_act_loading *load)
{
    TD_TRY(load_encoder(load));
    return load_decoder(load);
}
