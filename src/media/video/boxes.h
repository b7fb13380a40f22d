// SPDX-License-Identifier: Apache-2.0
#ifndef TD_MEDIA_VIDEO_BOXES_H
#define TD_MEDIA_VIDEO_BOXES_H

// An MP4's boxes, held against what the file really has before libav sees
// them: what is cut short is found here and said in plain words, and so is a
// table that claims more samples than the file has bytes, for which libav would
// allocate at once.

#include "media/video/av.h"

// FORMAT (cut short, not an MP4), LIMIT, UNSUPPORTED (fragments, a compressed
// index), IO.
TD_NODISCARD td_err
td_media_video_boxes_check(const td_media_video_place *place, td_errinfo *info);

#endif
