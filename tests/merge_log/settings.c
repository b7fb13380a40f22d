// SPDX-License-Identifier: Apache-2.0
// A robot for each seed: its channels, its settings, its limits.
#include "lab.h"

#include <math.h>

#define ANGLE_LIMIT 1000 // with one the gate leaves an angle as it is

static void add_channel(td_edge_core_settings *settings,
                        td_wire_channel_kind kind)
{
    uint32_t width = kind == TD_WIRE_QUATERNION ? 4 : 1;
    for (uint32_t i = 0; i < width; i++) {
        td_edge_gate_channel *limits = &settings->limits[settings->channels];
        *limits = (td_edge_gate_channel){kind, -INFINITY, INFINITY, INFINITY,
                                         INFINITY};
        if (kind == TD_WIRE_ANGLE) {
            limits->min = -ANGLE_LIMIT;
            limits->max = ANGLE_LIMIT;
        }
        settings->kinds[settings->channels++] = kind;
    }
}

// The first is a hold channel, by which a chunk is known again.
static void choose_channels(td_rand *rand, td_edge_core_settings *settings)
{
    static const td_wire_channel_kind kinds[] = {
        TD_WIRE_LINEAR, TD_WIRE_ANGLE, TD_WIRE_QUATERNION, TD_WIRE_HOLD};
    settings->channels = 0;
    add_channel(settings, TD_WIRE_HOLD);
    uint32_t count = 1 + lab_below(rand, 5);
    for (uint32_t i = 0; i < count; i++)
        add_channel(settings, kinds[lab_below(rand, TD_COUNT_OF(kinds))]);
}

static void choose_asking(td_rand *rand, td_edge_ask_settings *ask)
{
    static const double thresholds[] = {0, 0.3, 0.5, 0.7, 1};
    ask->mode = lab_below(rand, 3);
    ask->threshold = thresholds[lab_below(rand, TD_COUNT_OF(thresholds))];
    ask->buffer_time_ns = (int64_t)lab_between(rand, 1e8, 1e9);
    ask->max_unanswered = 1 + lab_below(rand, 4);
    ask->resend_min_ns = (int64_t)lab_between(rand, 1e8, 1e9);
    ask->resend_max_ns = ask->resend_min_ns + TD_NS_PER_S;
}

// Asks at every step, whatever is still on its way.
static void be_eager(td_edge_core_settings *settings)
{
    settings->period_ns = TD_NS_PER_S / 50;
    settings->ask.mode = TD_EDGE_ASK_THRESHOLD;
    settings->ask.threshold = 1;
    settings->ask.max_unanswered = TD_EDGE_ASK_MAX_UNANSWERED;
}

static void choose_playing(td_rand *rand, td_edge_core_settings *settings)
{
    static const int fps[] = {10, 15, 20, 25, 30, 50};
    settings->period_ns = TD_NS_PER_S / fps[lab_below(rand, TD_COUNT_OF(fps))];
    settings->substeps = lab_one_in(rand, 2) ? 1 : 2 + lab_below(rand, 3);
    settings->aggregate = lab_below(rand, TD_EDGE_CUSTOM);
    settings->trim =
        lab_one_in(rand, 3) ? TD_EDGE_TRIM_TIME : TD_EDGE_TRIM_STEPS;
    settings->actions_per_chunk = 1 + lab_below(rand, LAB_MAX_ROWS);
    settings->max_action_age_ns =
        (int64_t)(lab_one_in(rand, 4) ? lab_between(rand, 3e8, 6e8) : 3e9);
}

static double maybe(td_rand *rand, double limit)
{
    return lab_one_in(rand, 4) ? INFINITY : limit;
}

// A robot stands at 0 at first, which may be outside.
static void choose_limits(td_rand *rand, td_edge_gate_channel *limits)
{
    double middle = lab_between(rand, -2, 2);
    if (limits->kind != TD_WIRE_QUATERNION) {
        limits->min = middle - maybe(rand, lab_between(rand, 0, 3));
        limits->max = middle + maybe(rand, lab_between(rand, 0, 3));
    }
    double step = lab_between(rand, 0.01, 0.5);
    limits->max_step = maybe(rand, step);
    if (limits->kind != TD_WIRE_HOLD)
        limits->max_accel_step =
            maybe(rand, step * lab_between(rand, 0.02, 1.5));
}

static void choose_failsafe(td_rand *rand, const td_edge_gate_channel *limits,
                            td_edge_failsafe_channel *failsafe)
{
    bool repeats = lab_one_in(rand, 3);
    failsafe->mode = repeats ? TD_EDGE_FAILSAFE_REPEAT : TD_EDGE_FAILSAFE_HOLD;
    if (limits->kind != TD_WIRE_LINEAR || limits->min > 0 || limits->max < 0)
        return;
    if (lab_one_in(rand, 4)) failsafe->mode = TD_EDGE_FAILSAFE_ZERO_VELOCITY;
    if (lab_one_in(rand, 4)) {
        failsafe->mode = TD_EDGE_FAILSAFE_SAFE_POSE;
        failsafe->safe_step = lab_between(rand, 0.001, 0.1);
    }
}

static void limit_channels(td_rand *rand, td_edge_core_settings *settings)
{
    settings->max_limit_hits = 5 + lab_below(rand, 100);
    for (uint32_t i = 1; i < settings->channels; i++) {
        choose_limits(rand, &settings->limits[i]);
        choose_failsafe(rand, &settings->limits[i], &settings->failsafe[i]);
        if (settings->kinds[i] != TD_WIRE_QUATERNION) continue;
        for (uint32_t j = 1; j < 4; j++) {
            settings->limits[i + j] = settings->limits[i];
            settings->failsafe[i + j] = settings->failsafe[i];
        }
        i += 3;
    }
}

// Chunks of 50 at 30 Hz, 1.67 s, which the robot asks for when it has none.
static void be_sequential(td_edge_core_settings *settings)
{
    settings->period_ns = TD_NS_PER_S / 30;
    settings->actions_per_chunk = 50;
    settings->trim = TD_EDGE_TRIM_STEPS;
    settings->max_action_age_ns = 10 * TD_NS_PER_S;
    settings->ask.mode = TD_EDGE_ASK_THRESHOLD;
    settings->ask.threshold = 0;
    settings->ask.max_unanswered = 1;
    settings->ask.resend_min_ns = 10 * TD_NS_PER_S;
    settings->ask.resend_max_ns = 10 * TD_NS_PER_S;
}

void lab_settings(const lab_options *options, td_rand *rand,
                  td_edge_core_settings *ret_settings)
{
    td_edge_core_settings_plain(LAB_MAX_CHANNELS, TD_NS_PER_S, ret_settings);
    choose_channels(rand, ret_settings);
    choose_playing(rand, ret_settings);
    choose_asking(rand, &ret_settings->ask);
    ret_settings->boot = 1 + lab_below(rand, 1000);
    ret_settings->route = 1 + lab_below(rand, 1000);
    ret_settings->episode = 1 + lab_below(rand, 1000);
    if (lab_one_in(rand, 8)) be_eager(ret_settings);
    if (options->sequential) be_sequential(ret_settings);
    if (options->limits) limit_channels(rand, ret_settings);
}
