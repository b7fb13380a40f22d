// SPDX-License-Identifier: Apache-2.0
#ifndef TD_MEDIA_VIDEO_HEADER_H
#define TD_MEDIA_VIDEO_HEADER_H

#include "media/video.h"

// The head of a stream as an MP4 muxer takes it, of what an encoder gives as
// its own: AV1's sequence header as it is, H.264's parameter sets in the order
// of ISO 14496-15. UNSUPPORTED where it has another form, or no room.
TD_NODISCARD td_err td_media_video_header(td_media_codec codec, td_slice own,
                                          uint8_t *ret_head, size_t room,
                                          size_t *ret_size, td_errinfo *info);

#endif
