// SPDX-License-Identifier: Apache-2.0
#ifndef TD_MEDIA_VIDEO_PICK_H
#define TD_MEDIA_VIDEO_PICK_H

#include "media/video/planes.h"

// Every `step`-th pixel of every `step`-th row of a JPEG's planes (full range,
// 4:2:0, at least six wide), in RGB, bit for bit as libjpeg decodes the whole
// picture: it blends the colours of neighbours. Never fails.
void td_media_video_pick(const td_media_video_planes *planes, uint32_t height,
                         uint32_t width, uint32_t step, uint8_t *ret_rgb);

#endif
