// SPDX-License-Identifier: Apache-2.0
#ifndef TD_EDGE_SAFETY_MOTION_H
#define TD_EDGE_SAFETY_MOTION_H

// One tick of a motion toward a target that may itself move, with a limited
// step and a limited change of the step. Pure; any thread.

#include <stdbool.h>

// Of a channel, along the first axis alone, or of a turn about all three.
typedef struct td_edge_motion {
    bool turn;
    double at;       // a channel's position
    double ahead[3]; // from here to the target
    double moved[3]; // by the target since the last tick
    double last[3];  // step
    double next[3];  // step, planned
    bool hit_step;   // a limit kept it from the target
    bool hit_accel;  // likewise, or it is still catching up
} td_edge_motion;

// Plans the next step: all of `ahead`, bit for bit, unless something is hit.
// Both limits are above 0; INFINITY: none.
void td_edge_motion_plan(td_edge_motion *motion, double max_step,
                         double max_accel_step);

// The greatest step toward a point `distance` away, 0 or more, from which steps
// that each shrink by `accel` stop in time.
double td_edge_motion_brakeable(double distance, double accel);

double td_edge_motion_length(const double vector[3]);

// Quaternions (x, y, z, w) and the turns between them. A turn is a rotation
// vector in the world's axes: its direction the axis, its length the angle in
// radians. Pure; any thread.

// The turn that leads from one orientation to another, the shorter way round.
// Neither needs to be of length 1, only above 0.
void td_edge_rotation_between(const double from[4], const double to[4],
                              double ret_turn[3]);

// `orientation` after the turn, of length 1. In place.
void td_edge_rotation_apply(const double turn[3], double orientation[4]);

#endif
