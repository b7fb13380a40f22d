// SPDX-License-Identifier: Apache-2.0
#ifndef TD_BASE_SHA256_H
#define TD_BASE_SHA256_H

// SHA-256 (FIPS 180-4), to tell one file from another.

#include <stddef.h>
#include <stdint.h>

#define TD_SHA256_TEXT 65 // 64 digits and the zero

typedef struct td_sha256 {
    uint32_t state[8];
    uint64_t bytes;
    uint8_t block[64];
} td_sha256;

void td_sha256_init(td_sha256 *hash);
void td_sha256_add(td_sha256 *hash, const void *data, size_t size);

// The digest in hexadecimal. The hash is used up.
void td_sha256_text(td_sha256 *hash, char ret_text[TD_SHA256_TEXT]);

#endif
