// SPDX-License-Identifier: Apache-2.0
#ifndef TD_EDGE_SESSION_CHECK_H
#define TD_EDGE_SESSION_CHECK_H

// Does this robot fit that server? Everything that could make a robot move
// wrongly is compared before the first observation is sent: names and their
// order, kinds, cameras, what else an observation must bring, the step's
// period, the chunk. Pure.

#include "base/err.h"
#include "tendon/wire.h"

// What the robot has, in the words of a status. Borrowed texts.
typedef struct td_edge_profile {
    const char *model_id, *model_version;
    td_wire_channel actions[TD_WIRE_MAX_CHANNELS];
    uint32_t action_count;
    td_wire_channel states[TD_WIRE_MAX_CHANNELS];
    uint32_t state_count;
    td_wire_camera cameras[TD_WIRE_MAX_IMAGES];
    uint32_t camera_count;
    bool downscale; // it may send smaller pictures than its cameras give
    int64_t step_period_us;
    uint32_t actions_per_chunk;
} td_edge_profile;

// MISMATCH with the field, this robot's value and the server's in `info`.
// Cameras that the server does not ask for are fine: they are not sent. So is
// one of which it wants a smaller picture of the same shape, with `downscale`.
TD_NODISCARD td_err td_edge_check_server(const td_edge_profile *profile,
                                         const td_wire_status *status,
                                         td_errinfo *info);

#endif
