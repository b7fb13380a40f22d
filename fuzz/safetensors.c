// SPDX-License-Identifier: Apache-2.0
// What is taken lies inside the bytes, and all of it can be read.
#include "engine/native/checkpoint/safetensors.h"

#include <stdlib.h>
#include <string.h>

#define SOME 16

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look_at(const td_native_tensor *tensor, td_slice bytes)
{
    float values[SOME];
    char text[TD_NATIVE_SHAPE_BYTES];
    td_errinfo info = {""};
    const uint8_t *begin = bytes.data, *at = tensor->data;
    if (at < begin || at + tensor->bytes > begin + bytes.size) abort();
    uint64_t count = tensor->count < SOME ? tensor->count : SOME;
    td_native_tensor_read(tensor, 0, count, values);
    td_native_tensor_read(tensor, tensor->count - count, count, values);
    (void)!td_native_tensor_check_finite(tensor, &info);
    td_native_tensor_shape_text(tensor->rank, tensor->shape, text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    td_native_safetensors *file = NULL;
    td_errinfo info = {""};
    uint8_t *copy = malloc(size ? size : 1); // aligned, and no byte more
    if (!copy) abort();
    if (size > 0) memcpy(copy, data, size);
    const td_slice bytes = {copy, size};
    if (td_native_safetensors_parse(bytes, "file", &file, &info) == TD_OK) {
        size_t count = 0;
        const td_native_tensor *all = td_native_safetensors_all(file, &count);
        for (size_t i = 0; i < count; i++)
            look_at(&all[i], bytes);
        td_native_safetensors_close(file);
    } else if (!info.text[0]) {
        abort();
    }
    free(copy);
    return 0;
}
