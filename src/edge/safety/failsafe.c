// SPDX-License-Identifier: Apache-2.0
#include "edge/safety/failsafe.h"

#include <math.h>
#include <string.h>

const char *td_edge_failsafe_mode_name(td_edge_failsafe_mode mode)
{
    static const char *const names[] = {
#define TD_EDGE_FAILSAFE_MODE_NAME(name, text) text,
        TD_EDGE_FAILSAFE_MODES(TD_EDGE_FAILSAFE_MODE_NAME)
#undef TD_EDGE_FAILSAFE_MODE_NAME
    };
    return names[mode];
}

const char *td_edge_failsafe_reason_name(td_edge_failsafe_reason reason)
{
    static const char *const names[] = {
#define TD_EDGE_FAILSAFE_REASON_NAME(name, text) text,
        TD_EDGE_FAILSAFE_REASONS(TD_EDGE_FAILSAFE_REASON_NAME)
#undef TD_EDGE_FAILSAFE_REASON_NAME
    };
    return names[reason];
}

static td_err check_reachable(const td_edge_gate *gate, uint32_t i,
                              const char *field, double value, td_errinfo *info)
{
    const td_edge_gate_channel *limits = &gate->limits[i];
    if (isfinite(value) && value >= limits->min && value <= limits->max)
        return TD_OK;
    return td_fail(info, TD_ERR_INVALID,
                   "channel %u: %s: must be %g to %g, got %g", i, field,
                   limits->min, limits->max, value);
}

static td_err check_zero_velocity(const td_edge_gate *gate, uint32_t i,
                                  td_errinfo *info)
{
    td_wire_channel_kind kind = gate->limits[i].kind;
    if (kind == TD_WIRE_ANGLE || kind == TD_WIRE_QUATERNION)
        return td_fail(info, TD_ERR_INVALID,
                       "channel %u: mode: zero_velocity is for commands that "
                       "are speeds, not for a rotation",
                       i);
    return check_reachable(gate, i, "zero_velocity", 0, info);
}

static td_err check_safe_pose(const td_edge_failsafe_channel *channels,
                              const td_edge_gate *gate, uint32_t i,
                              td_errinfo *info)
{
    if (!(channels[i].safe_step > 0))
        return td_fail(info, TD_ERR_INVALID,
                       "channel %u: safe_step: must be above 0, got %g", i,
                       channels[i].safe_step);
    uint32_t width = td_edge_gate_width(gate, i);
    double length = 0;
    for (uint32_t j = i; j < i + width; j++) {
        TD_TRY(check_reachable(gate, j, "safe", channels[j].safe, info));
        length += (double)channels[j].safe * channels[j].safe;
    }
    if (width == 1 || fabs(length - 1) < 1e-3) return TD_OK;
    return td_fail(info, TD_ERR_INVALID,
                   "channel %u: safe: a quaternion must be of length 1, got %g",
                   i, sqrt(length));
}

td_err td_edge_failsafe_init(td_edge_failsafe *failsafe,
                             const td_edge_failsafe_channel *channels,
                             const td_edge_gate *gate, td_errinfo *info)
{
    for (uint32_t i = 0; i < gate->channels; i += td_edge_gate_width(gate, i)) {
        if (channels[i].mode == TD_EDGE_FAILSAFE_ZERO_VELOCITY)
            TD_TRY(check_zero_velocity(gate, i, info));
        if (channels[i].mode == TD_EDGE_FAILSAFE_SAFE_POSE)
            TD_TRY(check_safe_pose(channels, gate, i, info));
    }
    memcpy(failsafe->channels, channels, gate->channels * sizeof *channels);
    return TD_OK;
}

static void hold(const td_edge_gate *gate, uint32_t i, float *ret_wanted)
{
    for (uint32_t j = 0; j < td_edge_gate_width(gate, i); j++)
        ret_wanted[j] = td_edge_gate_last(gate, i + j);
}

static void go_to_safe_pose(const td_edge_failsafe *failsafe,
                            const td_edge_gate *gate, uint32_t i,
                            float *ret_wanted)
{
    float goal[4];
    for (uint32_t j = 0; j < td_edge_gate_width(gate, i); j++)
        goal[j] = failsafe->channels[i + j].safe;
    td_edge_gate_approach(gate, i, goal, failsafe->channels[i].safe_step,
                          ret_wanted);
}

void td_edge_failsafe_row(const td_edge_failsafe *failsafe,
                          const td_edge_gate *gate, const float *row,
                          float *ret_wanted)
{
    for (uint32_t i = 0, width; i < gate->channels; i += width) {
        width = td_edge_gate_width(gate, i);
        td_edge_failsafe_mode mode = failsafe->channels[i].mode;
        if (mode == TD_EDGE_FAILSAFE_ZERO_VELOCITY)
            ret_wanted[i] = 0;
        else if (mode == TD_EDGE_FAILSAFE_SAFE_POSE)
            go_to_safe_pose(failsafe, gate, i, &ret_wanted[i]);
        else if (mode == TD_EDGE_FAILSAFE_REPEAT && row)
            memcpy(&ret_wanted[i], &row[i], width * sizeof *row);
        else
            hold(gate, i, &ret_wanted[i]);
    }
}
