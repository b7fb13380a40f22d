// SPDX-License-Identifier: Apache-2.0
// The loops of AVX-512 in whatever instructions there are, so that tests can
// run them on every processor.
#define KERNEL_NAME td_native_cpu_kernel_wide
#define KERNEL_TEXT "16 lanes"
#define LANES 16
#include "engine/native/cpu/kernel_loops.h"
