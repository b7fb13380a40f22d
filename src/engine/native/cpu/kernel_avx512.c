// SPDX-License-Identifier: Apache-2.0
// Compiled for AVX-512; see cmake/native.cmake.
#define KERNEL_NAME td_native_cpu_kernel_avx512
#define KERNEL_TEXT "AVX-512"
#define LANES 16
#include "engine/native/cpu/kernel_loops.h"
