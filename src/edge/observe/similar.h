// SPDX-License-Identifier: Apache-2.0
#ifndef TD_EDGE_OBSERVE_SIMILAR_H
#define TD_EDGE_OBSERVE_SIMILAR_H

// The similarity filter, off by default: an observation so like the last one
// sent that its answer would be the same is not sent.
//
// It is similar when the state is, by the Euclidean distance of its values, and
// every image is too: an object may move while the robot stands still. An image
// is compared by a grayscale thumbnail. A pixel's gray is
// (77 R + 150 G + 29 B) >> 8. The thumbnail has min(32, height) rows and
// min(32, width) columns; cell (i, j) of rows x columns is the mean, rounded
// down, over the pixels y in [i height / rows, (i + 1) height / rows) and
// x in [j width / columns, (j + 1) width / columns), bounds rounded down. Two
// images differ by the mean absolute difference of their cells.
//
// One that must go is never similar, nor is one that stands for another that
// was lost: pass both as `must_go`.
//
// Publisher thread; never allocates.

#include "base/err.h"
#include "tendon/wire.h"

#define TD_EDGE_SIMILAR_SIDE 32

typedef struct td_edge_similar_settings {
    bool on;
    double state_tolerance; // below it, in the state's own units
    double image_tolerance; // below it, of 255
} td_edge_similar_settings;

typedef struct td_edge_similar_image {
    const uint8_t *rgb; // height x width x 3, borrowed; not empty
    uint32_t height, width;
} td_edge_similar_image;

typedef struct td_edge_similar_thumb {
    uint32_t height, width; // of the image
    uint8_t gray[TD_EDGE_SIMILAR_SIDE * TD_EDGE_SIMILAR_SIDE];
} td_edge_similar_thumb;

typedef struct td_edge_similar_view {
    uint32_t channels, images;
    float state[TD_WIRE_MAX_CHANNELS];
    td_edge_similar_thumb thumbs[TD_WIRE_MAX_IMAGES];
} td_edge_similar_view;

typedef struct td_edge_similar {
    td_edge_similar_settings settings;
    bool has_sent;
    td_edge_similar_view sent;    // last
    td_edge_similar_view checked; // last
} td_edge_similar;

// INVALID for a tolerance that is below 0 or not a number.
TD_NODISCARD td_err td_edge_similar_init(
    td_edge_similar *similar, const td_edge_similar_settings *settings);

// Whether it is to be left out. At most TD_WIRE_MAX_CHANNELS and _IMAGES.
bool td_edge_similar_check(td_edge_similar *similar, const float *state,
                           uint32_t channels,
                           const td_edge_similar_image *images, uint32_t count,
                           bool must_go);

// The one checked last was sent.
void td_edge_similar_note_sent(td_edge_similar *similar);

// Another server or episode: what was sent before is nothing to compare with.
void td_edge_similar_forget(td_edge_similar *similar);

#endif
