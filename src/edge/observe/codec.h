// SPDX-License-Identifier: Apache-2.0
#ifndef TD_EDGE_OBSERVE_CODEC_H
#define TD_EDGE_OBSERVE_CODEC_H

// How images travel. `auto` is for each server that which costs the publisher
// less: raw frames where the transport lends a place for them in shared memory,
// or JPEG. The first observations try both in turn; the cheapest of each is
// compared, since what disturbs a measurement only makes it longer.
//
// Pure. Publisher's thread.

#include <stdbool.h>
#include <stdint.h>

#define TD_EDGE_CODEC_TRIALS 4

// In the order of td_config_image_codec.
typedef enum td_edge_codec {
    TD_EDGE_CODEC_JPEG,
    TD_EDGE_CODEC_RAW,
    TD_EDGE_CODEC_AUTO,
} td_edge_codec;

typedef struct td_edge_codec_choice {
    td_edge_codec codec; // AUTO: not decided
    uint32_t trials[2];  // of JPEG and RAW
    int64_t cost_ns[2];  // the least; INT64_MAX: none was sent
} td_edge_codec_choice;

// A server was found.
void td_edge_codec_begin(td_edge_codec_choice *choice, td_edge_codec setting);

// Whether the next observation is to be tried raw.
bool td_edge_codec_is_raw(const td_edge_codec_choice *choice);

// What an observation cost, raw or not; INT64_MAX: it could not go so. True if
// that decided.
bool td_edge_codec_tried(td_edge_codec_choice *choice, bool raw,
                         int64_t cost_ns);

#endif
