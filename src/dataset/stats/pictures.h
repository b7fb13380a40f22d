// SPDX-License-Identifier: Apache-2.0
#ifndef TD_DATASET_STATS_PICTURES_H
#define TD_DATASET_STATS_PICTURES_H

// Statistics of a camera's pictures over an episode, of the same few pixels of
// the same few pictures as LeRobot looks at: pure.

#include "dataset/stats/stats.h"

// Which pixels of a picture are looked at: every n-th of every n-th row.
uint32_t td_dataset_pictures_step(uint32_t height, uint32_t width);

// Which pictures of an episode of `length` frames are looked at: how many, and
// the frame of each of them, in order.
size_t td_dataset_pictures_samples(size_t length);
size_t td_dataset_pictures_sample(size_t length, size_t i);

// Pictures of one camera, one after the other.
typedef struct td_dataset_pictures td_dataset_pictures;

// Owned by the caller. NOMEM.
TD_NODISCARD td_err td_dataset_pictures_new(td_dataset_pictures **ret_pictures);
void td_dataset_pictures_free(td_dataset_pictures *pictures);
TD_AUTO_FREE(td_dataset_pictures, td_dataset_pictures_free)

// Adds those pixels of the next sampled picture: RGB, row after row.
void td_dataset_pictures_add(td_dataset_pictures *pictures, const uint8_t *rgb,
                             size_t pixels);

// Three channels, 0 to 1. Owned by the caller. EMPTY (none was added), NOMEM.
TD_NODISCARD td_err td_dataset_pictures_stats(
    const td_dataset_pictures *pictures, td_dataset_stats **ret_stats);

#endif
