// SPDX-License-Identifier: Apache-2.0
#ifndef TD_MEDIA_JPEG_H
#define TD_MEDIA_JPEG_H

// JPEG in and out: RGB, eight bits, rows without padding. One beyond the limits
// of media/size.h is refused by its header, before anything is decoded.
//
// An encoder or decoder is used again and again by one thread at a time; its
// buffer grows to the largest frame it met and stays.

#include "base/err.h"

// How finely an encoder keeps colour; a decoder takes what it meets.
typedef enum td_media_chroma {
    TD_MEDIA_CHROMA_420, // one value for two by two pixels
    TD_MEDIA_CHROMA_422, // one for two in a row
    TD_MEDIA_CHROMA_444, // one for each
} td_media_chroma;

typedef struct td_media_jpeg_encoder td_media_jpeg_encoder;
typedef struct td_media_jpeg_decoder td_media_jpeg_decoder;

// `quality` is 1 to 100. Owned by the caller. INVALID.
TD_NODISCARD td_err td_media_jpeg_encoder_new(
    int quality, td_media_chroma chroma, td_media_jpeg_encoder **ret_encoder);
void td_media_jpeg_encoder_free(td_media_jpeg_encoder *encoder);
TD_AUTO_FREE(td_media_jpeg_encoder, td_media_jpeg_encoder_free)

// Encodes height x width x RGB. The result is borrowed until the next encode.
// LIMIT (a side that is 0 or beyond the limits), NOMEM, INTERNAL.
TD_NODISCARD td_err td_media_jpeg_encode(td_media_jpeg_encoder *encoder,
                                         const uint8_t *rgb, uint32_t height,
                                         uint32_t width, td_slice *ret_jpeg,
                                         td_errinfo *info);

// Owned by the caller.
TD_NODISCARD td_err
td_media_jpeg_decoder_new(td_media_jpeg_decoder **ret_decoder);
void td_media_jpeg_decoder_free(td_media_jpeg_decoder *decoder);
TD_AUTO_FREE(td_media_jpeg_decoder, td_media_jpeg_decoder_free)

// Height and width from the frame header; what follows it is not looked at.
// FORMAT (not a JPEG), LIMIT.
TD_NODISCARD td_err td_media_jpeg_size(td_slice jpeg, uint32_t *ret_height,
                                       uint32_t *ret_width, td_errinfo *info);

// Decodes into height x width x 3 bytes of the caller's. FORMAT (not a JPEG,
// damaged or cut short; the buffer may hold a part), LIMIT, MISMATCH (another
// size than asked for; the buffer is untouched).
TD_NODISCARD td_err td_media_jpeg_decode(td_media_jpeg_decoder *decoder,
                                         td_slice jpeg, uint32_t height,
                                         uint32_t width, uint8_t *ret_rgb,
                                         td_errinfo *info);

#endif
