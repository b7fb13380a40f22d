// SPDX-License-Identifier: Apache-2.0
#include "edge/core/blend.h"

#include "base/finite.h"

#include <assert.h>
#include <math.h>
#include <string.h>

// Below this sine the arc is so short that it is as good as straight.
#define STRAIGHT_SINE 1e-6

double td_edge_blend_share(td_edge_aggregate aggregate, uint32_t index,
                           uint32_t overlap)
{
    static const double shares[] = {
        [TD_EDGE_WEIGHTED_AVERAGE] = 0.7, [TD_EDGE_LATEST_ONLY] = 1.0,
        [TD_EDGE_AVERAGE] = 0.5,          [TD_EDGE_CONSERVATIVE] = 0.3,
        [TD_EDGE_CUSTOM] = 1.0,
    };
    // The row before the overlap was all old and the row after it is all new;
    // those between share the way evenly.
    if (aggregate == TD_EDGE_TEMPORAL)
        return ((double)index + 1.0) / ((double)overlap + 1.0);
    return shares[aggregate];
}

static float mix_linear(float from, float to, double share)
{
    return (float)((1.0 - share) * (double)from + share * (double)to);
}

// The shorter way round. An angle and a quaternion have more than one name for
// the same place; the result goes by the name of `to`, so that blended rows
// join the rest of their chunk without a turn.
static float mix_angle(float from, float to, double share)
{
    double turn = remainder((double)to - (double)from, 2.0 * M_PI);
    return (float)((double)to - (1.0 - share) * turn);
}

static double dot(const double a[4], const double b[4])
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + a[3] * b[3];
}

// Brings it to length 1; false if it has no length.
static bool normalise(double quaternion[4])
{
    double length = sqrt(dot(quaternion, quaternion));
    if (length == 0) return false;
    for (int i = 0; i < 4; i++)
        quaternion[i] /= length;
    return true;
}

static bool direction(const float *values, double ret_unit[4])
{
    for (int i = 0; i < 4; i++)
        ret_unit[i] = (double)values[i];
    return normalise(ret_unit);
}

static void store(const double quaternion[4], float *ret)
{
    for (int i = 0; i < 4; i++)
        ret[i] = (float)quaternion[i];
}

// Along the shorter arc at constant speed. One without a length says nothing,
// and the other is taken.
static void mix_quaternion(const float *from, const float *to, double share,
                           float *ret)
{
    double a[4], b[4], mixed[4];
    bool from_says = direction(from, a);
    if (!direction(to, b)) memcpy(b, a, sizeof b);
    if (!from_says) memcpy(a, b, sizeof a);

    double cosine = dot(a, b);
    double sign = cosine < 0 ? -1.0 : 1.0;
    double angle = acos(fmin(fabs(cosine), 1.0));
    double sine = sin(angle);
    double of_a = 1.0 - share, of_b = share;
    if (sine >= STRAIGHT_SINE) {
        of_a = sin((1.0 - share) * angle) / sine;
        of_b = sin(share * angle) / sine;
    }
    for (int i = 0; i < 4; i++)
        mixed[i] = sign * of_a * a[i] + of_b * b[i];
    (void)normalise(mixed);
    store(mixed, ret);
}

static void mix_row(const td_wire_channel_kind *kinds, uint32_t channels,
                    const float *from, const float *to, double share,
                    float *ret_row)
{
    for (uint32_t i = 0; i < channels; i++) {
        switch (kinds[i]) {
        case TD_WIRE_LINEAR:
            ret_row[i] = mix_linear(from[i], to[i], share);
            break;
        case TD_WIRE_ANGLE:
            ret_row[i] = mix_angle(from[i], to[i], share);
            break;
        case TD_WIRE_HOLD:
            ret_row[i] = to[i];
            break;
        case TD_WIRE_QUATERNION:
            mix_quaternion(&from[i], &to[i], share, &ret_row[i]);
            i += 3;
            break;
        }
    }
}

// False if one of them has no length; it is left as it is.
static bool normalise_row(const td_edge_blend *blend, float *row)
{
    bool whole = true;
    for (uint32_t i = 0; i < blend->channels; i++) {
        if (blend->kinds[i] != TD_WIRE_QUATERNION) continue;
        double unit[4];
        if (direction(&row[i], unit))
            store(unit, &row[i]);
        else
            whole = false;
        i += 3;
    }
    return whole;
}

void td_edge_blend_alone(const td_edge_blend *blend, const float *new_row,
                         float *ret_row)
{
    memcpy(ret_row, new_row, blend->channels * sizeof(float));
    (void)normalise_row(blend, ret_row);
}

bool td_edge_blend_accept(const td_edge_blend *blend, const float *new_row,
                          float *row)
{
    if (td_finite_f32(row, blend->channels) && normalise_row(blend, row))
        return true;
    td_edge_blend_alone(blend, new_row, row);
    return false;
}

// What the function does not write is not a number, and refused with the rest.
static bool ask_user(const td_edge_blend *blend, uint64_t step,
                     const float *old_row, const float *new_row, float *ret_row)
{
    for (uint32_t i = 0; i < blend->channels; i++)
        ret_row[i] = NAN;
    blend->fn(blend->user, step, old_row, new_row, blend->channels, ret_row);
    return td_edge_blend_accept(blend, new_row, ret_row);
}

bool td_edge_blend_row(const td_edge_blend *blend, const td_edge_place *place,
                       const float *old_row, const float *new_row,
                       float *ret_row)
{
    if (blend->aggregate == TD_EDGE_CUSTOM)
        return ask_user(blend, place->step, old_row, new_row, ret_row);
    double share =
        td_edge_blend_share(blend->aggregate, place->index, place->overlap);
    if (share == 1.0)
        td_edge_blend_alone(blend, new_row, ret_row);
    else
        mix_row(blend->kinds, blend->channels, old_row, new_row, share,
                ret_row);
    return true;
}

void td_edge_blend_between(const td_wire_channel_kind *kinds, uint32_t channels,
                           const float *from, const float *to, uint32_t i,
                           uint32_t n, float *ret_row)
{
    assert(i >= 1 && i <= n);
    if (i == n)
        memcpy(ret_row, to, channels * sizeof(float));
    else
        mix_row(kinds, channels, from, to, (double)i / (double)n, ret_row);
}
