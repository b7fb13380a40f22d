// SPDX-License-Identifier: Apache-2.0
// Holds every command to the robot's limits; docs/gate.md has the formulas.
//
// For each channel the gate remembers where it led the robot (`at`), the last
// step that it took and the last target. A wanted value is first clamped to the
// position limits; then motion.c plans the step toward it within the limits of
// step and acceleration; then the step is cut so that the robot can still brake
// before the position limit. If no limit had to act, the target itself comes
// out, bit for bit.
//
// An angle without position limits turns freely, the shorter way round. A
// quaternion is four channels that are planned as one rotation vector
// (motion.c); its length is made 1 where it is not nearly so, and its sign is
// that of where the robot is. A value that is not finite, or a quaternion of no
// length, leaves the target where the robot stands, and counts as a hit.
//
// Until it has been started from a reading nothing passes. A robot that is
// found outside its limits may stay there or come back, and go no further.
// `approach` is for the fail-safe: the next wanted value on the way to a goal.
//
// All is computed in double and rounded to float once. Pure: one thread, no
// allocation.
#include "edge/safety/gate.h"

#include "edge/safety/motion.h"

#include <float.h>
#include <math.h>
#include <string.h>

#define TURN (2 * M_PI)
#define BIT(limit) ((uint8_t)(1U << TD_EDGE_GATE_##limit))

// Below this length the direction of a quaternion means nothing.
#define MIN_LENGTH 1e-3
// Within this of length 1 a quaternion stays as it is, bit for bit.
#define UNIT_TOLERANCE 1e-6
// Of a step or its change: the ticks that it takes to stop must be a number.
#define LEAST_LIMIT 1e-12

const char *td_edge_gate_limit_name(td_edge_gate_limit limit)
{
    static const char *const names[] = {
#define TD_EDGE_GATE_LIMIT_NAME(name, text) text,
        TD_EDGE_GATE_LIMITS(TD_EDGE_GATE_LIMIT_NAME)
#undef TD_EDGE_GATE_LIMIT_NAME
    };
    return names[limit];
}

static double clamp(double value, double low, double high)
{
    if (value < low) return low;
    return value > high ? high : value;
}

static uint8_t plan(td_edge_motion *motion, const td_edge_gate_channel *limits)
{
    td_edge_motion_plan(motion, limits->max_step, limits->max_accel_step);
    return (motion->hit_step ? BIT(STEP) : 0) |
           (motion->hit_accel ? BIT(ACCEL) : 0);
}

static bool turns_freely(const td_edge_gate_channel *limits)
{
    return limits->kind == TD_WIRE_ANGLE && isinf(limits->min) &&
           isinf(limits->max);
}

// The same angle, at most half a turn from `near`; itself if it already is.
static double unwrap(double angle, double near)
{
    double ahead = angle - near;
    return fabs(ahead) <= M_PI ? angle : near + remainder(ahead, TURN);
}

// Where a robot was found outside its limits, where it stands is the limit.
static uint8_t pass_scalar(td_edge_gate *gate, uint32_t i, const float *wanted)
{
    const td_edge_gate_channel *limits = &gate->limits[i];
    double at = gate->at[i];
    double low = fmin(limits->min, at), high = fmax(limits->max, at);
    bool valid = isfinite(*wanted);
    double target = valid ? *wanted : at;
    if (turns_freely(limits)) target = unwrap(target, at);
    double inside = clamp(target, low, high);

    td_edge_motion m = {
        .ahead = {inside - at},
        .moved = {inside - gate->target[i]},
        .last = {gate->step[i]},
        .at = at,
    };
    uint8_t hits = plan(&m, limits);
    double step = clamp(
        m.next[0], -td_edge_motion_brakeable(at - low, limits->max_accel_step),
        td_edge_motion_brakeable(high - at, limits->max_accel_step));
    if (step != m.next[0]) hits |= BIT(POSITION);
    gate->at[i] = hits ? clamp(at + step, low, high) : inside;
    gate->step[i] = gate->at[i] - at;
    gate->target[i] = inside;
    if (inside != target) hits |= BIT(POSITION);
    return valid ? hits : hits | BIT(VALUE);
}

// Of length 1 and on the side of `near`, so that signs do not flip. False for
// what is no orientation.
static bool read_quaternion(const float *from, const double *near, double *ret)
{
    double length = 0, dot = 0;
    for (int i = 0; i < 4; i++) {
        length += (double)from[i] * from[i];
        dot += from[i] * near[i];
    }
    length = sqrt(length);
    if (!isfinite(length) || length < MIN_LENGTH) return false;
    if (fabs(length - 1) <= UNIT_TOLERANCE) length = 1;
    for (int i = 0; i < 4; i++)
        ret[i] = from[i] / copysign(length, dot);
    return true;
}

