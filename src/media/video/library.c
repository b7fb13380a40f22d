// SPDX-License-Identifier: Apache-2.0
#include "media/video/library.h"
#include "media/video/av.h"
#include "media/video/codec.h"

static const td_media_video_ops ops = {
    .encoder = &td_media_video_library_encoder,
    .decoder = &td_media_video_library_decoder,
    .join = td_media_video_library_join,
    .check = td_media_video_codec_check,
};

const void *td_media_video_library(uint32_t version, size_t ops_bytes)
{
    if (version != TD_MEDIA_VIDEO_OPS_VERSION ||
        ops_bytes != TD_MEDIA_VIDEO_OPS_BYTES)
        return NULL;
    td_media_video_av_quiet();
    return &ops;
}
