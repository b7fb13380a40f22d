// SPDX-License-Identifier: Apache-2.0
#include "robot/synthetic/joint.h"

#include <math.h>

// Far from its command a joint moves at its limit; from speed_limit x
// time_constant_s on, what is left decays exponentially.
double td_robot_synthetic_joint_follow(const td_robot_synthetic_drive *drive,
                                       double from, double command,
                                       double elapsed_s)
{
    double left = command - from;
    double near = drive->speed_limit * drive->time_constant_s;
    double cruise_s = fmax(0, fabs(left) - near) / drive->speed_limit;
    if (elapsed_s <= cruise_s)
        return from + copysign(drive->speed_limit * elapsed_s, left);
    double at_end = copysign(fmin(fabs(left), near), left);
    return command -
           at_end * exp(-(elapsed_s - cruise_s) / drive->time_constant_s);
}

double td_robot_synthetic_joint_wrap(double angle)
{
    double wrapped = remainder(angle, 2 * M_PI);
    return wrapped <= -M_PI ? wrapped + 2 * M_PI : wrapped;
}
