// SPDX-License-Identifier: Apache-2.0
#include "engine/native/cpu/backend.h"

static uint32_t out_size(const td_ops_conv *op, uint32_t size)
{
    const td_ops_conv_source *source = &op->weight->source;
    size = td_ops_conv_size(size, source->kernel, source->stride, source->pad,
                            source->dilation);
    return op->pool ? td_ops_conv_size(size, 3, 2, 1, 1) : size;
}

static td_err check(const td_ops_conv *op, td_errinfo *info)
{
    const td_ops_conv_source *source = &op->weight->source;
    uint32_t channels = op->pixels ? 3 : source->in;
    if (source->in != channels || op->x.cols != channels ||
        op->x.rows != op->height * op->width || op->out.cols != source->out ||
        op->out.rows != out_size(op, op->height) * out_size(op, op->width) ||
        op->x.batch != op->out.batch || (op->pool && !op->pixels) ||
        (op->pixels && op->x.dtype != TD_OPS_U8) ||
        op->activation == TD_OPS_GELU ||
        source->kernel * source->kernel > TD_NATIVE_CPU_MAX_RUNS)
        return td_fail(info, TD_ERR_INVALID,
                       "a convolution of %u to %u channels does not fit its "
                       "views",
                       source->in, source->out);
    return TD_OK;
}

static td_err add_one(td_ops_backend *backend, const td_ops_conv *op,
                      td_errinfo *info)
{
    TD_TRY(check(op, info));
    if (td_native_cpu_winograd_can(td_native_cpu_backend_step(backend).kernel,
                                   op))
        return td_native_cpu_winograd_add(backend, op, info);
    return td_native_cpu_direct_add(backend, op, info);
}

// The shortcut goes into the output first, and is added from there.
td_err td_native_cpu_conv(td_ops_backend *backend, const td_ops_conv *op,
                          td_errinfo *info)
{
    td_ops_conv last = *op;
    if (op->shortcut_weight) {
        const td_ops_conv first = {
            .weight = op->shortcut_weight,
            .height = op->shortcut_height,
            .width = op->shortcut_width,
            .x = op->shortcut,
            .add = op->add,
            .out = op->out,
        };
        TD_TRY(add_one(backend, &first, info));
        last.add = op->out;
        last.shortcut_weight = NULL;
    }
    return add_one(backend, &last, info);
}
