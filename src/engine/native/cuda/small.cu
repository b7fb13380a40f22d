// SPDX-License-Identifier: Apache-2.0
// Operations that only move numbers or do little with each: linears of inputs,
// rotary positions where the product itself cannot turn, embeddings, blocks of
// a map, steps of a denoising, and weights on their way to bf16.
#include "engine/native/cuda/launch.cuh"
#include "engine/native/cuda/row.cuh"

#define THREADS 128
#define TOKEN_ROWS 4 // of a block
#define TOKEN_INS 64 // values of an input in shared memory at once

static launch threads_for(int64_t count)
{
    launch how = {};
    how.threads = THREADS;
    how.grid = dim3((unsigned)((count + THREADS - 1) / THREADS));
    return how;
}

__device__ __forceinline__ static int64_t this_thread(void)
{
    return (int64_t)blockIdx.x * THREADS + threadIdx.x;
}

// Inputs of a few rows, a piece of each.
__device__ static void fetch_inputs(const td_native_cuda_token *t, int row,
                                    int in, float (*to)[TOKEN_INS])
{
    for (int i = (int)threadIdx.x; i < TOKEN_ROWS * TOKEN_INS; i += THREADS) {
        int mine = row + i / TOKEN_INS, column = in + i % TOKEN_INS;
        float value = 0;
        if (mine < t->batches * t->rows && column < t->filter.ins)
            value = t->x[mine / t->rows * t->x_batch +
                         (int64_t)(mine % t->rows) * t->x_row + column];
        to[i / TOKEN_INS][i % TOKEN_INS] = value;
    }
}

// A thread for a column, of a few rows.
__global__ void __launch_bounds__(THREADS)
    token_kernel(const __grid_constant__ td_native_cuda_token t)
{
    __shared__ float x[TOKEN_ROWS][TOKEN_INS];
    const int pitch = td_native_cuda_up(t.filter.ins, TOKEN_INS);
    const int row = (int)blockIdx.y * TOKEN_ROWS;
    const int out = (int)this_thread();
    const int mine = min(out, t.filter.outs - 1);
    const bf16 *weight = t.filter.weight + (int64_t)mine * pitch;
    float sum[TOKEN_ROWS];
    for (int i = 0; i < TOKEN_ROWS; i++)
        sum[i] = t.filter.bias[mine];
    let_next_start();
    wait_for_earlier();
    for (int in = 0; in < t.filter.ins; in += TOKEN_INS) {
        fetch_inputs(&t, row, in, x);
        __syncthreads();
#pragma unroll
        for (int j = 0; j < TOKEN_INS; j += 8) {
            float by[8];
            unpack(*(const uint4 *)(weight + in + j), by);
            for (int i = 0; i < TOKEN_ROWS; i++)
                for (int k = 0; k < 8; k++)
                    sum[i] += x[i][j + k] * by[k];
        }
        __syncthreads();
    }
    for (int i = 0; i < TOKEN_ROWS; i++) {
        int batch = (row + i) / t.rows, inner = (row + i) % t.rows;
        if (batch >= t.batches || out >= t.filter.outs) continue;
        const int64_t at =
            batch * t.out.batch + (int64_t)inner * t.out.row + out;
        if (t.add.at)
            sum[i] +=
                __bfloat162float(t.add.at[batch * t.add.batch +
                                          (int64_t)inner * t.add.row + out]);
        sum[i] = activated(sum[i], t.activation);
        if (t.out_float)
            t.out_float[at] = sum[i];
        else
            t.out.at[at] = __float2bfloat16(sum[i]);
    }
}

cudaError_t td_native_cuda_token_run(const td_native_cuda_token *token,
                                     td_native_cuda_order order)
{
    launch how = threads_for(token->filter.outs);
    how.grid.y = (unsigned)((token->batches * token->rows + TOKEN_ROWS - 1) /
                            TOKEN_ROWS);
    return start(token_kernel, &how, token, order);
}

// A thread for a pair of numbers.
__global__ void __launch_bounds__(THREADS)
    turn_kernel(const __grid_constant__ td_native_cuda_turn t)
{
    const int half = t.rotary.size / 2, pairs = t.rotary.cols / 2;
    const int64_t at = this_thread();
    wait_for_earlier();
    let_next_start();
    if (at >= (int64_t)t.batches * t.rows * pairs) return;
    const int row = (int)(at / pairs), pair = (int)(at % pairs);
    const int batch = row / t.rows, inner = row % t.rows;
    int column = pair / half * t.rotary.size + pair % half;
    const td_native_cuda_rows *rows = &t.out;
    if (column >= t.out_cols) {
        column -= t.out_cols;
        rows = &t.rest;
    }
    bf16 *low =
        rows->at + batch * rows->batch + (int64_t)inner * rows->row + column;
    const float *angles = chosen(&t.rotary.table, batch, inner) + pair % half;
    const float a = __bfloat162float(low[0]), b = __bfloat162float(low[half]);
    low[0] = __float2bfloat16(a * angles[0] - b * angles[half]);
    low[half] = __float2bfloat16(b * angles[0] + a * angles[half]);
}

