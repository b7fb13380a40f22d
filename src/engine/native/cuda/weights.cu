// SPDX-License-Identifier: Apache-2.0
// Weights as the kernels want them, from weights as a checkpoint has them.
#include "engine/native/cuda/backend.h"

#include <cuda_fp16.h>
#include <stdlib.h>

#define PIECE 64 // of channels in
#define ROWS 128 // channels out are filled up to a multiple
#define STEM_OUTS 64
#define STEM_KERNEL 7
#define STEM_PITCH 192
#define STEM_LINE 24 // 7 x RGB, and three zeros

static float number(const td_ops_source *source, size_t i)
{
    switch (source->dtype) {
    case TD_OPS_F32:
        return ((const float *)source->data)[i];
    case TD_OPS_BF16:
        return __bfloat162float(((const __nv_bfloat16 *)source->data)[i]);
    case TD_OPS_F16:
        return __half2float(((const __half *)source->data)[i]);
    case TD_OPS_U8:
        return ((const uint8_t *)source->data)[i];
    case TD_OPS_U32:
        break;
    }
    return 0;
}

// To the device. `bytes` of `from`, which is freed.
static td_err send(td_ops_backend *backend, void *from, size_t bytes,
                   const void **ret_data, td_errinfo *info)
{
    void *to = NULL;
    td_err err = td_native_cuda_backend_alloc(backend, bytes, &to, info);
    if (err == TD_OK) {
        cudaError_t error = cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice);
        if (error != cudaSuccess)
            err = td_native_cuda_backend_fail(info, error, "sending weights");
    }
    free(from);
    if (err == TD_OK) *ret_data = to;
    return err;
}

// Floats, filled up with zeros to `room`.
static td_err send_floats(td_ops_backend *backend, const td_ops_source *source,
                          uint32_t count, uint32_t room, const float **ret_data,
                          td_errinfo *info)
{
    float *floats = (float *)calloc(room, sizeof *floats);
    const void *sent = NULL;
    if (!floats) return td_fail(info, TD_ERR_NOMEM, "out of memory");
    for (uint32_t i = 0; i < count && source->data; i++)
        floats[i] = number(source, i);
    TD_TRY(send(backend, floats, room * sizeof *floats, &sent, info));
    *ret_data = (const float *)sent;
    return TD_OK;
}

// [outs][ins / 64][kernel][kernel][64] from [outs][ins][kernel][kernel], each
// filter times its scale.
static void pack_filters(const td_ops_source *from, const float *scale,
                         const td_native_cuda_filter *of, __nv_bfloat16 *to)
{
    size_t taps = (size_t)of->kernel * of->kernel;
    size_t pitch = taps * td_native_cuda_up(of->ins, PIECE), at = 0;
    for (int32_t out = 0; out < of->outs; out++)
        for (int32_t in = 0; in < of->ins; in++)
            for (size_t tap = 0; tap < taps; tap++, at++)
                to[out * pitch + (in / PIECE * taps + tap) * PIECE +
                   in % PIECE] = __float2bfloat16(number(from, at) *
                                                  (scale ? scale[out] : 1.0f));
}

static td_err send_filters(td_ops_backend *backend, const td_ops_source *from,
                           const float *scale, td_native_cuda_filter *of,
                           td_errinfo *info)
{
    size_t bytes = sizeof *of->weight * of->kernel * of->kernel *
                   td_native_cuda_up(of->ins, PIECE) *
                   td_native_cuda_up(of->outs, ROWS);
    __nv_bfloat16 *packed = (__nv_bfloat16 *)calloc(1, bytes);
    const void *sent = NULL;
    if (!packed) return td_fail(info, TD_ERR_NOMEM, "out of memory");
    pack_filters(from, scale, of, packed);
    TD_TRY(send(backend, packed, bytes, &sent, info));
    of->weight = (const __nv_bfloat16 *)sent;
    return TD_OK;
}

// [64][7 lines of 24, and zeros] from [64][3][7][7].
static td_err send_stem(td_ops_backend *backend, const td_ops_source *from,
                        const float *scale, td_native_cuda_filter *of,
                        td_errinfo *info)
{
    size_t bytes = sizeof *of->weight * STEM_OUTS * STEM_PITCH, at = 0;
    __nv_bfloat16 *packed = (__nv_bfloat16 *)calloc(1, bytes);
    const void *sent = NULL;
    if (!packed) return td_fail(info, TD_ERR_NOMEM, "out of memory");
    for (int out = 0; out < STEM_OUTS; out++)
        for (int in = 0; in < 3; in++)
            for (int tap = 0; tap < STEM_KERNEL * STEM_KERNEL; tap++, at++)
                packed[out * STEM_PITCH + tap / STEM_KERNEL * STEM_LINE +
                       tap % STEM_KERNEL * 3 + in] =
                    __float2bfloat16(number(from, at) *
                                     (scale ? scale[out] : 1.0f));
    TD_TRY(send(backend, packed, bytes, &sent, info));
    of->weight = (const __nv_bfloat16 *)sent;
    return TD_OK;
}

