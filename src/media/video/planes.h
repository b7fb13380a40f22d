// SPDX-License-Identifier: Apache-2.0
#ifndef TD_MEDIA_VIDEO_PLANES_H
#define TD_MEDIA_VIDEO_PLANES_H

// Pictures to the planes that a video encoder takes (YUV 4:2:0, limited range),
// and a few of their pixels in RGB on the way.

#include "base/err.h"

// Three planes of the caller's: luma, and chroma of half its height and width.
typedef struct td_media_video_planes {
    uint8_t *data[3];
    int stride[3];
} td_media_video_planes;

typedef struct td_media_video_planer td_media_video_planer;

// For pictures of height x width, both even; picks every `step`-th pixel of
// every `step`-th row (0: none). Owned by the caller. NOMEM.
TD_NODISCARD td_err
td_media_video_planer_new(uint32_t height, uint32_t width, uint32_t step,
                          td_media_video_planer **ret_planer);
void td_media_video_planer_free(td_media_video_planer *planer);
TD_AUTO_FREE(td_media_video_planer, td_media_video_planer_free)

// Both write `planes`, and the picked pixels. INTERNAL.
TD_NODISCARD td_err td_media_video_planer_rgb(
    td_media_video_planer *planer, const uint8_t *rgb,
    const td_media_video_planes *planes, td_errinfo *info);

// FORMAT, LIMIT, MISMATCH as td_media_jpeg_decode(); the planes may then hold a
// part, the picked pixels are those of the picture before.
TD_NODISCARD td_err td_media_video_planer_jpeg(
    td_media_video_planer *planer, td_slice jpeg,
    const td_media_video_planes *planes, td_errinfo *info);

// Of the last picture, RGB; black before it. Borrowed.
const uint8_t *
td_media_video_planer_picked(const td_media_video_planer *planer);

#endif
