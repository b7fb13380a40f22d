// SPDX-License-Identifier: Apache-2.0
#ifndef TD_ENGINE_NATIVE_CHECKPOINT_SAFETENSORS_H
#define TD_ENGINE_NATIVE_CHECKPOINT_SAFETENSORS_H

// A file of named tensors: eight bytes of length, a header in JSON, the data.
//
// Mapped and never copied: what is not read takes no memory. Everything in the
// header is checked before the first tensor is given out: its size, shapes
// against bytes, and that the tensors cover the data without hole or overlap.

#include "engine/native/checkpoint/tensor.h"

#define TD_NATIVE_MAX_HEADER_BYTES (16u << 20)

typedef struct td_native_safetensors td_native_safetensors;

// Maps a file. Owned by the caller. Blocks. IO, NOTFOUND, FORMAT, LIMIT,
// UNSUPPORTED (a dtype), NOMEM, each with "path: what" in `info`.
TD_NODISCARD td_err td_native_safetensors_open(const char *path,
                                               td_native_safetensors **ret_file,
                                               td_errinfo *info);

// The same of bytes in memory, which are borrowed; `name` is what errors call
// them. They begin at an address that is a multiple of eight.
TD_NODISCARD td_err
td_native_safetensors_parse(td_slice bytes, const char *name,
                            td_native_safetensors **ret_file, td_errinfo *info);
void td_native_safetensors_close(td_native_safetensors *file);
TD_AUTO_FREE(td_native_safetensors, td_native_safetensors_close)

// Of this name, or NULL. Any thread.
const td_native_tensor *
td_native_safetensors_find(const td_native_safetensors *file, const char *name);

// All of them, in order of their names. Any thread.
const td_native_tensor *
td_native_safetensors_all(const td_native_safetensors *file, size_t *ret_count);

#endif
