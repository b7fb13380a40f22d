// SPDX-License-Identifier: Apache-2.0
// Every chunk of a PNG carries a checksum, which a fuzzer never guesses: each
// input is tried as it is, and once more with its checksums put right.
#include "media/png.h"

#include <png.h>
#include <stdlib.h>
#include <string.h>

#define MAX_PIXELS (1u << 20) // larger ones only make the fuzzer slow
#define SIGNATURE_BYTES 8
#define CHUNK_BYTES 12 // length, name and checksum

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint32_t checksum(const uint8_t *bytes, size_t size)
{
    uint32_t sum = UINT32_MAX;
    for (size_t i = 0; i < size; i++) {
        sum ^= bytes[i];
        for (int bit = 0; bit < 8; bit++)
            sum = sum >> 1 ^ (sum & 1 ? 0xedb88320u : 0);
    }
    return ~sum;
}

static void put_right(uint8_t *png, size_t size)
{
    size_t at = SIGNATURE_BYTES;
    while (at + CHUNK_BYTES <= size) {
        size_t length = png_get_uint_32(png + at);
        if (length > size - at - CHUNK_BYTES) return;
        png_save_uint_32(png + at + 8 + length,
                         checksum(png + at + 4, length + 4));
        at += CHUNK_BYTES + length;
    }
}

static void decode(td_slice png)
{
    uint32_t height = 0, width = 0;
    td_errinfo info = {""};
    if (td_media_png_size(png, &height, &width, &info) != TD_OK ||
        height * width > MAX_PIXELS)
        return;
    uint8_t *rgb = malloc((size_t)height * width * 3);
    if (!rgb) return;
    (void)!td_media_png_decode(png, height, width, rgb, &info);
    free(rgb);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    decode((td_slice){data, size});
    uint8_t *copy = size ? malloc(size) : NULL;
    if (!copy) return 0;
    memcpy(copy, data, size);
    put_right(copy, size);
    decode((td_slice){copy, size});
    free(copy);
    return 0;
}
