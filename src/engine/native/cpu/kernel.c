// SPDX-License-Identifier: Apache-2.0
#define KERNEL_NAME td_native_cpu_kernel_plain
#define KERNEL_TEXT "plain"
#define LANES 4
#include "engine/native/cpu/kernel_loops.h"

#if defined(__x86_64__)
extern const td_native_cpu_kernel td_native_cpu_kernel_avx2;
extern const td_native_cpu_kernel td_native_cpu_kernel_avx512;
#endif

size_t td_native_cpu_kernel_all(const td_native_cpu_kernel **ret_kernels,
                                size_t most)
{
    size_t count = 0;
#if defined(__x86_64__)
    if (count < most && __builtin_cpu_supports("avx512f"))
        ret_kernels[count++] = &td_native_cpu_kernel_avx512;
    if (count < most && __builtin_cpu_supports("avx2") &&
        __builtin_cpu_supports("fma"))
        ret_kernels[count++] = &td_native_cpu_kernel_avx2;
#endif
    if (count < most) ret_kernels[count++] = &td_native_cpu_kernel_plain;
    return count;
}

const td_native_cpu_kernel *td_native_cpu_kernel_best(void)
{
    const td_native_cpu_kernel *best = NULL;
    (void)td_native_cpu_kernel_all(&best, 1);
    return best;
}
