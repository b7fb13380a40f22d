// SPDX-License-Identifier: Apache-2.0
// Weights as the kernels want them, from weights as a checkpoint has them.
//
// Those of linears and embeddings go to the GPU as they are, in pieces, and are
// put in order there; those of convolutions, which are few, on the way.
#include "engine/native/cuda/backend.h"

#include <cuda_fp16.h>
#include <stdlib.h>

#define PIECE 64 // of channels in
#define ROWS 128 // channels out are filled up to a multiple
#define STEM_OUTS 64
#define STEM_KERNEL 7
#define STEM_PITCH 192
#define STEM_LINE 24                    // 7 x RGB, and three zeros
#define STAGED_BYTES ((size_t)32 << 20) // of a weight at once

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

static td_native_cuda_type type_of(td_ops_dtype dtype)
{
    if (dtype == TD_OPS_BF16) return TD_NATIVE_CUDA_BF16;
    return dtype == TD_OPS_F16 ? TD_NATIVE_CUDA_F16 : TD_NATIVE_CUDA_F32;
}

// Rows of a weight in the host's memory, and how they will lie in the GPU's.
typedef struct rows {
    const char *from;
    td_ops_dtype dtype;
    size_t count, width, stride, pitch;
    __nv_bfloat16 *to;
} rows;

// So many of the rows, through the staging memory.
static cudaError_t send_some(td_ops_backend *backend, const rows *of,
                             size_t first, size_t count)
{
    size_t each = td_ops_bytes(of->dtype), line = of->width * each;
    const td_native_cuda_order order = {0, true};
    cudaError_t error = cudaMemcpy2D(
        backend->staged, line, of->from + first * of->stride * each,
        of->stride * each, line, count, cudaMemcpyHostToDevice);
    td_native_cuda_round rounding = {};
    rounding.from = backend->staged;
    rounding.type = type_of(of->dtype);
    rounding.to = of->to + first * of->pitch;
    rounding.rows = (int64_t)count;
    rounding.width = (int32_t)of->width;
    rounding.pitch = (int32_t)of->pitch;
    return error == cudaSuccess ? td_native_cuda_round_run(&rounding, order)
                                : error;
}

static td_err send_rows(td_ops_backend *backend, const rows *of,
                        td_errinfo *info)
{
    size_t line = of->width * td_ops_bytes(of->dtype);
    cudaError_t error = cudaSuccess;
    if (line > STAGED_BYTES || of->dtype > TD_OPS_F16)
        return td_fail(info, TD_ERR_UNSUPPORTED, "CUDA has no such weight");
    if (!backend->staged)
        TD_TRY(td_native_cuda_backend_alloc(backend, STAGED_BYTES,
                                            &backend->staged, info));
    if (of->dtype == TD_OPS_BF16 && of->width == of->pitch &&
        of->width == of->stride)
        error = cudaMemcpy(of->to, of->from, of->count * line,
                           cudaMemcpyHostToDevice);
    else
        for (size_t first = 0; first < of->count && error == cudaSuccess;) {
            size_t count = STAGED_BYTES / line;
            if (count > of->count - first) count = of->count - first;
            error = send_some(backend, of, first, count);
            first += count;
        }
    return error == cudaSuccess
               ? TD_OK
               : td_native_cuda_backend_fail(info, error, "sending weights");
}

// One part of a linear's weight, below the rows that are there.
static td_err send_part(td_ops_backend *backend,
                        const td_ops_linear_source *source,
                        const td_ops_source *weight, uint32_t outs,
                        size_t first, td_native_cuda_filter *of,
                        td_errinfo *info)
{
    const size_t pitch = (size_t)td_native_cuda_up(of->ins, PIECE);
    rows part = {};
    part.from = (const char *)weight->data;
    part.dtype = weight->dtype;
    part.count = outs;
    part.width = source->in;
    part.stride = source->stride ? source->stride : source->in;
    part.pitch = pitch;
    part.to = (__nv_bfloat16 *)(uintptr_t)of->weight + first * pitch;
    return send_rows(backend, &part, info);
}

static void put_bias(const td_ops_source *bias, uint32_t outs, float *to)
{
    for (uint32_t i = 0; bias->data && i < outs; i++)
        to[i] = number(bias, i);
}

