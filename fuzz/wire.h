// SPDX-License-Identifier: Apache-2.0
#ifndef TD_FUZZ_WIRE_H
#define TD_FUZZ_WIRE_H

// What a decoder lets through its encoder must take, and the bytes of that must
// decode and encode to themselves.

#include "wire/wire.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static td_wire_decoder *decoder;
static td_wire_encoder *encoder;

static inline void prepare(void)
{
    if (decoder) return;
    if (td_wire_decoder_new(&decoder) != TD_OK ||
        td_wire_encoder_new(&encoder) != TD_OK)
        abort();
}

// Owned by the caller.
static inline char *joined(size_t *ret_size)
{
    *ret_size = td_wire_encoder_size(encoder);
    char *bytes = malloc(*ret_size);
    if (!bytes) abort();
    td_wire_encoder_join(encoder, bytes);
    return bytes;
}

#define TD_FUZZ_WIRE(name)                                                     \
    int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)               \
    {                                                                          \
        prepare();                                                             \
        uint64_t seq = 0; /* anything can come on a topic of observations */   \
        (void)!td_wire_obs_peek(data, size, &seq);                             \
        td_wire_##name message;                                                \
        td_errinfo info;                                                       \
        if (td_wire_##name##_decode(decoder, data, size, &message, &info))     \
            return 0;                                                          \
        if (td_wire_##name##_encode(encoder, &message, &info)) abort();        \
        size_t once_size = 0, twice_size = 0;                                  \
        char *once = joined(&once_size);                                       \
        if (td_wire_##name##_decode(decoder, once, once_size, &message,        \
                                    &info) ||                                  \
            td_wire_##name##_encode(encoder, &message, &info))                 \
            abort();                                                           \
        char *twice = joined(&twice_size);                                     \
        if (once_size != twice_size || memcmp(once, twice, once_size) != 0)    \
            abort();                                                           \
        free(once);                                                            \
        free(twice);                                                           \
        return 0;                                                              \
    }

#endif
