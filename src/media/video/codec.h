// SPDX-License-Identifier: Apache-2.0
#ifndef TD_MEDIA_VIDEO_CODEC_H
#define TD_MEDIA_VIDEO_CODEC_H

// A codec's encoder in libav, set up as LeRobot sets it up (a key frame every
// second frame, constant quality 30, AV1 with preset 12), with its threads
// bounded and its packets in order.

#include "media/video.h"

#include <libavcodec/avcodec.h>

// Owned by the caller. UNSUPPORTED, NOMEM, INTERNAL.
TD_NODISCARD td_err
td_media_video_codec_open(const td_media_video_encoder_config *config,
                          AVCodecContext **ret_codec, td_errinfo *info);

// UNSUPPORTED where this machine's libav has no encoder for it.
TD_NODISCARD td_err td_media_video_codec_check(td_media_codec codec,
                                               td_errinfo *info);

// libav's word for it.
enum AVCodecID td_media_video_codec_id(td_media_codec codec);

#endif
