// SPDX-License-Identifier: Apache-2.0
#ifndef TD_ENGINE_NATIVE_CUDA_LAUNCH_CUH
#define TD_ENGINE_NATIVE_CUDA_LAUNCH_CUH

#include "engine/native/cuda/kernels.h"

typedef struct launch {
    dim3 grid;
    unsigned threads;
    size_t shared_bytes;
    unsigned cluster; // blocks along x that see each other's shared memory
} launch;

// Enqueues `kernel` with its one argument.
template <typename T>
static cudaError_t start(void (*kernel)(const T), const launch *how,
                         const T *argument, td_native_cuda_order order)
{
    if (how->shared_bytes > 48 << 10) {
        cudaError_t error = cudaFuncSetAttribute(
            (const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
            (int)how->shared_bytes);
        if (error != cudaSuccess) return error;
    }
    cudaLaunchAttribute attributes[2] = {};
    cudaLaunchConfig_t config = {};
    config.gridDim = how->grid;
    config.blockDim = dim3(how->threads);
    config.dynamicSmemBytes = how->shared_bytes;
    config.stream = order.stream;
    config.attrs = attributes;
    if (how->cluster > 1) {
        cudaLaunchAttribute *attribute = &attributes[config.numAttrs++];
        attribute->id = cudaLaunchAttributeClusterDimension;
        attribute->val.clusterDim.x = how->cluster;
        attribute->val.clusterDim.y = 1;
        attribute->val.clusterDim.z = 1;
    }
    if (!order.alone) {
        cudaLaunchAttribute *attribute = &attributes[config.numAttrs++];
        attribute->id = cudaLaunchAttributeProgrammaticStreamSerialization;
        attribute->val.programmaticStreamSerializationAllowed = 1;
    }
    T copy = *argument;
    void *arguments[] = {&copy};
    return cudaLaunchKernelExC(&config, (const void *)kernel, arguments);
}

#endif
