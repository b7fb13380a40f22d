// SPDX-License-Identifier: Apache-2.0
#ifndef TD_MEDIA_VIDEO_LIBRARY_H
#define TD_MEDIA_VIDEO_LIBRARY_H

// Of what library.c makes the library's table.

#include "media/video/ops.h"

extern const td_media_video_encoder_ops td_media_video_library_encoder;
extern const td_media_video_decoder_ops td_media_video_library_decoder;

TD_NODISCARD td_err td_media_video_library_join(
    const char *old, const td_media_video_params *params,
    td_media_video_source source, void *user, int fd, uint64_t *ret_frames,
    td_errinfo *info);

#endif
