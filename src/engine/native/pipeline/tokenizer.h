// SPDX-License-Identifier: Apache-2.0
#ifndef TD_ENGINE_NATIVE_PIPELINE_TOKENIZER_H
#define TD_ENGINE_NATIVE_PIPELINE_TOKENIZER_H

// A Hugging Face tokenizer: text to the ids of its tokens, those that begin or
// end every text too. They are in libtendon_formats.so, which the first one
// loads.

#include "base/err.h"

typedef struct td_native_tokenizer td_native_tokenizer;

// Reads a tokenizer.json, which takes a second for a large one. What is beyond
// `most_ids` will be cut off at the right. Owned by the caller. Blocks.
// NOTFOUND, FORMAT, LIMIT, IO, and where the library is missing UNSUPPORTED,
// where it is of another release VERSION.
TD_NODISCARD td_err
td_native_tokenizer_open(const char *path, uint32_t most_ids,
                         td_native_tokenizer **ret_tokenizer, td_errinfo *info);
void td_native_tokenizer_close(td_native_tokenizer *tokenizer);
TD_AUTO_FREE(td_native_tokenizer, td_native_tokenizer_close)

// Writes at most `most_ids` of them. Any thread; never blocks. INVALID (no
// UTF-8), INTERNAL.
TD_NODISCARD td_err td_native_tokenizer_encode(
    const td_native_tokenizer *tokenizer, td_slice text, uint32_t *ret_ids,
    uint32_t *ret_count, td_errinfo *info);

#endif
