// SPDX-License-Identifier: Apache-2.0
#include "engine/native/params.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define LAYER_NORM_EPSILON 1e-5f // PyTorch's

void td_native_params_name(char ret_name[TD_NATIVE_NAME_BYTES], const char *fmt,
                           ...)
{
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(ret_name, TD_NATIVE_NAME_BYTES, fmt, args);
    va_end(args);
}

td_err td_native_params_tensor(const td_native_model *model, const char *name,
                               uint32_t rank, const uint64_t *shape,
                               const td_native_tensor **ret_tensor,
                               td_errinfo *info)
{
    const td_native_tensor *tensor = NULL;
    TD_TRY(td_native_weights_get(model->checkpoint->weights, name, rank, shape,
                                 &tensor, info));
    td_err err = tensor->dtype == TD_NATIVE_F64
                     ? td_fail(info, TD_ERR_UNSUPPORTED,
                               "%s: %s: is F64, a policy has F32, F16 or BF16",
                               model->checkpoint->folder, name)
                     : td_native_tensor_check_finite(tensor, info);
    if (err == TD_OK) *ret_tensor = tensor;
    return err;
}

td_err td_native_params_floats(const td_native_model *model, const char *name,
                               uint32_t rank, const uint64_t *shape,
                               float **ret_floats, td_errinfo *info)
{
    const td_native_tensor *tensor = NULL;
    TD_TRY(td_native_params_tensor(model, name, rank, shape, &tensor, info));
    float *floats = malloc((tensor->count + 1) * sizeof *floats);
    if (!floats) return TD_ERR_NOMEM;
    td_native_tensor_read(tensor, 0, tensor->count, floats);
    *ret_floats = floats;
    return TD_OK;
}

td_err td_native_params_shape(const td_native_model *model, const char *name,
                              uint32_t rank, uint64_t *ret_shape,
                              td_errinfo *info)
{
    const td_native_checkpoint *from = model->checkpoint;
    const td_native_tensor *tensor =
        td_native_weights_find(from->weights, name);
    if (!tensor)
        return td_fail(info, TD_ERR_NOTFOUND, "%s: there is no tensor %s",
                       from->folder, name);
    if (tensor->rank != rank)
        return td_fail(info, TD_ERR_MISMATCH, "%s: %s: has %u sides, not %u",
                       from->folder, name, tensor->rank, rank);
    for (uint32_t i = 0; i < rank; i++) {
        if (tensor->shape[i] < 1 || tensor->shape[i] > UINT16_MAX)
            return td_fail(info, TD_ERR_LIMIT, "%s: %s: a side of %llu",
                           from->folder, name,
                           (unsigned long long)tensor->shape[i]);
        ret_shape[i] = tensor->shape[i];
    }
    return TD_OK;
}

static td_ops_dtype dtype_of(const td_native_tensor *tensor)
{
    if (tensor->dtype == TD_NATIVE_BF16) return TD_OPS_BF16;
    return tensor->dtype == TD_NATIVE_F16 ? TD_OPS_F16 : TD_OPS_F32;
}

td_ops_source td_native_params_source(const td_native_tensor *tensor,
                                      uint64_t first)
{
    td_ops_source source = {.dtype = dtype_of(tensor)};
    source.data =
        (const char *)tensor->data + first * td_ops_bytes(source.dtype);
    return source;
}

// "PREFIX.weight" and "PREFIX.bias" for a backend.
static td_err pair_of(td_native_model *model, const char *prefix, uint32_t rank,
                      const uint64_t *shape, td_ops_source *ret_weight,
                      td_ops_source *ret_bias, td_errinfo *info)
{
    char name[TD_NATIVE_NAME_BYTES];
    const td_native_tensor *weight = NULL, *bias = NULL;
    td_native_params_name(name, "%s.weight", prefix);
    TD_TRY(td_native_params_tensor(model, name, rank, shape, &weight, info));
    td_native_params_name(name, "%s.bias", prefix);
    TD_TRY(td_native_params_tensor(model, name, 1, shape, &bias, info));
    *ret_weight = td_native_params_source(weight, 0);
    *ret_bias = td_native_params_source(bias, 0);
    return TD_OK;
}

td_err td_native_params_linear(td_native_model *model, const char *prefix,
                               uint32_t in, uint32_t out,
                               td_ops_linear_weight **ret_weight,
                               td_errinfo *info)
{
    td_ops_linear_source source = {.in = in, .out = out};
    TD_TRY(pair_of(model, prefix, 2, (const uint64_t[]){out, in},
                   &source.weight, &source.bias, info));
    return model->ops->linear_weight(model->backend, &source, ret_weight, info);
}

