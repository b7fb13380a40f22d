// SPDX-License-Identifier: Apache-2.0
#ifndef TD_EDGE_SAFETY_FAILSAFE_H
#define TD_EDGE_SAFETY_FAILSAFE_H

// The fail-safe: what a robot wants when there is no row to play.
//
// It only wants; the gate decides how fast. So entering it brakes within the
// robot's limits, and when rows come back the gate leads from wherever the
// robot is to them: nothing jumps either way.
//
// Pure, and for the control tick: never blocks, allocates nothing.

#include "edge/safety/gate.h"

#define TD_EDGE_FAILSAFE_MODES(X)                                              \
    X(HOLD, "hold")                   /* brake, and stay there */              \
    X(ZERO_VELOCITY, "zero_velocity") /* 0, for commands that are speeds */    \
    X(SAFE_POSE, "safe_pose")         /* go there, slowly */                   \
    X(REPEAT, "repeat")               /* go on to the policy's last row */

typedef enum td_edge_failsafe_mode {
#define TD_EDGE_FAILSAFE_MODE_ENUM(name, text) TD_EDGE_FAILSAFE_##name,
    TD_EDGE_FAILSAFE_MODES(TD_EDGE_FAILSAFE_MODE_ENUM)
#undef TD_EDGE_FAILSAFE_MODE_ENUM
        TD_EDGE_FAILSAFE_MODE_COUNT
} td_edge_failsafe_mode;

const char *td_edge_failsafe_mode_name(td_edge_failsafe_mode mode);

// Why a robot is in it.
#define TD_EDGE_FAILSAFE_REASONS(X)                                            \
    X(NONE, "none")                                                            \
    X(STARVED, "starved") /* the buffer ran dry */                             \
    X(LIMITS, "limits")   /* the gate was hit too often in a row */            \
    X(DRIVER, "driver")   /* it blocks, fails or lies */

typedef enum td_edge_failsafe_reason {
#define TD_EDGE_FAILSAFE_REASON_ENUM(name, text) TD_EDGE_FAILSAFE_FOR_##name,
    TD_EDGE_FAILSAFE_REASONS(TD_EDGE_FAILSAFE_REASON_ENUM)
#undef TD_EDGE_FAILSAFE_REASON_ENUM
        TD_EDGE_FAILSAFE_REASON_COUNT
} td_edge_failsafe_reason;

const char *td_edge_failsafe_reason_name(td_edge_failsafe_reason reason);

typedef struct td_edge_failsafe_channel {
    td_edge_failsafe_mode mode; // a quaternion's first speaks for its four
    float safe;                 // SAFE_POSE: where to
    double safe_step;           // SAFE_POSE: most a tick, above 0
} td_edge_failsafe_channel;

typedef struct td_edge_failsafe {
    td_edge_failsafe_channel channels[TD_WIRE_MAX_CHANNELS];
} td_edge_failsafe;

// Copies one setting for each channel of `gate`, which it is then used with.
// INVALID with the channel and the field: a safe value that is outside the
// gate's limits, 0 where zero_velocity may not go, zero_velocity of a rotation.
TD_NODISCARD td_err td_edge_failsafe_init(
    td_edge_failsafe *failsafe, const td_edge_failsafe_channel *channels,
    const td_edge_gate *gate, td_errinfo *info);

// The row to give to the gate in this tick. `row` is the policy's last, or
// NULL: there was none, and REPEAT holds.
void td_edge_failsafe_row(const td_edge_failsafe *failsafe,
                          const td_edge_gate *gate, const float *row,
                          float *ret_wanted);

#endif
