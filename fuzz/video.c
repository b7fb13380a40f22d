// SPDX-License-Identifier: Apache-2.0
// A video file: its boxes, its index, and the first of its pictures.
#include "media/video.h"

#include <stdlib.h>

#define MAX_PIXELS (1u << 18) // larger ones only make the fuzzer slow
#define PICTURES 4

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_pictures(td_media_video_decoder *decoder)
{
    td_media_video_facts facts = td_media_video_decoder_facts(decoder);
    if (facts.height * facts.width > MAX_PIXELS) return;
    uint8_t *rgb = malloc((size_t)facts.height * facts.width * 3);
    if (!rgb) return;
    for (int k = PICTURES; k-- > 0;)
        (void)!td_media_video_decoder_picture(decoder, k / 30.0, rgb, NULL);
    free(rgb);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    TD_AUTO(td_media_video_decoder) *decoder = NULL;
    td_errinfo info = {""};
    if (td_media_video_decoder_open_memory((td_slice){data, size}, &decoder,
                                           &info) == TD_OK)
        read_pictures(decoder);
    return 0;
}
