// SPDX-License-Identifier: Apache-2.0
#ifndef TD_ROBOT_SYNTHETIC_JOINT_H
#define TD_ROBOT_SYNTHETIC_JOINT_H

// How a synthetic joint moves; pure.

// How a joint follows: its speed is (command - position) / time_constant_s, cut
// to speed_limit.
typedef struct td_robot_synthetic_drive {
    double speed_limit;
    double time_constant_s;
} td_robot_synthetic_drive;

// Where a joint that stood at `from` is after `elapsed_s` under one command.
// Exact: two halves of a time give what the whole gives, but for rounding.
double td_robot_synthetic_joint_follow(const td_robot_synthetic_drive *drive,
                                       double from, double command,
                                       double elapsed_s);

// The same angle in (-pi, pi].
double td_robot_synthetic_joint_wrap(double angle);

#endif
