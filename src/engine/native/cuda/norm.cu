// SPDX-License-Identifier: Apache-2.0
// What goes row by row: a warp each.
#include "engine/native/cuda/device.cuh"
#include "engine/native/cuda/launch.cuh"

#define WARPS 4
#define MOST_CHUNKS 8 // of 8 values, in a lane

__device__ static inline float sum_of_warp(float value)
{
    for (int i = 16; i > 0; i /= 2)
        value += __shfl_xor_sync(~0u, value, i);
    return value;
}

__device__ static inline void unpack(uint4 eight, float *to)
{
    const uint32_t pairs[4] = {eight.x, eight.y, eight.z, eight.w};
#pragma unroll
    for (int i = 0; i < 4; i++) {
        to[2 * i] = low_of(pairs[i]);
        to[2 * i + 1] = high_of(pairs[i]);
    }
}

template <int CHUNKS>
__global__ void __launch_bounds__(WARPS * 32)
    norm_kernel(const __grid_constant__ td_native_cuda_norm n)
{
    const int lane = (int)threadIdx.x % 32;
    const int row = (int)blockIdx.x * WARPS + (int)threadIdx.x / 32;
    wait_for_earlier();
    let_next_start();
    if (row >= n.batches * n.rows) return;
    int batch = row / n.rows, inner = row % n.rows;
    const bf16 *x = n.x.at + batch * n.x.batch + (int64_t)inner * n.x.row;
    bf16 *out = n.out.at + batch * n.out.batch + (int64_t)inner * n.out.row;
    float value[CHUNKS][8], sum = 0, square = 0;
#pragma unroll
    for (int i = 0; i < CHUNKS; i++) {
        int column = (i * 32 + lane) * 8;
        uint4 eight = make_uint4(0, 0, 0, 0);
        if (column < n.width) eight = *(const uint4 *)(x + column);
        unpack(eight, value[i]);
        for (int j = 0; j < 8; j++)
            sum += value[i][j];
    }
    float mean = sum_of_warp(sum) / (float)n.width;
#pragma unroll
    for (int i = 0; i < CHUNKS; i++)
        for (int j = 0; j < 8; j++)
            if ((i * 32 + lane) * 8 < n.width)
                square += (value[i][j] - mean) * (value[i][j] - mean);
    float scale = rsqrtf(sum_of_warp(square) / (float)n.width + n.epsilon);
#pragma unroll
    for (int i = 0; i < CHUNKS; i++) {
        int column = (i * 32 + lane) * 8;
        if (column >= n.width) break;
        for (int j = 0; j < 8; j++)
            value[i][j] = (value[i][j] - mean) * scale * n.weight[column + j] +
                          n.bias[column + j];
        *(uint4 *)(out + column) = make_uint4(
            pack(value[i][0], value[i][1]), pack(value[i][2], value[i][3]),
            pack(value[i][4], value[i][5]), pack(value[i][6], value[i][7]));
    }
}

cudaError_t td_native_cuda_norm_run(const td_native_cuda_norm *norm,
                                    td_native_cuda_order order)
{
    launch how = {};
    int rows = norm->batches * norm->rows;
    how.grid = dim3((unsigned)((rows + WARPS - 1) / WARPS));
    how.threads = WARPS * 32;
    if (norm->width <= 256) return start(norm_kernel<1>, &how, norm, order);
    if (norm->width <= 512) return start(norm_kernel<2>, &how, norm, order);
    if (norm->width <= 1024) return start(norm_kernel<4>, &how, norm, order);
    return start(norm_kernel<MOST_CHUNKS>, &how, norm, order);
}

// A thread for eight values.
__global__ void __launch_bounds__(WARPS * 32)
    gelu_kernel(const __grid_constant__ td_native_cuda_gelu g)
{
    const int all = g.batches * g.rows * (g.width / 8);
    const int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    wait_for_earlier();
    let_next_start();
    if (i >= all) return;
    int row = i / (g.width / 8), column = i % (g.width / 8) * 8;
    bf16 *at = g.x.at + row / g.rows * g.x.batch +
               (int64_t)(row % g.rows) * g.x.row + column;
    float x[8];
    unpack(*(const uint4 *)at, x);
    for (int j = 0; j < 8; j++)
        x[j] *= 0.5f * (1 + erff(x[j] * 0.70710678f));
    *(uint4 *)at = make_uint4(pack(x[0], x[1]), pack(x[2], x[3]),
                              pack(x[4], x[5]), pack(x[6], x[7]));
}

cudaError_t td_native_cuda_gelu_run(const td_native_cuda_gelu *gelu,
                                    td_native_cuda_order order)
{
    launch how = {};
    int all = gelu->batches * gelu->rows * (gelu->width / 8);
    how.threads = WARPS * 32;
    how.grid = dim3((unsigned)(all + WARPS * 32 - 1) / how.threads);
    return start(gelu_kernel, &how, gelu, order);
}

// A warp for each value of the result.
__global__ void __launch_bounds__(WARPS * 32)
    token_kernel(const __grid_constant__ td_native_cuda_token t)
{
    const int lane = (int)threadIdx.x % 32;
    const int out = (int)blockIdx.x * WARPS + (int)threadIdx.x / 32;
    const int row = (int)blockIdx.y;
    const int ins = t.filter.ins;
    wait_for_earlier();
    let_next_start();
    if (out >= t.filter.outs) return;
    const bf16 *weight =
        t.filter.weight + (int64_t)out * td_native_cuda_up(ins, 64);
    float sum = 0;
    for (int i = lane; i < ins; i += 32)
        sum += t.x[(int64_t)row * ins + i] * __bfloat162float(weight[i]);
    sum = sum_of_warp(sum) + t.filter.bias[out];
    if (lane != 0) return;
    int batch = row / t.rows, inner = row % t.rows;
    if (t.add.at)
        sum += __bfloat162float(
            t.add.at[batch * t.add.batch + (int64_t)inner * t.add.row + out]);
    if (t.relu) sum = fmaxf(sum, 0);
    t.out.at[batch * t.out.batch + (int64_t)inner * t.out.row + out] =
        __float2bfloat16(sum);
}

cudaError_t td_native_cuda_token_run(const td_native_cuda_token *token,
                                     td_native_cuda_order order)
{
    launch how = {};
    how.grid = dim3((unsigned)((token->filter.outs + WARPS - 1) / WARPS),
                    (unsigned)(token->batches * token->rows));
    how.threads = WARPS * 32;
    return start(token_kernel, &how, token, order);
}
