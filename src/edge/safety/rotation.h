// SPDX-License-Identifier: Apache-2.0
#ifndef TD_EDGE_SAFETY_ROTATION_H
#define TD_EDGE_SAFETY_ROTATION_H

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
