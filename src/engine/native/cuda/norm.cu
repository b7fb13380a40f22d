// SPDX-License-Identifier: Apache-2.0
// What goes row by row: a warp each.
#include "engine/native/cuda/launch.cuh"
#include "engine/native/cuda/row.cuh"

#define WARPS 4
#define MOST_CHUNKS 8 // of 8 values, in a lane

// Eight columns' weights and biases.
__device__ static inline void scale8(const td_native_cuda_norm *n,
                                     const float *table, int column,
                                     float *value)
{
    const float *weight = table ? table + column : n->weight + column;
    const float *bias = table ? table + n->width + column : n->bias + column;
    const float base = table ? 1 : n->base;
#pragma unroll
    for (int j = 0; j < 8; j += 4) {
        float4 by = *(const float4 *)(weight + j);
        float4 more = *(const float4 *)(bias + j);
        value[j] = value[j] * (base + by.x) + more.x;
        value[j + 1] = value[j + 1] * (base + by.y) + more.y;
        value[j + 2] = value[j + 2] * (base + by.z) + more.z;
        value[j + 3] = value[j + 3] * (base + by.w) + more.w;
    }
}

template <int CHUNKS>
__global__ void __launch_bounds__(WARPS * 32)
    norm_kernel(const __grid_constant__ td_native_cuda_norm n)
{
    const int lane = (int)threadIdx.x % 32;
    const int row = (int)blockIdx.x * WARPS + (int)threadIdx.x / 32;
    let_next_start();
    wait_for_earlier();
    if (row >= n.batches * n.rows) return;
    int batch = row / n.rows, inner = row % n.rows;
    const bf16 *x = n.x.at + batch * n.x.batch + (int64_t)inner * n.x.row;
    bf16 *out = n.out.at + batch * n.out.batch + (int64_t)inner * n.out.row;
    const float *table =
        n.table.at ? chosen(&n.table, batch, inner) : (const float *)NULL;
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
    float mean = n.rms ? 0 : sum_of_warp(sum) / (float)n.width;
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
            value[i][j] = (value[i][j] - mean) * scale;
        scale8(&n, table, column, value[i]);
        *(uint4 *)(out + column) = pack8(value[i]);
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
    if (norm->width <= 768) return start(norm_kernel<3>, &how, norm, order);
    if (norm->width <= 1024) return start(norm_kernel<4>, &how, norm, order);
    if (norm->width <= 1280) return start(norm_kernel<5>, &how, norm, order);
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
    *(uint4 *)at = pack8(x);
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
