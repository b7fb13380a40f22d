// SPDX-License-Identifier: Apache-2.0
#include "edge/safety/rotation.h"

#include <math.h>

// ret_product must not be an operand.
static void multiply(const double a[4], const double b[4],
                     double ret_product[4])
{
    ret_product[0] = a[3] * b[0] + a[0] * b[3] + a[1] * b[2] - a[2] * b[1];
    ret_product[1] = a[3] * b[1] + a[1] * b[3] + a[2] * b[0] - a[0] * b[2];
    ret_product[2] = a[3] * b[2] + a[2] * b[3] + a[0] * b[1] - a[1] * b[0];
    ret_product[3] = a[3] * b[3] - a[0] * b[0] - a[1] * b[1] - a[2] * b[2];
}

void td_edge_rotation_between(const double from[4], const double to[4],
                              double ret_turn[3])
{
    const double back[4] = {-from[0], -from[1], -from[2], from[3]};
    double turn[4];
    multiply(to, back, turn);
    double sine = hypot(hypot(turn[0], turn[1]), turn[2]);
    double angle = 2 * atan2(sine, fabs(turn[3]));
    double scale = sine > 0 ? copysign(angle / sine, turn[3]) : 0;
    for (int i = 0; i < 3; i++)
        ret_turn[i] = turn[i] * scale;
}

void td_edge_rotation_apply(const double turn[3], double orientation[4])
{
    double angle = hypot(hypot(turn[0], turn[1]), turn[2]);
    double scale = angle > 0 ? sin(angle / 2) / angle : 0;
    const double by[4] = {turn[0] * scale, turn[1] * scale, turn[2] * scale,
                          cos(angle / 2)};
    double turned[4];
    multiply(by, orientation, turned);
    double length =
        hypot(hypot(turned[0], turned[1]), hypot(turned[2], turned[3]));
    for (int i = 0; i < 4; i++)
        orientation[i] = turned[i] / length;
}
