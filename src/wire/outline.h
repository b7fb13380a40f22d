// SPDX-License-Identifier: Apache-2.0
#ifndef TD_WIRE_OUTLINE_H
#define TD_WIRE_OUTLINE_H

// Observations that came in pieces, as a socket brings them. What is small is
// joined in an outline, the message without the bytes of its images; those stay
// in the pieces, and are copied once, by whoever wants them, to where he wants
// them.

#include "wire/wire.h"

// What was cut out: where in the outline, and where in the pieces it begins.
typedef struct td_wire_cut {
    size_t at;
    const td_slice *piece;
    size_t skip, size;
} td_wire_cut;

// Memory of its own, used again and again. {0} is an empty one.
typedef struct td_wire_outline {
    uint8_t *bytes;
    size_t size, room;
    uint32_t cut_count;
    td_wire_cut cuts[TD_WIRE_MAX_IMAGES];
} td_wire_outline;

void td_wire_outline_done(td_wire_outline *outline);

// When nothing looks into it any more: frees it if it is larger than most.
void td_wire_outline_trim(td_wire_outline *outline);

// Whatever the pieces hold, decoding the outline says of it what decoding all
// of it in one piece would say. NOMEM.
TD_NODISCARD td_err td_wire_outline_make(td_wire_outline *outline,
                                         const td_slice *pieces, size_t count);

// Gives an image that was read from the outline its own bytes back.
void td_wire_outline_restore(const td_wire_outline *outline,
                             td_wire_image *image);

// As td_wire_obs_decode(), with views into the pieces and the outline, valid
// while both are. One piece is decoded where it is. NOMEM as well.
TD_NODISCARD td_err td_wire_obs_decode_pieces(
    td_wire_decoder *decoder, td_wire_outline *outline, const td_slice *pieces,
    size_t count, td_wire_obs *ret_obs, td_errinfo *info);

// Copies bytes of an image, which may be in pieces.
void td_wire_image_copy(const td_wire_image *image, size_t from, size_t size,
                        void *into);

// As many of its first bytes as lie in one piece.
td_slice td_wire_image_head(const td_wire_image *image);

#endif
