// SPDX-License-Identifier: Apache-2.0
#ifndef TD_EDGE_SAFETY_GATE_H
#define TD_EDGE_SAFETY_GATE_H

// The gate: every command, the fail-safe's too, leaves through it and is held
// to the robot's own limits of position, step and acceleration.
//
// Inside them it is not there: a wanted row that keeps to the limits comes out
// bit for bit. Outside them the command goes as far toward the wanted one as it
// may, never faster than it can still brake, and catches up without overshoot.
// docs/gate.md has the formulas.
//
// The position limits are exact. The trajectory inside the gate keeps to step
// and acceleration within u and 2u, the float32 commands within 2u and 4u,
// where u is one rounding: FLT_EPSILON times the larger position (2 FLT_EPSILON
// for a quaternion).
//
// Pure, and for the control tick: one thread, never blocks, allocates nothing,
// takes the same few operations for each channel.

#include "base/err.h"
#include "tendon/wire.h"

typedef struct td_edge_gate_channel {
    td_wire_channel_kind kind;
    // Least and greatest position; -INFINITY and INFINITY: none. An angle with
    // neither turns freely: its commands go the shorter way round and are not
    // wrapped. A quaternion has none.
    double min, max;
    double max_step;       // change a tick, at least 1e-12; INFINITY: no limit
    double max_accel_step; // change of the step a tick, likewise; not for HOLD
} td_edge_gate_channel;
// The first of a quaternion's four speaks for all: steps are radians turned.

#define TD_EDGE_GATE_LIMITS(X)                                                 \
    X(POSITION, "position")                                                    \
    X(STEP, "step")                                                            \
    X(ACCEL, "acceleration") /* or still catching up after a limit */          \
    X(VALUE, "not_finite")   /* or a quaternion of no length */

typedef enum td_edge_gate_limit {
#define TD_EDGE_GATE_LIMIT_ENUM(name, text) TD_EDGE_GATE_##name,
    TD_EDGE_GATE_LIMITS(TD_EDGE_GATE_LIMIT_ENUM)
#undef TD_EDGE_GATE_LIMIT_ENUM
        TD_EDGE_GATE_LIMIT_COUNT
} td_edge_gate_limit;

const char *td_edge_gate_limit_name(td_edge_gate_limit limit);

// What was limited in one tick.
typedef struct td_edge_gate_hits {
    // Channels, by limit; one may hit several. A quaternion counts as one.
    uint32_t count[TD_EDGE_GATE_LIMIT_COUNT];
    uint8_t channel[TD_WIRE_MAX_CHANNELS]; // bits 1 << td_edge_gate_limit
    uint32_t consecutive; // ticks in a row with any hit, this one too; 0: none
} td_edge_gate_hits;

typedef struct td_edge_gate {
    uint32_t channels;
    td_edge_gate_channel limits[TD_WIRE_MAX_CHANNELS];
    double at[TD_WIRE_MAX_CHANNELS];     // commanded last
    double step[TD_WIRE_MAX_CHANNELS];   // last; a quaternion's turn in three
    double target[TD_WIRE_MAX_CHANNELS]; // wanted last
    bool started;
    uint32_t consecutive;
} td_edge_gate;

// Copies the limits. INVALID with the channel and the field.
TD_NODISCARD td_err td_edge_gate_init(td_edge_gate *gate,
                                      const td_edge_gate_channel *channels,
                                      uint32_t count, td_errinfo *info);

// Starts, or starts over, at rest from where the robot is, so that its first
// command cannot jump. When it starts over an angle counts on the turn of the
// last command, where it can be there. A robot found outside its position
// limits may stay there or move toward them. INVALID if the reading is no place
// to be (not finite, a quaternion of no length); the gate stays as it was.
TD_NODISCARD td_err td_edge_gate_start(td_edge_gate *gate,
                                       const float *reading);

// The next command on the way to `wanted`; they may be the same memory. A value
// that is not finite brakes its channel. CLOSED before the start.
TD_NODISCARD td_err td_edge_gate_pass(td_edge_gate *gate, const float *wanted,
                                      float *ret_command,
                                      td_edge_gate_hits *ret_hits);

// The last command of a channel, or where it started.
float td_edge_gate_last(const td_edge_gate *gate, uint32_t channel);

// How many channels move as one from `channel` on: 4 for a quaternion, else 1.
uint32_t td_edge_gate_width(const td_edge_gate *gate, uint32_t channel);

// What to want next to reach `goal` (as wide as the channel) by steps of at
// most `max_step`, slowing down so that it stops there.
void td_edge_gate_approach(const td_edge_gate *gate, uint32_t channel,
                           const float *goal, double max_step,
                           float *ret_wanted);

#endif
