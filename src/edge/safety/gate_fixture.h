// SPDX-License-Identifier: Apache-2.0
#ifndef TD_EDGE_SAFETY_GATE_FIXTURE_H
#define TD_EDGE_SAFETY_GATE_FIXTURE_H

// Gates for tests, and an eye on what leaves them: the limits that a command
// must keep, looked at from outside with the float32 values alone.

#include "edge/safety/gate.h"
#include "edge/safety/motion.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define ROTATION                                                               \
    {                                                                          \
        .kind = TD_WIRE_QUATERNION,                                            \
        .min = -INFINITY,                                                      \
        .max = INFINITY,                                                       \
        .max_step = INFINITY,                                                  \
        .max_accel_step = INFINITY,                                            \
    }

static inline td_edge_gate gate_new(const td_edge_gate_channel *channels,
                                    uint32_t count, const float *reading)
{
    td_edge_gate gate;
    td_errinfo info = {.text = ""};
    if (td_edge_gate_init(&gate, channels, count, &info) != TD_OK)
        fail_msg("%s", info.text);
    assert_int_equal(td_edge_gate_start(&gate, reading), TD_OK);
    return gate;
}

// A linear channel that starts at rest at 0.
static inline td_edge_gate gate_of(double min, double max, double max_step,
                                   double max_accel_step)
{
    const td_edge_gate_channel channel = {TD_WIRE_LINEAR, min, max, max_step,
                                          max_accel_step};
    return gate_new(&channel, 1, (float[]){0});
}

static inline td_edge_gate_hits
gate_pass(td_edge_gate *gate, const float *wanted, float *ret_command)
{
    td_edge_gate_hits hits;
    assert_int_equal(td_edge_gate_pass(gate, wanted, ret_command, &hits),
                     TD_OK);
    return hits;
}

static inline float gate_pass_one(td_edge_gate *gate, float wanted)
{
    float command;
    gate_pass(gate, &wanted, &command);
    return command;
}

// The last commands of a channel or of a quaternion, newest first.
typedef struct gate_watch {
    td_edge_gate_channel limits;
    float commands[3][4];
} gate_watch;

static inline gate_watch gate_watch_from(const td_edge_gate *gate, uint32_t i)
{
    gate_watch watch = {.limits = gate->limits[i]};
    for (int age = 0; age < 3; age++)
        for (uint32_t j = 0; j < td_edge_gate_width(gate, i); j++)
            watch.commands[age][j] = td_edge_gate_last(gate, i + j);
    return watch;
}

static inline void gate_step(const gate_watch *watch, int age, double *ret_step)
{
    double to[4], from[4];
    for (int j = 0; j < 4; j++) {
        to[j] = watch->commands[age][j];
        from[j] = watch->commands[age + 1][j];
    }
    if (watch->limits.kind == TD_WIRE_QUATERNION)
        td_edge_rotation_between(from, to, ret_step);
    else
        ret_step[0] = to[0] - from[0];
}

static inline double gate_rounding(const gate_watch *watch)
{
    if (watch->limits.kind == TD_WIRE_QUATERNION) return 2 * FLT_EPSILON;
    double most = 0;
    for (int age = 0; age < 3; age++)
        most = fmax(most, fabs((double)watch->commands[age][0]));
    return FLT_EPSILON * most;
}

static inline void gate_watch_position(const gate_watch *watch)
{
    double now = watch->commands[0][0], before = watch->commands[1][0];
    double low = fmin(watch->limits.min, before);
    double high = fmax(watch->limits.max, before);
    if (!(isfinite(now) && now >= low && now <= high))
        fail_msg("%.9g is not within %.9g to %.9g", now, low, high);
}

static inline void gate_watch_motion(const gate_watch *watch)
{
    double next[3] = {0}, last[3] = {0}, change[3];
    gate_step(watch, 0, next);
    gate_step(watch, 1, last);
    for (int i = 0; i < 3; i++)
        change[i] = next[i] - last[i];
    double u = gate_rounding(watch);
    double step = td_edge_motion_length(next);
    double accel = td_edge_motion_length(change);
    if (step > watch->limits.max_step + 2 * u)
        fail_msg("step %.9g, limit %.9g", step, watch->limits.max_step);
    if (accel > watch->limits.max_accel_step + 4 * u)
        fail_msg("acceleration %.9g, limit %.9g", accel,
                 watch->limits.max_accel_step);
}

// Fails the test if this command breaks a limit.
static inline void gate_watch_command(gate_watch *watch, const float *command)
{
    bool turn = watch->limits.kind == TD_WIRE_QUATERNION;
    memmove(watch->commands[1], watch->commands[0],
            2 * sizeof watch->commands[0]);
    for (int j = 0; j < (turn ? 4 : 1); j++)
        watch->commands[0][j] = command[j];
    if (!turn) gate_watch_position(watch);
    gate_watch_motion(watch);
}

#endif
