// SPDX-License-Identifier: Apache-2.0
#ifndef TD_MEDIA_FIT_H
#define TD_MEDIA_FIT_H

// Brings pictures into a frame without distortion, with black where they do not
// reach, as PyTorch does for the policies that were trained so: bilinear, half
// a pixel at the border, nothing smoothed when they become smaller.
//
// A fitter is for one size in and one out. Any number of threads may use it.

#include "media/resize.h"

#include <stdbool.h>

typedef enum td_media_place {
    TD_MEDIA_CORNER, // at the right and the bottom
    TD_MEDIA_MIDDLE, // the odd pixel goes to the right and the bottom
} td_media_place;

typedef struct td_media_fit_config {
    td_media_size from, to;
    td_media_place place;
    float scale[3], bias[3]; // of red, green and blue: byte * scale + bias
    bool clamps;             // to 0 and 1, once it is fitted
} td_media_fit_config;

typedef struct td_media_fitter td_media_fitter;

// Owned by the caller. INVALID (a side that is 0, or would be), LIMIT (beyond
// the largest side), NOMEM.
TD_NODISCARD td_err td_media_fitter_new(const td_media_fit_config *config,
                                        td_media_fitter **ret_fitter);
void td_media_fitter_free(td_media_fitter *fitter);
TD_AUTO_FREE(td_media_fitter, td_media_fitter_free)

// RGB of eight bits into as many floats as the frame has colours, 0 outside
// the picture; rows without padding. Never blocks or allocates.
void td_media_fit(const td_media_fitter *fitter, const uint8_t *rgb,
                  float *ret_rgb);

#endif
