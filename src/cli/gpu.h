// SPDX-License-Identifier: Apache-2.0
#ifndef TD_CLI_GPU_H
#define TD_CLI_GPU_H

// What the NVIDIA driver says of a GPU, through its own library, which is
// loaded when it is there.

#include "base/err.h"

typedef struct td_cli_gpu {
    char name[96];
    double total_gb, used_gb; // memory; used by everybody
} td_cli_gpu;

// Of the device "cuda:N" or "cuda". Blocks for a moment. INVALID for another
// name, NOTFOUND without a driver or such a GPU.
TD_NODISCARD td_err td_cli_gpu_query(const char *device, td_cli_gpu *ret_gpu,
                                     td_errinfo *info);

#endif
