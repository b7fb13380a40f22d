// SPDX-License-Identifier: Apache-2.0
#include "engine/native/flow/guide.h"

#include <math.h>
#include <string.h>

#define MOST_HORIZON 4096

static const char *const schedules[] = {
    [TD_NATIVE_GUIDE_ZEROS] = "ZEROS",
    [TD_NATIVE_GUIDE_ONES] = "ONES",
    [TD_NATIVE_GUIDE_LINEAR] = "LINEAR",
    [TD_NATIVE_GUIDE_EXP] = "EXP",
};

static td_err read_schedule(const td_json_at *at, td_native_guide *guide,
                            td_errinfo *info)
{
    static const char member[] = "prefix_attention_schedule";
    const char *name = NULL;
    TD_TRY(td_json_read_text(at, member, &name, info));
    for (size_t i = 0; i < TD_COUNT_OF(schedules); i++)
        if (strcmp(schedules[i], name) == 0) {
            guide->schedule = (td_native_guide_schedule)i;
            return TD_OK;
        }
    return td_json_read_fail(at, member, info, TD_ERR_UNSUPPORTED,
                             "must be ZEROS, ONES, LINEAR or EXP, got %.32s",
                             name);
}

// LeRobot 0.6.2 and later.
static td_err read_mode(const td_json_at *config, const td_json_at *at,
                        td_native_guide *guide, td_errinfo *info)
{
    const char *mode = NULL;
    if (td_json_read_is_null(at, "mode")) return TD_OK;
    TD_TRY(td_json_read_text(at, "mode", &mode, info));
    guide->trained = strcmp(mode, "trained") == 0;
    if (!guide->trained && strcmp(mode, "guided") != 0)
        return td_json_read_fail(at, "mode", info, TD_ERR_UNSUPPORTED,
                                 "must be guided or trained, got %.32s", mode);
    if (!guide->trained) return TD_OK;
    return td_json_read_whole(config, "rtc_training_max_delay", 1, MOST_HORIZON,
                              &guide->most_delay, info);
}

td_err td_native_guide_read(const td_json_at *config,
                            td_native_guide *ret_guide, td_errinfo *info)
{
    td_native_guide guide = {
        .schedule = TD_NATIVE_GUIDE_LINEAR, .most = 10, .horizon = 10};
    double most = 0;
    if (!td_json_read_is_null(config, "rtc_config")) {
        td_json_at at = {config->file, "rtc_config.", NULL};
        TD_TRY(td_json_read_object(config, "rtc_config", &at.object, info));
        TD_TRY(read_mode(config, &at, &guide, info));
        TD_TRY(read_schedule(&at, &guide, info));
        TD_TRY(td_json_read_number(&at, "max_guidance_weight", &most, info));
        TD_TRY(td_json_read_whole(&at, "execution_horizon", 0, MOST_HORIZON,
                                  &guide.horizon, info));
        guide.most = (float)most;
        if (!(most > 0) || !isfinite(guide.most))
            return td_json_read_fail(&at, "max_guidance_weight", info,
                                     TD_ERR_FORMAT, "must be above 0");
    }
    *ret_guide = guide;
    return TD_OK;
}

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

// Row `i` of `count` that come after those which are played.
static double ramp(td_native_guide_schedule schedule, uint32_t i,
                   uint32_t count)
{
    double part = 1 - (double)(i + 1) / ((double)count + 1);
    if (schedule == TD_NATIVE_GUIDE_ZEROS) return 0;
    if (schedule == TD_NATIVE_GUIDE_ONES) return 1;
    if (schedule == TD_NATIVE_GUIDE_LINEAR) return part;
    return part * expm1(part) / (M_E - 1);
}

void td_native_guide_weights(const td_native_guide *guide, uint32_t delay,
                             uint32_t horizon, uint32_t left, uint32_t rows,
                             float *ret_weights)
{
    uint32_t end = least(least(horizon, left), rows), start = least(delay, end);
    for (uint32_t i = 0; i < rows; i++)
        ret_weights[i] = i < start ? 1 : 0;
    for (uint32_t i = start; i < end; i++)
        ret_weights[i] = (float)ramp(guide->schedule, i - start, end - start);
}

float td_native_guide_strength(const td_native_guide *guide, double time)
{
    float tau = (float)(1 - time), left = 1 - tau;
    float by = left * left;
    float strength = left / tau * ((by + tau * tau) / by);
    return tau > 0 && strength < guide->most ? strength : guide->most;
}
