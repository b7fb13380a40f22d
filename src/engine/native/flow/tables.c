// SPDX-License-Identifier: Apache-2.0
#include "engine/native/flow/tables.h"

#include <math.h>
#include <stdlib.h>

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

// The right half of the layer times the time, and its bias.
static void mix_time(const float *weight, const float *bias, const float *time,
                     uint32_t width, float *to)
{
    for (uint32_t i = 0; i < width; i++) {
        const float *row = weight + (size_t)i * 2 * width + width;
        double sum = bias[i];
        for (uint32_t k = 0; k < width; k++)
            sum += (double)row[k] * time[k];
        to[i] = (float)sum;
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