cudaError_t td_native_cuda_turn_run(const td_native_cuda_turn *turn,
                                    td_native_cuda_order order)
{
    const launch how = threads_for((int64_t)turn->batches * turn->rows *
                                   (turn->rotary.cols / 2));
    return start(turn_kernel, &how, turn, order);
}

// A thread for eight numbers.
__global__ void __launch_bounds__(THREADS)
    embed_kernel(const __grid_constant__ td_native_cuda_embed e)
{
    const int chunks = e.width / 8;
    const int64_t at = this_thread();
    wait_for_earlier();
    let_next_start();
    if (at >= (int64_t)e.batches * e.rows * chunks) return;
    const int row = (int)(at / chunks), column = (int)(at % chunks) * 8;
    const int batch = row / e.rows, inner = row % e.rows;
    const int64_t id = number_of(&e.ids, batch, inner);
    float x[8];
    unpack(*(const uint4 *)(e.weight + id * e.width + column), x);
    for (int i = 0; i < 8; i++)
        x[i] *= e.scale;
    *(uint4 *)(e.out.at + batch * e.out.batch + (int64_t)inner * e.out.row +
               column) = pack8(x);
}

cudaError_t td_native_cuda_embed_run(const td_native_cuda_embed *embed,
                                     td_native_cuda_order order)
{
    const launch how =
        threads_for((int64_t)embed->batches * embed->rows * (embed->width / 8));
    return start(embed_kernel, &how, embed, order);
}

// A thread for a number of the result.
__global__ void __launch_bounds__(THREADS)
    blocks_kernel(const __grid_constant__ td_native_cuda_blocks b)
{
    const int across = b.width / b.side, line = b.side * b.channels;
    const int cols = b.side * line, rows = b.height / b.side * across;
    const int64_t at = this_thread();
    wait_for_earlier();
    let_next_start();
    if (at >= (int64_t)b.batches * rows * cols) return;
    const int column = (int)(at % cols), row = (int)(at / cols % rows);
    const int batch = (int)(at / cols / rows);
    const int y = row / across * b.side + column / line;
    const int64_t from =
        batch * b.x_batch +
        ((int64_t)y * b.width + row % across * b.side) * b.channels +
        column % line;
    const float x = b.is_float ? ((const float *)b.x)[from]
                               : __bfloat162float(((const bf16 *)b.x)[from]);
    b.out.at[batch * b.out.batch + (int64_t)row * b.out.row + column] =
        __float2bfloat16(x * b.scale + b.shift);
}

cudaError_t td_native_cuda_blocks_run(const td_native_cuda_blocks *blocks,
                                      td_native_cuda_order order)
{
    const launch how = threads_for((int64_t)blocks->batches * blocks->height *
                                   blocks->width * blocks->channels);
    return start(blocks_kernel, &how, blocks, order);
}

__device__ __forceinline__ static float *
float_of(const td_native_cuda_floats *floats, int batch, int row)
{
    return floats->at + batch * floats->batch + (int64_t)row * floats->row;
}

__global__ void __launch_bounds__(THREADS)
    step_kernel(const __grid_constant__ td_native_cuda_step s)
{
    const int64_t at = this_thread();
    wait_for_earlier();
    let_next_start();
    if (at >= (int64_t)s.batches * s.rows * s.width) return;
    const int row = (int)(at / s.width), column = (int)(at % s.width);
    const int batch = row / s.rows, inner = row % s.rows;
    if (s.kept.at && number_of(&s.kept, batch, inner) != 0) return;
    float *x = float_of(&s.x, batch, inner) + column;
    float v = float_of(&s.v, batch, inner)[column];
    const float weight = s.tail.at ? *float_of(&s.weight, batch, inner) : 0;
    if (weight != 0) {
        const float tail = float_of(&s.tail, batch, inner)[column];
        v -= s.guidance * ((tail - (*x - s.time * v)) * weight);
    }
    *x += s.dt * v;
}

cudaError_t td_native_cuda_step_run(const td_native_cuda_step *step,
                                    td_native_cuda_order order)
{
    const launch how =
        threads_for((int64_t)step->batches * step->rows * step->width);
    return start(step_kernel, &how, step, order);
}

__device__ __forceinline__ static bf16 rounded(const td_native_cuda_round *r,
                                               int64_t at)
{
    if (r->type == TD_NATIVE_CUDA_BF16) return ((const bf16 *)r->from)[at];
    return __float2bfloat16(r->type == TD_NATIVE_CUDA_F32
                                ? ((const float *)r->from)[at]
                                : __half2float(((const __half *)r->from)[at]));
}

__global__ void __launch_bounds__(THREADS)
    round_kernel(const __grid_constant__ td_native_cuda_round r)
{
    for (int64_t at = this_thread(); at < r.rows * r.pitch;
         at += (int64_t)gridDim.x * THREADS) {
        const int64_t row = at / r.pitch, column = at % r.pitch;
        r.to[at] = column < r.width ? rounded(&r, row * r.width + column)
                                    : __float2bfloat16(0);
    }
}

cudaError_t td_native_cuda_round_run(const td_native_cuda_round *rounding,
                                     td_native_cuda_order order)
{
    const int64_t count = rounding->rows * rounding->pitch;
    const launch how = threads_for(count < 1 << 21 ? count : 1 << 21);
    return start(round_kernel, &how, rounding, order);
}