td_err td_native_params_norm(td_native_model *model, const char *prefix,
                             uint32_t cols, td_ops_norm **ret_norm,
                             td_errinfo *info)
{
    td_ops_norm_source source = {.cols = cols, .epsilon = LAYER_NORM_EPSILON};
    TD_TRY(pair_of(model, prefix, 1, (const uint64_t[]){cols}, &source.weight,
                   &source.bias, info));
    return model->ops->norm_weight(model->backend, &source, ret_norm, info);
}

td_err td_native_params_norm_of(td_native_model *model, const char *prefix,
                                const td_native_params_norm_kind *kind,
                                td_ops_norm **ret_norm, td_errinfo *info)
{
    td_ops_norm_source source = {.cols = kind->cols,
                                 .epsilon = kind->epsilon,
                                 .kind = kind->kind,
                                 .base = kind->base};
    const uint64_t cols = kind->cols;
    char name[TD_NATIVE_NAME_BYTES];
    const td_native_tensor *weight = NULL;
    if (kind->kind == TD_OPS_LAYER_NORM) {
        TD_TRY(pair_of(model, prefix, 1, &cols, &source.weight, &source.bias,
                       info));
    } else {
        td_native_params_name(name, "%s.weight", prefix);
        TD_TRY(td_native_params_tensor(model, name, 1, &cols, &weight, info));
        source.weight = td_native_params_source(weight, 0);
    }
    return model->ops->norm_weight(model->backend, &source, ret_norm, info);
}

static td_err read_part(const td_native_model *model, const char *prefix,
                        const td_native_params_stack *stack, uint32_t index,
                        td_ops_linear_part *ret_part, td_errinfo *info)
{
    const td_native_params_rows *rows = &stack->rows[index];
    td_ops_linear_part part = {.out = rows->out};
    const uint64_t shape[2] = {rows->out, stack->in};
    const td_native_tensor *weight = NULL, *bias = NULL;
    char name[TD_NATIVE_NAME_BYTES];
    td_native_params_name(name, "%s.%s.weight", prefix, rows->name);
    TD_TRY(td_native_params_tensor(model, name, 2, shape, &weight, info));
    part.weight = td_native_params_source(weight, 0);
    if (stack->biased) {
        td_native_params_name(name, "%s.%s.bias", prefix, rows->name);
        TD_TRY(td_native_params_tensor(model, name, 1, shape, &bias, info));
        part.bias = td_native_params_source(bias, 0);
    }
    *ret_part = part;
    return TD_OK;
}

td_err td_native_params_stacked(td_native_model *model, const char *prefix,
                                const td_native_params_stack *stack,
                                td_ops_linear_weight **ret_weight,
                                td_errinfo *info)
{
    td_ops_linear_part parts[1 + TD_OPS_MORE_PARTS] = {0};
    for (uint32_t i = 0; i < stack->count; i++)
        TD_TRY(read_part(model, prefix, stack, i, &parts[i], info));
    const td_ops_linear_source source = {
        .weight = parts[0].weight,
        .bias = parts[0].bias,
        .in = stack->in,
        .out = parts[0].out,
        .more = {parts[1], parts[2]},
        .gated = stack->gated,
    };
    return model->ops->linear_weight(model->backend, &source, ret_weight, info);
}

uint32_t td_native_params_layers(const td_native_model *model,
                                 const char *prefix, const char *rest)
{
    uint32_t count = 0;
    char name[TD_NATIVE_NAME_BYTES];
    while (count < TD_NATIVE_MOST_LAYERS) {
        td_native_params_name(name, "%s.%u.%s", prefix, count, rest);
        if (!td_native_weights_find(model->checkpoint->weights, name)) break;
        count++;
    }
    return count;
}

td_err td_native_params_table(td_native_model *model, uint32_t rows,
                              uint32_t cols, const float *from,
                              td_ops_view *ret_view, td_errinfo *info)
{
    td_ops_info backend;
    void *data = NULL;
    model->ops->info(model->backend, &backend);
    TD_TRY(model->ops->alloc(model->backend,
                             (size_t)rows * cols * td_ops_bytes(backend.dtype),
                             &data, info));
    *ret_view = td_ops_dense(data, backend.dtype, 1, rows, cols);
    return model->ops->upload(model->backend, ret_view, from, info);
}
