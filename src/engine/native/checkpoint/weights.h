// SPDX-License-Identifier: Apache-2.0
#ifndef TD_ENGINE_NATIVE_CHECKPOINT_WEIGHTS_H
#define TD_ENGINE_NATIVE_CHECKPOINT_WEIGHTS_H

// The weights of a checkpoint folder: model.safetensors, or the files that
// model.safetensors.index.json names. Mapped, not copied.

#include "engine/native/checkpoint/safetensors.h"

#define TD_NATIVE_MAX_SHARDS 64

typedef struct td_native_weights td_native_weights;

// Owned by the caller. Blocks. NOTFOUND when the folder has neither, FORMAT
// when the index and the files do not say the same, and as
// td_native_safetensors_open.
TD_NODISCARD td_err td_native_weights_open(const char *folder,
                                           td_native_weights **ret_weights,
                                           td_errinfo *info);
void td_native_weights_close(td_native_weights *weights);
TD_AUTO_FREE(td_native_weights, td_native_weights_close)

// Of this name, or NULL. Any thread.
const td_native_tensor *td_native_weights_find(const td_native_weights *weights,
                                               const char *name);

// Of this name, a float, and of these sides. Any thread. NOTFOUND, MISMATCH,
// UNSUPPORTED, each with the folder and the tensor's name.
TD_NODISCARD td_err td_native_weights_get(const td_native_weights *weights,
                                          const char *name, uint32_t rank,
                                          const uint64_t *shape,
                                          const td_native_tensor **ret_tensor,
                                          td_errinfo *info);

typedef struct td_native_weights_sum {
    uint32_t files;
    uint64_t tensors;
    uint64_t bytes;                           // of data
    uint64_t parameters;                      // elements of floats
    uint64_t by_dtype[TD_NATIVE_DTYPE_COUNT]; // elements
} td_native_weights_sum;

// What there is in all. Any thread.
td_native_weights_sum td_native_weights_count(const td_native_weights *weights);

// td_native_tensor_check_finite of each. Reads all of it.
TD_NODISCARD td_err td_native_weights_check_finite(
    const td_native_weights *weights, td_errinfo *info);

#endif