static uint8_t pass_quaternion(td_edge_gate *gate, uint32_t i,
                               const float *wanted)
{
    double *at = &gate->at[i];
    double target[4];
    bool valid = read_quaternion(wanted, at, target);
    if (!valid) memcpy(target, at, sizeof target);

    td_edge_motion m = {.turn = true};
    td_edge_rotation_between(at, target, m.ahead);
    td_edge_rotation_between(&gate->target[i], target, m.moved);
    memcpy(m.last, &gate->step[i], sizeof m.last);
    uint8_t hits = plan(&m, &gate->limits[i]);
    if (hits)
        td_edge_rotation_apply(m.next, at);
    else
        memcpy(at, target, sizeof target);
    memcpy(&gate->step[i], m.next, sizeof m.next);
    memcpy(&gate->target[i], target, sizeof target);
    return valid ? hits : hits | BIT(VALUE);
}

float td_edge_gate_last(const td_edge_gate *gate, uint32_t channel)
{
    return (float)gate->at[channel];
}

uint32_t td_edge_gate_width(const td_edge_gate *gate, uint32_t channel)
{
    return gate->limits[channel].kind == TD_WIRE_QUATERNION ? 4 : 1;
}

static td_err check_limit(uint32_t channel, const char *field, double value,
                          td_errinfo *info)
{
    if (value >= LEAST_LIMIT) return TD_OK;
    return td_fail(info, TD_ERR_INVALID,
                   "channel %u: %s: must be at least %g, got %g", channel,
                   field, LEAST_LIMIT, value);
}

static td_err check_range(uint32_t channel, const td_edge_gate_channel *limits,
                          td_errinfo *info)
{
    if (limits->kind == TD_WIRE_QUATERNION &&
        !(isinf(limits->min) && isinf(limits->max)))
        return td_fail(info, TD_ERR_INVALID,
                       "channel %u: min, max: not for a quaternion", channel);
    if (limits->min <= limits->max && limits->min < INFINITY &&
        limits->max > -INFINITY)
        return TD_OK;
    return td_fail(info, TD_ERR_INVALID,
                   "channel %u: min, max: no position from %g to %g", channel,
                   limits->min, limits->max);
}

static td_err check_quaternion(const td_edge_gate_channel *channels,
                               uint32_t first, uint32_t count, td_errinfo *info)
{
    for (uint32_t i = first; i < first + 4; i++)
        if (i >= count || channels[i].kind != TD_WIRE_QUATERNION)
            return td_fail(info, TD_ERR_INVALID,
                           "channel %u: kind: a quaternion is four channels in "
                           "a row",
                           first);
    return TD_OK;
}

// Position limits are rounded inward, so that no float32 between them is out,
// and what does not turn for ever ends where float32 does.
static td_edge_gate_channel inward(const td_edge_gate_channel *channel)
{
    td_edge_gate_channel limits = *channel;
    if (limits.kind != TD_WIRE_QUATERNION && !turns_freely(channel)) {
        limits.min = clamp(limits.min, -FLT_MAX, INFINITY);
        limits.max = clamp(limits.max, -INFINITY, FLT_MAX);
    }
    float min = (float)limits.min, max = (float)limits.max;
    limits.min = min < limits.min ? nextafterf(min, INFINITY) : min;
    limits.max = max > limits.max ? nextafterf(max, -INFINITY) : max;
    if (limits.kind == TD_WIRE_HOLD) limits.max_accel_step = INFINITY;
    return limits;
}

td_err td_edge_gate_init(td_edge_gate *gate,
                         const td_edge_gate_channel *channels, uint32_t count,
                         td_errinfo *info)
{
    if (count == 0 || count > TD_WIRE_MAX_CHANNELS)
        return td_fail(info, TD_ERR_INVALID,
                       "channels: must be 1 to %d, got %u",
                       TD_WIRE_MAX_CHANNELS, count);
    td_edge_gate made = {.channels = count};
    for (uint32_t i = 0; i < count; i++) {
        made.limits[i] = inward(&channels[i]);
        TD_TRY(check_range(i, &made.limits[i], info));
        TD_TRY(check_limit(i, "max_step", channels[i].max_step, info));
        TD_TRY(check_limit(i, "max_accel_step", made.limits[i].max_accel_step,
                           info));
    }
    for (uint32_t i = 0; i < count; i += td_edge_gate_width(&made, i))
        if (channels[i].kind == TD_WIRE_QUATERNION)
            TD_TRY(check_quaternion(channels, i, count, info));
    *gate = made;
    return TD_OK;
}

