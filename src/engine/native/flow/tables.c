// SPDX-License-Identifier: Apache-2.0
#include "engine/native/flow/tables.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_WORDS (1 << 20)
#define MAX_WIDTH 32768

td_err td_native_flow_embedding(td_native_model *model, const char *name,
                                td_ops_embedding **ret_embedding,
                                uint32_t *ret_vocabulary, uint32_t *ret_width,
                                td_errinfo *info)
{
    const char *folder = model->checkpoint->folder;
    const td_native_tensor *found =
        td_native_weights_find(model->checkpoint->weights, name);
    if (!found)
        return td_fail(info, TD_ERR_NOTFOUND, "%s: there is no tensor %s",
                       folder, name);
    if (found->rank != 2 || found->shape[0] > MAX_WORDS ||
        found->shape[1] > MAX_WIDTH || found->count == 0)
        return td_fail(info, TD_ERR_MISMATCH,
                       "%s: %s: is no table of at most %d words", folder, name,
                       MAX_WORDS);
    TD_TRY(td_native_params_tensor(model, name, 2, found->shape, &found, info));
    const td_ops_embedding_source source = {
        .weight = td_native_params_source(found, 0),
        .rows = (uint32_t)found->shape[0],
        .cols = (uint32_t)found->shape[1],
        .scale = (float)sqrt((double)found->shape[1]),
    };
    *ret_vocabulary = source.rows;
    *ret_width = source.cols;
    return model->ops->embedding(model->backend, &source, ret_embedding, info);
}

td_err td_native_flow_angles(td_native_model *model, uint32_t positions,
                             uint32_t size, double base,
                             td_ops_view *ret_angles, td_errinfo *info)
{
    void *data = NULL;
    uint32_t half = size / 2;
    size_t bytes = (size_t)positions * size * sizeof(float);
    float *table = malloc(bytes);
    if (!table) return TD_ERR_NOMEM;
    for (uint32_t at = 0; at < positions; at++)
        for (uint32_t i = 0; i < half; i++) {
            double angle = at / pow(base, 2.0 * i / size);
            table[(size_t)at * size + i] = (float)cos(angle);
            table[(size_t)at * size + half + i] = (float)sin(angle);
        }
    td_err err = model->ops->alloc(model->backend, bytes, &data, info);
    if (err == TD_OK) {
        *ret_angles = td_ops_dense(data, TD_OPS_F32, 1, positions, size);
        err = model->ops->upload(model->backend, ret_angles, table, info);
    }
    free(table);
    return err;
}

void td_native_flow_time(double time, uint32_t width, double least, double most,
                         float *ret_values)
{
    uint32_t half = width / 2;
    for (uint32_t i = 0; i < half; i++) {
        double part = half > 1 ? (double)i / (double)(half - 1) : 0;
        double period = least * pow(most / least, part);
        double angle = 2 * M_PI / period * (double)(float)time;
        ret_values[i] = (float)sin(angle);
        ret_values[half + i] = (float)cos(angle);
    }
}

#define LANES 8 // of a sum, so that none waits for the one before

static double dot(const float *a, const float *b, uint32_t count)
{
    double sums[LANES] = {0}, sum = 0;
    uint32_t i = 0;
    for (; i + LANES <= count; i += LANES)
        for (uint32_t k = 0; k < LANES; k++)
            sums[k] += (double)a[i + k] * b[i + k];
    for (; i < count; i++)
        sum += (double)a[i] * b[i];
    for (uint32_t k = 0; k < LANES; k++)
        sum += sums[k];
    return sum;
}

// The right half of the layer times the time, and its bias.
static void mix_time(const float *weight, const float *bias, const float *time,
                     uint32_t width, float *to)
{
    for (uint32_t i = 0; i < width; i++) {
        const float *row = weight + (size_t)i * 2 * width + width;
        to[i] = (float)(bias[i] + dot(row, time, width));
    }
}

td_err td_native_flow_times_table(td_native_model *model,
                                  const td_native_flow_times *of,
                                  td_ops_view *ret_table, td_errinfo *info)
{
    const uint64_t shape[2] = {of->width, 2 * (uint64_t)of->width};
    char name[TD_NATIVE_NAME_BYTES];
    float *weight = NULL, *bias = NULL;
    float *table = malloc((size_t)(of->steps + 1) * of->width * sizeof *table);
    td_err err = table ? TD_OK : TD_ERR_NOMEM;
    td_native_params_name(name, "%s.weight", of->weight);
    if (err == TD_OK)
        err = td_native_params_floats(model, name, 2, shape, &weight, info);
    td_native_params_name(name, "%s.bias", of->weight);
    if (err == TD_OK)
        err = td_native_params_floats(model, name, 1, shape, &bias, info);
    for (uint32_t i = 0; err == TD_OK && i < of->steps; i++) {
        float *time = table + (size_t)of->steps * of->width;
        td_native_flow_time(1.0 - (double)i / of->steps, of->width, of->least,
                            of->most, time);
        mix_time(weight, bias, time, of->width, table + (size_t)i * of->width);
    }
    if (err == TD_OK)
        err = td_native_params_table(model, of->steps, of->width, table,
                                     ret_table, info);
    free(weight);
    free(bias);
    free(table);
    return err;
}