td_err td_native_cuda_weights_linear(td_ops_backend *backend,
                                     const td_ops_linear_source *source,
                                     td_ops_linear_weight **ret_weight,
                                     td_errinfo *info)
{
    void *kept = NULL;
    if (source->stride || source->more[0].out || source->gated)
        return td_fail(info, TD_ERR_UNSUPPORTED,
                       "CUDA has no linear of several weights, or of a part of "
                       "one");
    TD_TRY(td_native_cuda_backend_keep(backend, sizeof(td_ops_linear_weight),
                                       &kept, info));
    td_ops_linear_weight *weight = (td_ops_linear_weight *)kept;
    td_native_cuda_filter *of = &weight->filter;
    of->ins = (int32_t)source->in;
    of->outs = (int32_t)source->out;
    of->kernel = of->step = of->dilation = 1;
    TD_TRY(send_filters(backend, &source->weight, NULL, of, info));
    TD_TRY(send_floats(backend, &source->bias, source->out,
                       (uint32_t)td_native_cuda_up(of->outs, ROWS), &of->bias,
                       info));
    *ret_weight = weight;
    return TD_OK;
}

static td_err check_conv(const td_ops_conv_source *source, bool is_stem,
                         td_errinfo *info)
{
    if (is_stem &&
        (source->kernel != STEM_KERNEL || source->out != STEM_OUTS ||
         source->stride != 2 || source->pad != 3 || source->dilation != 1))
        return td_fail(info, TD_ERR_UNSUPPORTED,
                       "CUDA has no convolution of pixels but 64 of 7 x 7, "
                       "every second");
    if (!is_stem && (source->in % 8 != 0 || source->out % 8 != 0))
        return td_fail(info, TD_ERR_UNSUPPORTED,
                       "CUDA has no convolution of %u to %u channels: they "
                       "are not multiples of 8",
                       source->in, source->out);
    return TD_OK;
}

td_err td_native_cuda_weights_conv(td_ops_backend *backend,
                                   const td_ops_conv_source *source,
                                   td_ops_conv_weight **ret_weight,
                                   td_errinfo *info)
{
    void *kept = NULL;
    const bool is_stem = source->in == 3;
    const td_ops_source bias = {source->bias, TD_OPS_F32};
    TD_TRY(check_conv(source, is_stem, info));
    TD_TRY(td_native_cuda_backend_keep(backend, sizeof(td_ops_conv_weight),
                                       &kept, info));
    td_ops_conv_weight *weight = (td_ops_conv_weight *)kept;
    td_native_cuda_filter *of = &weight->filter;
    weight->is_stem = is_stem;
    of->ins = (int32_t)source->in;
    of->outs = (int32_t)source->out;
    of->kernel = (int32_t)source->kernel;
    of->step = (int32_t)source->stride;
    of->pad = (int32_t)source->pad;
    of->dilation = (int32_t)source->dilation;
    TD_TRY(
        is_stem
            ? send_stem(backend, &source->weight, source->scale, of, info)
            : send_filters(backend, &source->weight, source->scale, of, info));
    TD_TRY(send_floats(backend, &bias, source->out,
                       (uint32_t)td_native_cuda_up(of->outs, ROWS), &of->bias,
                       info));
    *ret_weight = weight;
    return TD_OK;
}

td_err td_native_cuda_weights_norm(td_ops_backend *backend,
                                   const td_ops_norm_source *source,
                                   td_ops_norm **ret_norm, td_errinfo *info)
{
    void *kept = NULL;
    if (source->cols % 8 != 0 || source->cols > 2048)
        return td_fail(info, TD_ERR_UNSUPPORTED,
                       "CUDA has no norm of %u columns", source->cols);
    if (source->kind != TD_OPS_LAYER_NORM)
        return td_fail(info, TD_ERR_UNSUPPORTED, "CUDA has no RMS norm");
    TD_TRY(
        td_native_cuda_backend_keep(backend, sizeof(td_ops_norm), &kept, info));
    td_ops_norm *norm = (td_ops_norm *)kept;
    norm->width = (int32_t)source->cols;
    norm->epsilon = source->epsilon;
    TD_TRY(send_floats(backend, &source->weight, source->cols, source->cols,
                       &norm->weight, info));
    TD_TRY(send_floats(backend, &source->bias, source->cols, source->cols,
                       &norm->bias, info));
    *ret_norm = norm;
    return TD_OK;
}

td_err td_native_cuda_weights_upload(td_ops_backend *backend,
                                     const td_ops_view *to, const float *from,
                                     td_errinfo *info)
{
    (void)backend;
    uint32_t batches = to->batch_stride ? to->batch : 1;
    size_t each = td_ops_bytes(to->dtype), line = to->cols * each;
    size_t count = (size_t)to->rows * to->cols;
    void *numbers = malloc(count * each);
    cudaError_t error = numbers ? cudaSuccess : cudaErrorMemoryAllocation;
    for (uint32_t i = 0; i < batches && error == cudaSuccess; i++) {
        for (size_t j = 0; j < count; j++)
            if (to->dtype == TD_OPS_F32)
                ((float *)numbers)[j] = from[i * count + j];
            else
                ((__nv_bfloat16 *)numbers)[j] =
                    __float2bfloat16(from[i * count + j]);
        error = cudaMemcpy2D((char *)to->data + i * to->batch_stride * each,
                             to->row_stride * each, numbers, line, line,
                             to->rows, cudaMemcpyHostToDevice);
    }
    free(numbers);
    return error == cudaSuccess
               ? TD_OK
               : td_native_cuda_backend_fail(info, error, "uploading");
}
