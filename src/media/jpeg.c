// SPDX-License-Identifier: Apache-2.0
#include "media/jpeg.h"

#include "media/size.h"

#include <stdbool.h>
#include <stdlib.h>
#include <turbojpeg.h>

struct td_media_jpeg_encoder {
    tjhandle turbo;
    int quality;
    int sampling; // the library's word for the chroma
    uint8_t *buffer;
    size_t room;
};

struct td_media_jpeg_decoder {
    tjhandle turbo;
};

td_err td_media_jpeg_encoder_new(int quality, td_media_chroma chroma,
                                 td_media_jpeg_encoder **ret_encoder)
{
    static const int samplings[] = {
        [TD_MEDIA_CHROMA_420] = TJSAMP_420,
        [TD_MEDIA_CHROMA_422] = TJSAMP_422,
        [TD_MEDIA_CHROMA_444] = TJSAMP_444,
    };
    if (quality < 1 || quality > 100) return TD_ERR_INVALID;
    TD_AUTO(td_media_jpeg_encoder) *encoder = calloc(1, sizeof *encoder);
    if (!encoder) return TD_ERR_NOMEM;
    encoder->quality = quality;
    encoder->sampling = samplings[chroma];
    encoder->turbo = tjInitCompress();
    if (!encoder->turbo) return TD_ERR_NOMEM;
    *ret_encoder = TD_TAKE(encoder);
    return TD_OK;
}

void td_media_jpeg_encoder_free(td_media_jpeg_encoder *encoder)
{
    if (encoder->turbo) tjDestroy(encoder->turbo);
    free(encoder->buffer);
    free(encoder);
}

// Room for the worst case, so that the library never has to reallocate.
static td_err make_room(td_media_jpeg_encoder *encoder, uint32_t height,
                        uint32_t width)
{
    size_t room = tjBufSize((int)width, (int)height, encoder->sampling);
    if (room <= encoder->room) return TD_OK;
    uint8_t *buffer = realloc(encoder->buffer, room);
    if (!buffer) return TD_ERR_NOMEM;
    encoder->buffer = buffer;
    encoder->room = room;
    return TD_OK;
}

td_err td_media_jpeg_encode(td_media_jpeg_encoder *encoder, const uint8_t *rgb,
                            uint32_t height, uint32_t width, td_slice *ret_jpeg,
                            td_errinfo *info)
{
    TD_TRY(td_media_size_check(height, width, info));
    TD_TRY(make_room(encoder, height, width));
    unsigned long size = encoder->room;
    if (tjCompress2(encoder->turbo, rgb, (int)width, 0, (int)height, TJPF_RGB,
                    &encoder->buffer, &size, encoder->sampling,
                    encoder->quality, TJFLAG_NOREALLOC))
        return td_fail(info, TD_ERR_INTERNAL, "JPEG: %s",
                       tjGetErrorStr2(encoder->turbo));
    *ret_jpeg = (td_slice){encoder->buffer, size};
    return TD_OK;
}

td_err td_media_jpeg_decoder_new(td_media_jpeg_decoder **ret_decoder)
{
    TD_AUTO(td_media_jpeg_decoder) *decoder = calloc(1, sizeof *decoder);
    if (!decoder) return TD_ERR_NOMEM;
    decoder->turbo = tjInitDecompress();
    if (!decoder->turbo) return TD_ERR_NOMEM;
    *ret_decoder = TD_TAKE(decoder);
    return TD_OK;
}

void td_media_jpeg_decoder_free(td_media_jpeg_decoder *decoder)
{
    if (decoder->turbo) tjDestroy(decoder->turbo);
    free(decoder);
}

enum { START = 0xd8, END = 0xd9, SCAN = 0xda, PRIVATE = 0x01 };
#define FRAME_BYTES 8 // of a frame header, its length included

static td_err not_a_jpeg(td_errinfo *info, const char *why)
{
    return td_fail(info, TD_ERR_FORMAT, "not a JPEG: %s", why);
}

// Huffman or arithmetic, in one pass or many: those that the library decodes.
static bool begins_frame(uint8_t marker)
{
    return (marker >= 0xc0 && marker <= 0xc2) || marker == 0xc9 ||
           marker == 0xca;
}

static bool stands_alone(uint8_t marker)
{
    return marker == PRIVATE || (marker >= 0xd0 && marker <= 0xd7);
}

// The frame header, from its length on. NULL: there is none before the pixels.
static const uint8_t *find_frame(const uint8_t *at, const uint8_t *end)
{
    while (end - at >= 4 && at[0] == 0xff) {
        uint8_t marker = at[1];
        size_t bytes = (size_t)at[2] << 8 | at[3];
        if (marker == 0xff) { // may stand any number of times
            at++;
        } else if (stands_alone(marker)) {
            at += 2;
        } else if (marker == SCAN || marker == END || bytes < 2 ||
                   (size_t)(end - at) < 2 + bytes) {
            return NULL;
        } else if (begins_frame(marker)) {
            return bytes < FRAME_BYTES ? NULL : at + 2;
        } else {
            at += 2 + bytes;
        }
    }
    return NULL;
}

// By hand, since it is done for each picture that arrives: the library reads
// all tables up to the pixels.
td_err td_media_jpeg_size(td_slice jpeg, uint32_t *ret_height,
                          uint32_t *ret_width, td_errinfo *info)
{
    const uint8_t *bytes = jpeg.data;
    if (jpeg.size < 2 || bytes[0] != 0xff || bytes[1] != START)
        return not_a_jpeg(info, "it begins otherwise");
    const uint8_t *frame = find_frame(bytes + 2, bytes + jpeg.size);
    if (!frame) return not_a_jpeg(info, "no frame header in it");
    if (frame[2] != 8) return not_a_jpeg(info, "not of 8 bits a channel");
    uint32_t height = (uint32_t)frame[3] << 8 | frame[4];
    uint32_t width = (uint32_t)frame[5] << 8 | frame[6];
    if (height < 1 || width < 1) return not_a_jpeg(info, "no picture in it");
    TD_TRY(td_media_size_check(height, width, info));
    *ret_height = height;
    *ret_width = width;
    return TD_OK;
}

// A warning (cut short, bytes that make no sense) ends the decoding: half a
// picture is worse than none. So does a picture of hundreds of scans, which
// takes minutes to decode.
td_err td_media_jpeg_decode(td_media_jpeg_decoder *decoder, td_slice jpeg,
                            uint32_t height, uint32_t width, uint8_t *ret_rgb,
                            td_errinfo *info)
{
    uint32_t real_height = 0, real_width = 0;
    TD_TRY(td_media_jpeg_size(jpeg, &real_height, &real_width, info));
    if (real_height != height || real_width != width)
        return td_fail(info, TD_ERR_MISMATCH,
                       "a JPEG of %u x %u where %u x %u was expected",
                       real_height, real_width, height, width);
    if (tjDecompress2(decoder->turbo, jpeg.data, jpeg.size, ret_rgb, (int)width,
                      0, (int)height, TJPF_RGB,
                      TJFLAG_STOPONWARNING | TJFLAG_LIMITSCANS))
        return td_fail(info, TD_ERR_FORMAT, "a damaged JPEG: %s",
                       tjGetErrorStr2(decoder->turbo));
    return TD_OK;
}
