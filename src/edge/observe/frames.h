// SPDX-License-Identifier: Apache-2.0
#ifndef TD_EDGE_OBSERVE_FRAMES_H
#define TD_EDGE_OBSERVE_FRAMES_H

// The images of an observation: the newest frames of the cameras that the
// server wants, each as small as it wants it. For each observation: take, make,
// fill. Publisher's thread only; never blocks.

#include "base/hist.h"
#include "edge/observe/camera.h"
#include "edge/observe/codec.h"
#include "edge/observe/similar.h"
#include "media/jpeg.h"
#include "media/resize.h"

typedef struct td_edge_frames_config {
    const td_edge_cameras *cameras; // borrowed, with what they are called
    td_edge_codec codec;
    int jpeg_quality;
    td_media_chroma jpeg_chroma;
} td_edge_frames_config;

typedef struct td_edge_frames td_edge_frames;

// Owned by the caller. NOMEM, or INVALID for a JPEG quality out of range.
TD_NODISCARD td_err td_edge_frames_new(const td_edge_frames_config *config,
                                       td_edge_frames **ret_frames);
void td_edge_frames_free(td_edge_frames *frames);

// Takes the newest frame of each camera that is wanted, in the size that is;
// height 0: it is not. What was made before is gone. EMPTY when one of them has
// no new frame, INVALID (larger than the camera's), NOMEM; as
// td_media_jpeg_decode() where a camera's JPEG has to be made smaller.
TD_NODISCARD td_err td_edge_frames_take(
    td_edge_frames *frames, const td_media_size wanted[TD_WIRE_MAX_IMAGES],
    int64_t now_ns, td_errinfo *info);

// Whether a camera is wanted and its frame, as taken last, is not new.
bool td_edge_frames_is_stale(const td_edge_frames *frames, uint32_t camera,
                             int64_t now_ns);
bool td_edge_frames_are_fresh(const td_edge_frames *frames, int64_t now_ns);

// The pixels of what was taken, borrowed until the next is. As
// td_media_jpeg_decode().
TD_NODISCARD td_err
td_edge_frames_pixels(td_edge_frames *frames,
                      td_edge_similar_image ret_images[TD_WIRE_MAX_IMAGES],
                      uint32_t *ret_count, td_errinfo *info);

// Makes images of what was taken, once. A camera's JPEG of the wanted size is
// one. As td_media_jpeg_encode() and td_media_jpeg_decode().
TD_NODISCARD td_err td_edge_frames_make(td_edge_frames *frames, bool raw,
                                        td_errinfo *info);

// Lets the cameras whose frames are sent as they are, raw or a camera's own
// JPEG, take them into places that `pub` lends. NULL: no more.
void td_edge_frames_lend(td_edge_frames *frames, bool raw, td_net_pub *pub);

// The loans in which all that was made lies. 0: there are none, or not of all.
size_t td_edge_frames_loans(const td_edge_frames *frames,
                            td_net_loan *ret_loans[TD_WIRE_MAX_IMAGES]);

// Adds what was made; borrowed until the next is taken or made.
void td_edge_frames_fill(const td_edge_frames *frames, td_wire_obs *obs);

// Records how far each frame is from the state in time.
void td_edge_frames_skew(const td_edge_frames *frames, int64_t state_ns,
                         td_hist *skew_ns);

#endif
