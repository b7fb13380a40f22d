// SPDX-License-Identifier: Apache-2.0
#ifndef TD_MEDIA_RESIZE_H
#define TD_MEDIA_RESIZE_H

// Makes pictures smaller by area: a pixel of the result is the mean of what it
// covers, pixels at its border by the part of them that it covers, rounded to
// the nearest. Exact, so that the same picture gives the same bytes everywhere.
//
// A resizer is for one size in and one out, and for one thread at a time.

#include "base/err.h"

#define TD_MEDIA_RESIZE_MAX_SIDE 8192

typedef struct td_media_resizer td_media_resizer;

typedef struct td_media_size {
    uint32_t height, width;
} td_media_size;

// Owned by the caller. INVALID (a side that is 0 or would grow), LIMIT (beyond
// the largest side), NOMEM.
TD_NODISCARD td_err td_media_resizer_new(td_media_size from, td_media_size to,
                                         td_media_resizer **ret_resizer);
void td_media_resizer_free(td_media_resizer *resizer);
TD_AUTO_FREE(td_media_resizer, td_media_resizer_free)

// RGB, eight bits, rows without padding. Never blocks or allocates.
void td_media_resize(td_media_resizer *resizer, const uint8_t *rgb,
                     uint8_t *ret_rgb);

#endif
