// SPDX-License-Identifier: Apache-2.0
#ifndef TD_ENGINE_NATIVE_CHECKPOINT_TENSOR_H
#define TD_ENGINE_NATIVE_CHECKPOINT_TENSOR_H

// A tensor of a checkpoint: a view of its file's bytes, as they are stored.
// Borrowed from the file, as long as that is open. Any thread.

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

#define TD_NATIVE_MAX_RANK 8
#define TD_NATIVE_SHAPE_BYTES 192 // of the longest shape, written out

// name as the file has it, bytes of an element, whether it is a float
#define TD_NATIVE_DTYPES(X)                                                    \
    X(F32, 4, true)                                                            \
    X(F16, 2, true)                                                            \
    X(BF16, 2, true)                                                           \
    X(F64, 8, true)                                                            \
    X(I64, 8, false)                                                           \
    X(I32, 4, false)                                                           \
    X(I16, 2, false)                                                           \
    X(I8, 1, false)                                                            \
    X(U8, 1, false)                                                            \
    X(BOOL, 1, false)

typedef enum td_native_dtype {
#define TD_NATIVE_DTYPE_ENUM(name, bytes, is_float) TD_NATIVE_##name,
    TD_NATIVE_DTYPES(TD_NATIVE_DTYPE_ENUM)
#undef TD_NATIVE_DTYPE_ENUM
        TD_NATIVE_DTYPE_COUNT
} td_native_dtype;

// `data` is little-endian, row-major and aligned to its elements.
typedef struct td_native_tensor {
    const char *name;
    td_native_dtype dtype;
    uint32_t rank;
    uint64_t shape[TD_NATIVE_MAX_RANK];
    uint64_t count; // of elements
    uint64_t bytes;
    const void *data;
} td_native_tensor;

const char *td_native_dtype_name(td_native_dtype dtype);
size_t td_native_dtype_bytes(td_native_dtype dtype);
bool td_native_dtype_is_float(td_native_dtype dtype);
// The dtype of this name, or DTYPE_COUNT.
td_native_dtype td_native_dtype_find(const char *name);

bool td_native_tensor_has_shape(const td_native_tensor *tensor, uint32_t rank,
                                const uint64_t *shape);

// "[64, 3, 7, 7]". `rank` is at most TD_NATIVE_MAX_RANK.
void td_native_tensor_shape_text(uint32_t rank, const uint64_t *shape,
                                 char ret_text[TD_NATIVE_SHAPE_BYTES]);

// `count` elements from `first` on, as floats: F32, F16 and BF16 exactly, the
// others rounded.
void td_native_tensor_read(const td_native_tensor *tensor, uint64_t first,
                           uint64_t count, float *ret_values);

// Reads all of it. FORMAT with the name and the place of the first value that
// is not finite.
TD_NODISCARD td_err
td_native_tensor_check_finite(const td_native_tensor *tensor, td_errinfo *info);

#endif
