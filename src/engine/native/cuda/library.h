// SPDX-License-Identifier: Apache-2.0
#ifndef TD_ENGINE_NATIVE_CUDA_LIBRARY_H
#define TD_ENGINE_NATIVE_CUDA_LIBRARY_H

// The CUDA backend of ops.h, which is a library of its own so that this program
// runs where there is no GPU: libtendon_cuda.so, beside the program, where
// `cmake --install` puts it or where the system looks for libraries, or what
// TENDON_CUDA_LIBRARY names.

#include "engine/native/ops/ops.h"

// Loads the library, once; it stays. Any thread; blocks. NOTFOUND when there is
// none, or no driver for it; VERSION for one of another release.
TD_NODISCARD td_err td_native_cuda_library_load(const td_ops **ret_ops,
                                                td_errinfo *info);

#endif
