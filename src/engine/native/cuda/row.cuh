// SPDX-License-Identifier: Apache-2.0
// What kernels that go row by row share: numbers of a row, and what of a table
// a row takes.
#ifndef TD_ENGINE_NATIVE_CUDA_ROW_CUH
#define TD_ENGINE_NATIVE_CUDA_ROW_CUH

#include "engine/native/cuda/device.cuh"

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

__device__ static inline uint4 pack8(const float *from)
{
    return make_uint4(pack(from[0], from[1]), pack(from[2], from[3]),
                      pack(from[4], from[5]), pack(from[6], from[7]));
}

// The number of a row.
__device__ __forceinline__ static uint32_t
number_of(const td_native_cuda_numbers *numbers, int batch, int row)
{
    return numbers->at[batch * numbers->batch + (int64_t)row * numbers->row];
}

// The row of a table that a row takes.
__device__ __forceinline__ static const float *
chosen(const td_native_cuda_table *table, int batch, int row)
{
    uint32_t of = table->choice.at ? number_of(&table->choice, batch, row) : 0;
    return table->at + (int64_t)of * table->row;
}

__device__ __forceinline__ static float activated(float x, int activation)
{
    switch (activation) {
    case TD_NATIVE_CUDA_RELU:
        return fmaxf(x, 0);
    case TD_NATIVE_CUDA_GELU:
        return x * 0.5f * (1 + erff(x * 0.70710678f));
    case TD_NATIVE_CUDA_GELU_TANH: // (1 + tanh y) / 2 is 1 / (1 + exp(-2 y))
        return x / (1 + __expf(-1.59576912f * (x + 0.044715f * x * x * x)));
    case TD_NATIVE_CUDA_SILU:
        return x / (1 + __expf(-x));
    }
    return x;
}

#endif