// A driver may wrap what it reads. Which turn an angle is on, the last command
// tells, if the joint has moved less than a quarter of one since: otherwise it
// would have had to move three quarters unseen.
static double on_turn(const td_edge_gate_channel *limits, double reading,
                      double last)
{
    if (limits->kind != TD_WIRE_ANGLE) return reading;
    double same = unwrap(reading, last);
    bool likely = same >= limits->min && same <= limits->max &&
                  fabs(same - last) <= TURN / 4;
    return likely || turns_freely(limits) ? same : reading;
}

// Where a channel stands, as its commands count it.
static bool read_place(const td_edge_gate *gate, uint32_t i,
                       const float *reading, double *ret_at)
{
    static const double anywhere[4];
    if (td_edge_gate_width(gate, i) > 1)
        return read_quaternion(reading, anywhere, ret_at);
    *ret_at = gate->started ? on_turn(&gate->limits[i], *reading, gate->at[i])
                            : *reading;
    return isfinite(*reading);
}

td_err td_edge_gate_start(td_edge_gate *gate, const float *reading)
{
    double at[TD_WIRE_MAX_CHANNELS];
    for (uint32_t i = 0; i < gate->channels; i += td_edge_gate_width(gate, i))
        if (!read_place(gate, i, &reading[i], &at[i])) return TD_ERR_INVALID;
    memcpy(gate->at, at, gate->channels * sizeof *at);
    memcpy(gate->target, at, gate->channels * sizeof *at);
    memset(gate->step, 0, sizeof gate->step);
    gate->consecutive = 0;
    gate->started = true;
    return TD_OK;
}

static void count_hits(uint8_t bits, td_edge_gate_hits *hits)
{
    for (uint32_t limit = 0; limit < TD_EDGE_GATE_LIMIT_COUNT; limit++)
        hits->count[limit] += bits >> limit & 1;
}

td_err td_edge_gate_pass(td_edge_gate *gate, const float *wanted,
                         float *ret_command, td_edge_gate_hits *ret_hits)
{
    if (!gate->started) return TD_ERR_CLOSED;
    td_edge_gate_hits hits = {0};
    bool any = false;
    for (uint32_t i = 0, width; i < gate->channels; i += width) {
        width = td_edge_gate_width(gate, i);
        uint8_t bits = width == 1 ? pass_scalar(gate, i, &wanted[i])
                                  : pass_quaternion(gate, i, &wanted[i]);
        memset(&hits.channel[i], bits, width);
        count_hits(bits, &hits);
        any = any || bits;
        for (uint32_t j = i; j < i + width; j++)
            ret_command[j] = td_edge_gate_last(gate, j);
    }
    gate->consecutive = any ? gate->consecutive + 1 : 0;
    hits.consecutive = gate->consecutive;
    *ret_hits = hits;
    return TD_OK;
}

static void approach_scalar(const td_edge_gate *gate, uint32_t i, float goal,
                            double max_step, float *ret_wanted)
{
    const td_edge_gate_channel *limits = &gate->limits[i];
    double at = gate->at[i];
    double ahead = (turns_freely(limits) ? unwrap(goal, at) : goal) - at;
    double most =
        fmin(max_step,
             td_edge_motion_brakeable(fabs(ahead), limits->max_accel_step));
    if (fabs(ahead) <= most) {
        *ret_wanted = goal;
        return;
    }
    float wanted = (float)(at + copysign(most, ahead));
    // A step too small for float32 must not end the motion.
    if (wanted == (float)at)
        wanted = nextafterf(wanted, (float)copysign(INFINITY, ahead));
    *ret_wanted = wanted;
}

static void approach_quaternion(const td_edge_gate *gate, uint32_t i,
                                const float *goal, double max_step,
                                float *ret_wanted)
{
    double wanted[4], to[4], turn[3];
    memcpy(wanted, &gate->at[i], sizeof wanted);
    for (int j = 0; j < 4; j++)
        to[j] = goal[j];
    td_edge_rotation_between(wanted, to, turn);
    double angle = td_edge_motion_length(turn);
    double most =
        fmin(max_step,
             td_edge_motion_brakeable(angle, gate->limits[i].max_accel_step));
    if (angle <= most) {
        memcpy(ret_wanted, goal, 4 * sizeof *goal);
        return;
    }
    for (int j = 0; j < 3; j++)
        turn[j] *= most / angle;
    td_edge_rotation_apply(turn, wanted);
    for (int j = 0; j < 4; j++)
        ret_wanted[j] = (float)wanted[j];
}

void td_edge_gate_approach(const td_edge_gate *gate, uint32_t channel,
                           const float *goal, double max_step,
                           float *ret_wanted)
{
    if (td_edge_gate_width(gate, channel) == 1)
        approach_scalar(gate, channel, *goal, max_step, ret_wanted);
    else
        approach_quaternion(gate, channel, goal, max_step, ret_wanted);
}
