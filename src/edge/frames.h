// SPDX-License-Identifier: Apache-2.0
#ifndef TD_EDGE_FRAMES_H
#define TD_EDGE_FRAMES_H

// The frames that observations show, and where their bytes lie: in buffers of
// their own, or in the message itself. For each observation: choose, then
// either take, show and encode (JPEG), or show, encode, place and take (raw).
// Publisher's thread only.

#include "edge/edge.h"

typedef struct td_edge_frames td_edge_frames;

// Borrows the configuration. Owned by the caller. NOMEM, or INVALID for a JPEG
// quality that is none.
TD_NODISCARD td_err td_edge_frames_new(const td_edge_config *config,
                                       td_edge_frames **ret_frames);
void td_edge_frames_free(td_edge_frames *frames);

// Which cameras the next observation shows, each in its own buffer.
void td_edge_frames_choose(td_edge_frames *frames,
                           const bool wanted[TD_WIRE_MAX_IMAGES]);

// Takes a frame of each chosen camera. Blocks as the robot does. As
// td_robot_frame().
TD_NODISCARD td_err td_edge_frames_take(td_edge_frames *frames,
                                        td_robot *robot);

// Adds the chosen cameras' images: a raw one may still be taken later, for a
// JPEG the frame must be there. As td_media_jpeg_encode().
TD_NODISCARD td_err td_edge_frames_show(td_edge_frames *frames,
                                        td_wire_obs *obs, td_errinfo *info);

// Writes an observation that shows raw frames to `bytes`, all but the frames:
// these are taken into their places in it.
void td_edge_frames_place(td_edge_frames *frames, const td_slice *parts,
                          size_t count, uint8_t *bytes);

#endif
