// SPDX-License-Identifier: Apache-2.0
// Between the host's memory and the device's, without the copy engines: what
// they do is not seen by a kernel before it has ended, and late.
#include "engine/native/cuda/device.cuh"
#include "engine/native/cuda/launch.cuh"

#define THREADS 512
#define BLOCKS 32 // fill the link, and keep the pieces in order

static_assert(THREADS * 16 == TD_NATIVE_CUDA_PIECE, "16 bytes for a thread");

__device__ static void copy_bytes(const td_native_cuda_arrival *a, int64_t at)
{
    const uint8_t *from = (const uint8_t *)a->from + at;
    uint8_t *to = (uint8_t *)a->to + at;
    if (at + 16 <= a->bytes)
        *(uint4 *)to = __ldcv((const uint4 *)from);
    else
        for (int i = 0; at + i < a->bytes; i++)
            to[i] = from[i];
}

__global__ void __launch_bounds__(THREADS)
    arrival_kernel(const __grid_constant__ td_native_cuda_arrival a)
{
    wait_for_earlier();
    // All blocks are at work by now, and need nobody who waits for them.
    let_next_start();
    for (int64_t piece = blockIdx.x; piece * TD_NATIVE_CUDA_PIECE < a.bytes;
         piece += gridDim.x) {
        copy_bytes(&a, piece * TD_NATIVE_CUDA_PIECE + threadIdx.x * 16);
        __syncthreads();
        if (threadIdx.x == 0) say(a.there + piece);
    }
}

cudaError_t td_native_cuda_arrival_run(const td_native_cuda_arrival *arrival,
                                       td_native_cuda_order order)
{
    launch how = {};
    how.grid = dim3(BLOCKS);
    how.threads = THREADS;
    return start(arrival_kernel, &how, arrival, order);
}

__global__ void __launch_bounds__(THREADS)
    leave_kernel(const __grid_constant__ td_native_cuda_leave l)
{
    const int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    wait_for_earlier();
    let_next_start();
    if (i < l.count) l.to[i] = l.from[i];
}

cudaError_t td_native_cuda_leave_run(const td_native_cuda_leave *leave,
                                     td_native_cuda_order order)
{
    launch how = {};
    how.grid = dim3((unsigned)(leave->count + THREADS - 1) / THREADS);
    how.threads = THREADS;
    return start(leave_kernel, &how, leave, order);
}
