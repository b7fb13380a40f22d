// SPDX-License-Identifier: Apache-2.0
// Instead of the crate's tokenizers, in programs that run ACT alone: they are
// all of Rust that an engine needs, and thirty times as large as the rest.
#include "tendon_rust.h"

// NOLINTBEGIN(readability-non-const-parameter): as the crate has them.
int tdr_tokenizer_open(const char *path, size_t most_ids,
                       tdr_tokenizer **ret_tokenizer, char *err,
                       size_t err_size)
{
    (void)path;
    (void)most_ids;
    (void)ret_tokenizer;
    (void)err;
    (void)err_size;
    return TDR_INVALID;
}

void tdr_tokenizer_close(tdr_tokenizer *tokenizer)
{
    (void)tokenizer;
}

int tdr_tokenizer_encode(const tdr_tokenizer *tokenizer, td_slice text,
                         size_t most_ids, uint32_t *ret_ids, size_t *ret_count,
                         char *err, size_t err_size)
{
    (void)tokenizer;
    (void)text;
    (void)most_ids;
    (void)ret_ids;
    (void)ret_count;
    (void)err;
    (void)err_size;
    return TDR_INVALID;
}
// NOLINTEND(readability-non-const-parameter)
