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
#include <cuda_fp16.h>
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

// A whole number for each row, `batch` and `row` numbers apart.
typedef struct td_native_cuda_numbers {
    const uint32_t *at; // NULL: none
    int64_t batch;
    int32_t row;
} td_native_cuda_numbers;

// Rows of floats, `row` apart, of which each row takes the one that `choice`
// says; where there is no choice, the first.
typedef struct td_native_cuda_table {
    const float *at; // NULL: none
    int32_t row;
    td_native_cuda_numbers choice;
} td_native_cuda_table;

// Positions of heads of `size` in the first `cols` columns: numbers i and i +
// size / 2 of a head are turned by angle i of the row's, cosines and then
// sines.
typedef struct td_native_cuda_rotary {
    td_native_cuda_table table;
    int32_t cols, size; // of a head: a multiple of 16
} td_native_cuda_rotary;

typedef enum td_native_cuda_activation {
    TD_NATIVE_CUDA_PLAIN,
    TD_NATIVE_CUDA_RELU,
    TD_NATIVE_CUDA_GELU,
    TD_NATIVE_CUDA_GELU_TANH,
    TD_NATIVE_CUDA_SILU,
} td_native_cuda_activation;

// out = act(x W^T + b + add), or with a scale or gates
// out = add + scale * gate * (x W^T + b), or of two halves of a weight
// out = act(x W0^T + b0) * (x W1^T + b1). Columns that `out` has no room for go
// to `rest`, and the first of all are turned.
typedef struct td_native_cuda_linear {
    td_native_cuda_rows x;
    td_native_cuda_filter weight; // 1 x 1; outs: all rows of it
    int32_t second;               // row at which the other half begins; 0: none
    td_native_cuda_rows add;      // (optional)
    td_native_cuda_rows out, rest;
    float *out_float; // (optional) instead of out.at
    int32_t out_cols;
    int32_t batches, rows;
    td_native_cuda_activation activation; // but the exact GELU
    float scale;                          // 0: none
    td_native_cuda_table gates; // (optional) the third of three parts of a row
    td_native_cuda_rotary rotary;
} td_native_cuda_linear;

// Whether the product itself can turn these columns.
bool td_native_cuda_linear_turns(const td_native_cuda_rotary *rotary);
cudaError_t td_native_cuda_linear_run(const td_native_cuda_linear *linear,
                                      td_native_cuda_order order);

// The same in place, by itself; columns from out_cols on are those of `rest`.
typedef struct td_native_cuda_turn {
    td_native_cuda_rows out, rest;
    int32_t out_cols, batches, rows;
    td_native_cuda_rotary rotary;
} td_native_cuda_turn;

cudaError_t td_native_cuda_turn_run(const td_native_cuda_turn *turn,
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

typedef enum td_native_cuda_mask {
    TD_NATIVE_CUDA_SEES_ALL,
    TD_NATIVE_CUDA_SEES_EARLIER,
    TD_NATIVE_CUDA_FIRST_SEES_SELF,
    TD_NATIVE_CUDA_FIRST_UNSEEN,
} td_native_cuda_mask;

// out = softmax(q kT scale) v in each head; heads stand side by side in a row,
// and `heads / kv_heads` of q share one of k and v. The rows of past_k and
// past_v come before those of k and v, and all see them. Of them, or of k and v
// where nothing is past, a member has as many as `lengths` says.
typedef struct td_native_cuda_attention {
    td_native_cuda_rows q, k, v, out;
    td_native_cuda_rows past_k, past_v; // (optional)
    td_native_cuda_numbers lengths;     // (optional)
    int32_t batches, queries, keys, past, heads, kv_heads;
    int32_t size; // of a head: a multiple of 8, at most 256
    td_native_cuda_mask mask;
    float scale;
} td_native_cuda_attention;

cudaError_t
td_native_cuda_attention_run(const td_native_cuda_attention *attention,
                             td_native_cuda_order order);

// Each row of `width` (a multiple of 8, at most 2048) to mean 0 (but for an RMS
// norm) and variance 1, times base plus weight, plus bias. With a table a row's
// weights and biases are the first two of three parts of its row there, and the
// base is 1. `out` may be `x`.
typedef struct td_native_cuda_norm {
    td_native_cuda_rows x, out;
    const float *weight, *bias; // [width]
    td_native_cuda_table table; // (optional) instead of these two
    int32_t batches, rows, width;
    float epsilon, base;
    bool rms;
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
    const float *x; // rows and batches apart as these say
    int64_t x_batch;
    int32_t x_row;
    td_native_cuda_filter filter; // 1 x 1
    td_native_cuda_rows add;      // (optional)
    td_native_cuda_rows out;
    float *out_float; // (optional) instead of out.at
    int32_t batches, rows;
    td_native_cuda_activation activation;
} td_native_cuda_token;

cudaError_t td_native_cuda_token_run(const td_native_cuda_token *token,
                                     td_native_cuda_order order);

// Rows by their number, as large as `scale` says.
typedef struct td_native_cuda_embed {
    const __nv_bfloat16 *weight; // [][width]
    td_native_cuda_numbers ids;
    td_native_cuda_rows out;
    int32_t batches, rows, width; // a multiple of 8
    float scale;
} td_native_cuda_embed;

cudaError_t td_native_cuda_embed_run(const td_native_cuda_embed *embed,
                                     td_native_cuda_order order);

// Blocks of side x side pixels as rows, each number as number * scale + shift.
typedef struct td_native_cuda_blocks {
    const void *x; // dense, [batches][height][width][channels]
    bool is_float;
    int64_t x_batch;
    td_native_cuda_rows out;
    int32_t batches, height, width, channels, side;
    float scale, shift;
} td_native_cuda_blocks;

cudaError_t td_native_cuda_blocks_run(const td_native_cuda_blocks *blocks,
                                      td_native_cuda_order order);

// Rows of floats, `row` apart, and each batch's `batch`.
typedef struct td_native_cuda_floats {
    float *at; // NULL: none
    int64_t batch;
    int32_t row;
} td_native_cuda_floats;

// One step of a denoising (td_ops_step).
typedef struct td_native_cuda_step {
    td_native_cuda_floats x, v, tail, weight;
    td_native_cuda_numbers kept;
    int32_t batches, rows, width;
    float time, dt, guidance;
} td_native_cuda_step;

cudaError_t td_native_cuda_step_run(const td_native_cuda_step *step,
                                    td_native_cuda_order order);

// Rows of numbers, of whichever type, as bf16: [rows][pitch], zeros beyond
// `width`.
typedef enum td_native_cuda_type {
    TD_NATIVE_CUDA_F32,
    TD_NATIVE_CUDA_BF16,
    TD_NATIVE_CUDA_F16,
} td_native_cuda_type;

typedef struct td_native_cuda_round {
    const void *from; // [rows][width]
    td_native_cuda_type type;
    __nv_bfloat16 *to;
    int64_t rows;
    int32_t width, pitch;
} td_native_cuda_round;

cudaError_t td_native_cuda_round_run(const td_native_cuda_round *rounding,
                                     td_native_cuda_order order);

#endif
