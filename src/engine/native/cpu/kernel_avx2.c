// SPDX-License-Identifier: Apache-2.0
// Compiled for AVX2 and FMA; see cmake/native.cmake.
#define KERNEL_NAME td_native_cpu_kernel_avx2
#define KERNEL_TEXT "AVX2"
#define LANES 8
#include "engine/native/cpu/kernel_loops.h"