struct td_native_flow_times_net {
    td_native_model *model;
    td_native_flow_times of;
    float *conditions; // [steps + 1][width], the last of the end
};

void td_native_flow_times_net_free(td_native_flow_times_net *net)
{
    free(net->conditions);
    free(net);
}

// to = act(from W^T + b), of `rows`; in float32, added up in double.
static td_err through(const td_native_flow_times_net *net, const char *name,
                      uint32_t out, bool silu, const float *from, float *to,
                      td_errinfo *info)
{
    uint32_t in = net->of.width, rows = net->of.steps + 1;
    char whole[TD_NATIVE_NAME_BYTES];
    float *weight = NULL, *bias = NULL;
    td_native_params_name(whole, "%s.weight", name);
    TD_TRY(td_native_params_floats(net->model, whole, 2,
                                   (const uint64_t[]){out, in}, &weight, info));
    td_native_params_name(whole, "%s.bias", name);
    td_err err = td_native_params_floats(net->model, whole, 1,
                                         (const uint64_t[]){out}, &bias, info);
    for (size_t i = 0; err == TD_OK && i < (size_t)rows * out; i++) {
        double sum =
            bias[i % out] + dot(weight + i % out * in, from + i / out * in, in);
        to[i] = (float)(silu ? sum / (1 + exp(-sum)) : sum);
    }
    free(weight);
    free(bias);
    return err;
}

static td_err fill_conditions(td_native_flow_times_net *net, const char *in,
                              const char *out, td_errinfo *info)
{
    const td_native_flow_times *of = &net->of;
    size_t count = (size_t)(of->steps + 1) * of->width;
    float *times = malloc(2 * count * sizeof *times);
    if (!times) return TD_ERR_NOMEM;
    for (uint32_t i = 0; i <= of->steps; i++)
        td_native_flow_time(1.0 - (double)i / of->steps, of->width, of->least,
                            of->most, times + (size_t)i * of->width);
    td_err err = through(net, in, of->width, true, times, times + count, info);
    if (err == TD_OK)
        err = through(net, out, of->width, true, times + count, net->conditions,
                      info);
    free(times);
    return err;
}

td_err td_native_flow_times_net_new(td_native_model *model,
                                    const td_native_flow_times *of,
                                    const char *in, const char *out,
                                    td_native_flow_times_net **ret_net,
                                    td_errinfo *info)
{
    TD_AUTO(td_native_flow_times_net) *net = calloc(1, sizeof *net);
    if (!net) return TD_ERR_NOMEM;
    net->model = model;
    net->of = *of;
    net->conditions =
        malloc((size_t)(of->steps + 1) * of->width * sizeof *net->conditions);
    if (!net->conditions) return TD_ERR_NOMEM;
    TD_TRY(fill_conditions(net, in, out, info));
    *ret_net = TD_TAKE(net);
    return TD_OK;
}

td_err td_native_flow_times_modulate(td_native_flow_times_net *net,
                                     const char *name, td_ops_view *ret_table,
                                     td_errinfo *info)
{
    const td_ops *ops = net->model->ops;
    uint32_t steps = net->of.steps, cols = 3 * net->of.width;
    size_t each = cols * sizeof(float), bytes = 2 * (size_t)steps * each;
    void *data = NULL;
    float *made = malloc((size_t)(steps + 1) * each), *table = malloc(bytes);
    td_err err = made && table ? TD_OK : TD_ERR_NOMEM;
    if (err == TD_OK)
        err = through(net, name, cols, false, net->conditions, made, info);
    for (uint32_t i = 0; err == TD_OK && i < steps; i++) {
        memcpy(table + (size_t)2 * i * cols, made + (size_t)i * cols, each);
        memcpy(table + (size_t)(2 * i + 1) * cols, made + (size_t)steps * cols,
               each);
    }
    if (err == TD_OK) err = ops->alloc(net->model->backend, bytes, &data, info);
    if (err == TD_OK) {
        *ret_table = td_ops_dense(data, TD_OPS_F32, 1, 2 * steps, cols);
        err = ops->upload(net->model->backend, ret_table, table, info);
    }
    free(made);
    free(table);
    return err;
}
