// SPDX-License-Identifier: Apache-2.0
#include "edge/safety/motion.h"

#include <float.h>
#include <math.h>

double td_edge_motion_length(const double vector[3])
{
    return sqrt(vector[0] * vector[0] + vector[1] * vector[1] +
                vector[2] * vector[2]);
}

static void scale(double vector[3], double by)
{
    for (int i = 0; i < 3; i++)
        vector[i] *= by;
}

// A step s and those after it cover s + (s - a) + (s - 2a) + ... while they are
// positive: the greatest, over n = 0, 1, ..., of (n + 1) s - a n (n + 1) / 2.
// That is within d for every n when s is within the least of d / (n + 1) +
// a n / 2, which is at the last n with a n (n + 1) / 2 <= d. One tick later the
// same bound is s - a, or more: braking by a always keeps to it.
double td_edge_motion_brakeable(double distance, double accel)
{
    if (distance <= accel || isinf(distance)) return distance;
    double n = floor((sqrt(1 + 8 * (distance / accel)) - 1) / 2);
    return distance / (n + 1) + accel * n / 2;
}

// Aims at the target, or short of it while catching up. Seen from the target,
// which is taken to move on as it just moved, the lag is closed no faster than
// can be braked; but never slower than if the target stood still, nor past it.
static void seek(td_edge_motion *m, double accel)
{
    double lag[3];
    for (int i = 0; i < 3; i++) {
        lag[i] = m->ahead[i] - m->moved[i];
        m->next[i] = m->ahead[i];
    }
    double behind = td_edge_motion_length(lag);
    double distance = td_edge_motion_length(m->ahead);
    if (behind <= accel || distance <= accel) return;
    double share = td_edge_motion_brakeable(behind, accel) / behind;
    double along = 0;
    for (int i = 0; i < 3; i++)
        along += (m->moved[i] + lag[i] * share) * m->ahead[i] / distance;
    if (along >= distance) return;
    along = fmax(along, td_edge_motion_brakeable(distance, accel));
    scale(m->next, along / distance);
    m->hit_accel = true;
}

// What a step may gain when the two commands around it are rounded to float32.
// Without this, rows that keep to a limit exactly would hit it by noise.
static double rounding(const td_edge_motion *m)
{
    if (m->turn) return 2 * FLT_EPSILON;
    return FLT_EPSILON * fmax(fabs(m->at), fabs(m->at + m->next[0]));
}

static void limit_step(td_edge_motion *m, double max_step)
{
    double length = td_edge_motion_length(m->next);
    if (length <= max_step + rounding(m)) return;
    scale(m->next, max_step / length);
    m->hit_step = true;
}

static void limit_accel(td_edge_motion *m, double max_accel_step)
{
    double change[3];
    for (int i = 0; i < 3; i++)
        change[i] = m->next[i] - m->last[i];
    double length = td_edge_motion_length(change);
    if (length <= max_accel_step + 2 * rounding(m)) return;
    scale(change, max_accel_step / length);
    for (int i = 0; i < 3; i++)
        m->next[i] = m->last[i] + change[i];
    m->hit_accel = true;
}

// Acceleration comes last, and the step stays kept: it ends between the last
// step and one that was allowed.
void td_edge_motion_plan(td_edge_motion *motion, double max_step,
                         double max_accel_step)
{
    motion->hit_step = false;
    motion->hit_accel = false;
    seek(motion, max_accel_step);
    limit_step(motion, max_step);
    limit_accel(motion, max_accel_step);
}

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