static td_err send_biases(td_ops_backend *backend,
                          const td_ops_linear_source *source, size_t room,
                          td_native_cuda_filter *of, td_errinfo *info)
{
    float *floats = (float *)calloc(room, sizeof *floats), *to = floats;
    const void *sent = NULL;
    if (!floats) return td_fail(info, TD_ERR_NOMEM, "out of memory");
    put_bias(&source->bias, source->out, to);
    to += source->out;
    for (int i = 0; i < TD_OPS_MORE_PARTS; i++) {
        put_bias(&source->more[i].bias, source->more[i].out, to);
        to += source->more[i].out;
    }
    TD_TRY(send(backend, floats, room * sizeof *floats, &sent, info));
    of->bias = (const float *)sent;
    return TD_OK;
}

static td_err send_parts(td_ops_backend *backend,
                         const td_ops_linear_source *source,
                         td_native_cuda_filter *of, td_errinfo *info)
{
    const size_t room = (size_t)td_native_cuda_up(of->outs, ROWS);
    size_t first = source->out;
    void *weight = NULL;
    TD_TRY(td_native_cuda_backend_alloc(
        backend, room * td_native_cuda_up(of->ins, PIECE) * sizeof *of->weight,
        &weight, info));
    of->weight = (const __nv_bfloat16 *)weight;
    TD_TRY(
        send_part(backend, source, &source->weight, source->out, 0, of, info));
    for (int i = 0; i < TD_OPS_MORE_PARTS; i++) {
        const td_ops_linear_part *part = &source->more[i];
        if (part->out)
            TD_TRY(send_part(backend, source, &part->weight, part->out, first,
                             of, info));
        first += part->out;
    }
    return send_biases(backend, source, room, of, info);
}

td_err td_native_cuda_weights_linear(td_ops_backend *backend,
                                     const td_ops_linear_source *source,
                                     td_ops_linear_weight **ret_weight,
                                     td_errinfo *info)
{
    void *kept = NULL;
    uint32_t outs = source->out;
    for (int i = 0; i < TD_OPS_MORE_PARTS; i++)
        outs += source->more[i].out;
    if (source->gated && (source->out % 8 != 0 || outs != 2 * source->out))
        return td_fail(info, TD_ERR_UNSUPPORTED,
                       "CUDA has no gated linear of %u and %u rows",
                       source->out, outs - source->out);
    TD_TRY(td_native_cuda_backend_keep(backend, sizeof(td_ops_linear_weight),
                                       &kept, info));
    td_ops_linear_weight *weight = (td_ops_linear_weight *)kept;
    td_native_cuda_filter *of = &weight->filter;
    weight->second = source->gated ? (int32_t)source->out : 0;
    of->ins = (int32_t)source->in;
    of->outs = (int32_t)outs;
    of->kernel = of->step = of->dilation = 1;
    TD_TRY(send_parts(backend, source, of, info));
    *ret_weight = weight;
    return TD_OK;
}

td_err td_native_cuda_weights_embedding(td_ops_backend *backend,
                                        const td_ops_embedding_source *source,
                                        td_ops_embedding **ret_embedding,
                                        td_errinfo *info)
{
    void *kept = NULL, *weight = NULL;
    if (source->cols % 8 != 0)
        return td_fail(info, TD_ERR_UNSUPPORTED,
                       "CUDA has no embedding of %u columns", source->cols);
    TD_TRY(td_native_cuda_backend_keep(backend, sizeof(td_ops_embedding), &kept,
                                       info));
    td_ops_embedding *embedding = (td_ops_embedding *)kept;
    TD_TRY(td_native_cuda_backend_alloc(
        backend, (size_t)source->rows * source->cols * sizeof(__nv_bfloat16),
        &weight, info));
    rows all = {};
    all.from = (const char *)source->weight.data;
    all.dtype = source->weight.dtype;
    all.count = source->rows;
    all.width = all.stride = all.pitch = source->cols;
    all.to = (__nv_bfloat16 *)weight;
    TD_TRY(send_rows(backend, &all, info));
    embedding->weight = all.to;
    embedding->cols = source->cols;
    embedding->scale = source->scale;
    *ret_embedding = embedding;
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
    TD_TRY(
        td_native_cuda_backend_keep(backend, sizeof(td_ops_norm), &kept, info));
    td_ops_norm *norm = (td_ops_norm *)kept;
    norm->width = (int32_t)source->cols;
    norm->epsilon = source->epsilon;
    norm->rms = source->kind == TD_OPS_RMS_NORM;
    norm->base = source->weight.data ? source->base : 1;
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
