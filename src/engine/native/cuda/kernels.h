// SPDX-License-Identifier: Apache-2.0
#ifndef TD_ENGINE_NATIVE_CUDA_KERNELS_H
#define TD_ENGINE_NATIVE_CUDA_KERNELS_H

// The kernels, as the CUDA backend of td_ops launches them. All memory is the
// device's; numbers are bf16 unless they are float. Each only enqueues and says
// what CUDA says of the launch.
//
// A kernel starts while the one before it still runs and waits inside for what
// that one wrote, unless it runs `alone`: then it starts after everything
// before it, which is what a kernel after a copy needs.

#include <cuda_bf16.h>
#include <cuda_runtime_api.h>
#include <stdint.h>

typedef struct td_native_cuda_order {
    cudaStream_t stream;
    bool alone;
} td_native_cuda_order;

// Rows of values: `row` values apart, and each batch's `batch` values.
typedef struct td_native_cuda_rows {
    __nv_bfloat16 *at; // NULL: none
    int64_t batch;
    int32_t row;
} td_native_cuda_rows;

// A convolution's weight: [outs][ins / 64][kernel][kernel][64], ins and outs
// filled up to multiples of 64 and 128 with zeros, and its bias: [outs].
typedef struct td_native_cuda_filter {
    const __nv_bfloat16 *weight;
    const float *bias;
    int32_t ins, outs, kernel, step, pad, dilation;
} td_native_cuda_filter;

__host__ __device__ static inline int32_t td_native_cuda_up(int32_t n,
                                                            int32_t to)
{
    return (n + to - 1) / to * to;
}

// What a convolution reads: pixels with their channels last, a multiple of 8.
typedef struct td_native_cuda_map {
    td_native_cuda_rows rows;
    int32_t height, width;
    td_native_cuda_filter filter;
} td_native_cuda_map;

// out = relu(x * filter + shortcut * its filter + add). A linear layer is a
// 1 x 1 convolution over one line of pixels.
typedef struct td_native_cuda_conv {
    td_native_cuda_map x;
    td_native_cuda_map shortcut; // (optional) 1 x 1
    td_native_cuda_rows add;     // (optional)
    td_native_cuda_rows out;
    float *out_float; // (optional) instead of out.at
    int32_t batches, out_height, out_width;
    bool relu;
} td_native_cuda_conv;

cudaError_t td_native_cuda_conv_run(const td_native_cuda_conv *conv,
                                    td_native_cuda_order order);

// Bytes from the host's memory, piece by piece: each says when it is there, so
// that the next kernel, which starts with this one, need not wait for the rest.
// A copy of its own would start later and be seen later.
#define TD_NATIVE_CUDA_PIECE 8192
typedef struct td_native_cuda_arrival {
    const void *from; // these two at multiples of 16
    void *to;
    int64_t bytes;
    uint32_t *there; // [pieces], zeros before
} td_native_cuda_arrival;

cudaError_t td_native_cuda_arrival_run(const td_native_cuda_arrival *arrival,
                                       td_native_cuda_order order);

// A few numbers into the host's memory, likewise.
typedef struct td_native_cuda_leave {
    const float *from;
    float *to;
    int32_t count;
} td_native_cuda_leave;

cudaError_t td_native_cuda_leave_run(const td_native_cuda_leave *leave,
                                     td_native_cuda_order order);

// Frames of 8-bit RGB, scaled (x * scale + shift, then zeros around), through
// 64 filters of 7 x 7 in steps of 2, relu and the largest of 3 x 3 in steps of
// 2. Dense.
typedef struct td_native_cuda_stem {
    const uint8_t *x;      // [batches][height][width][3]
    const uint32_t *there; // (optional) of the arrival that x has just now
    int32_t batches, height, width;
    float scale[3], shift[3];
    const __nv_bfloat16 *weight; // [64][192]: 7 rows of 24, each 7 x RGB
    const float *bias;           // [64]
    __nv_bfloat16 *out;          // [batches][pooled height][pooled width][64]
} td_native_cuda_stem;

// Pixels along a side after the steps of 2.
__host__ __device__ static inline int32_t td_native_cuda_halved(int32_t n)
{
    return (n + 1) / 2;
}

cudaError_t td_native_cuda_stem_run(const td_native_cuda_stem *stem,
                                    td_native_cuda_order order);

// out = softmax(q kT scale) v in each head; heads stand side by side in a row.
typedef struct td_native_cuda_attention {
    td_native_cuda_rows q, k, v, out;
    int32_t batches, queries, keys, heads;
    int32_t size; // of a head: a multiple of 8, at most 128
    float scale;
} td_native_cuda_attention;

cudaError_t
td_native_cuda_attention_run(const td_native_cuda_attention *attention,
                             td_native_cuda_order order);

// Each row of `width` (a multiple of 8, at most 2048) to mean 0 and variance 1,
// times weight plus bias. `out` may be `x`.
typedef struct td_native_cuda_norm {
    td_native_cuda_rows x, out;
    const float *weight, *bias; // [width]
    int32_t batches, rows, width;
    float epsilon;
} td_native_cuda_norm;

cudaError_t td_native_cuda_norm_run(const td_native_cuda_norm *norm,
                                    td_native_cuda_order order);

// x times the share of a normal distribution that is below it, in place. By
// itself, so that what everybody uses stays small.
typedef struct td_native_cuda_gelu {
    td_native_cuda_rows x;
    int32_t batches, rows, width; // a multiple of 8
} td_native_cuda_gelu;

cudaError_t td_native_cuda_gelu_run(const td_native_cuda_gelu *gelu,
                                    td_native_cuda_order order);

// A linear layer over inputs of any width that are still float.
typedef struct td_native_cuda_token {
    const float *x;               // [batches][rows][filter.ins]
    td_native_cuda_filter filter; // 1 x 1
    td_native_cuda_rows add;      // (optional)
    td_native_cuda_rows out;
    int32_t batches, rows;
    bool relu;
} td_native_cuda_token;

cudaError_t td_native_cuda_token_run(const td_native_cuda_token *token,
                                     td_native_cuda_order order);

#endif
