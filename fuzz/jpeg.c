// SPDX-License-Identifier: Apache-2.0
#include "media/jpeg.h"

#include <stdlib.h>

#define MAX_PIXELS (1u << 20) // larger ones only make the fuzzer slow

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static td_media_jpeg_decoder *decoder;
    if (!decoder && td_media_jpeg_decoder_new(&decoder) != TD_OK) abort();

    uint32_t height = 0, width = 0;
    td_slice jpeg = {data, size};
    td_errinfo info = {""};
    if (td_media_jpeg_size(jpeg, &height, &width, &info) != TD_OK ||
        height * width > MAX_PIXELS)
        return 0;
    uint8_t *rgb = malloc((size_t)height * width * 3);
    if (!rgb) return 0;
    (void)!td_media_jpeg_decode(decoder, jpeg, height, width, rgb, &info);
    free(rgb);
    return 0;
}
