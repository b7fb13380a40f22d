// SPDX-License-Identifier: Apache-2.0
#include "plan/capacity/curve.h"

#include "plan/capacity/queue.h"

#include <math.h>

#define ARRIVALS 480
#define RANDOM_ARRIVALS 3600 // whose tail takes more of them to see
#define FULL_LOAD 0.97 // of the top throughput: beyond it no queue settles
#define TAIL_Z 2.33    // deviations of a count that hold 99 %
#define AS_QUICK 1.005 // a mean up to this is as good

static double top_hz(const td_plan_curve *curve, uint32_t n)
{
    return n * 1000 / td_config_profile_mean_ms(curve->profile, n);
}

// How many run at once on average when a server that batches continuously is
// asked at this rate: Little's law, with a time that itself grows with n. 0:
// more than it takes.
static double running(const td_plan_curve *curve, double rate_hz)
{
    double below = 0;
    for (uint32_t n = 1; n <= curve->settings.most; n++) {
        double need =
            rate_hz * td_config_profile_mean_ms(curve->profile, n) / 1000;
        if (need <= n) return fmax(need, below);
        below = n;
    }
    return 0;
}

static double between(const td_config_profile *profile, double n)
{
    uint32_t low = (uint32_t)n;
    if (low < 1) return td_config_profile_mean_ms(profile, 1);
    double part = n - low;
    double mean = td_config_profile_mean_ms(profile, low);
    if (part <= 0) return mean;
    return mean + part * (td_config_profile_mean_ms(profile, low + 1) - mean);
}

static bool reckon_continuous(const td_plan_curve *curve, double rate_hz,
                              td_plan_point *ret_point)
{
    const td_plan_curve_settings *settings = &curve->settings;
    double n = running(curve, rate_hz);
    double most = ceil(n + TAIL_Z * sqrt(n));
    if (n == 0 && rate_hz > 0) return false;
    if (most < 1) most = 1;
    if (most > settings->most) return false;
    *ret_point = (td_plan_point){
        .mean_ms = between(curve->profile, n) + settings->overhead_ms,
        .tail_ms = td_config_profile_quantile_ms(curve->profile, (uint32_t)most,
                                                 settings->percentile / 100) +
                   settings->overhead_ms,
        .batch = settings->most,
    };
    return ret_point->tail_ms <= settings->deadline_ms;
}

// Whether a request that just missed a batch still makes it with the next.
static bool catches_up(const td_plan_service *service, uint32_t n,
                       double limit_ms)
{
    return 2 * service->ms[n][TD_PLAN_DRAWS - 1] <= limit_ms;
}

// How long a batch waits for the rest of those in step: no longer than one
// takes. So whoever waits for others waits no longer than it may have to for a
// batch that runs, and catches_up() holds for it too.
static double wait_ms(const td_plan_curve *curve,
                      const td_plan_service *service)
{
    uint32_t n = curve->settings.together;
    return n > 1 ? service->ms[n][TD_PLAN_DRAWS - 1] : 0;
}

// The batch limit with the least mean of those that meet the deadline; of equal
// ones the largest, which makes up soonest for what the plan did not expect.
static bool reckon_batches(const td_plan_curve *curve,
                           const td_plan_service *service,
                           const double *arrivals_ms, size_t count,
                           double rate_hz, td_plan_point *ret_point)
{
    const td_plan_curve_settings *settings = &curve->settings;
    double limit_ms = settings->deadline_ms - settings->overhead_ms;
    bool found = false;
    for (size_t i = 0; i < curve->profile->service_count; i++) {
        uint32_t n = (uint32_t)curve->profile->service[i].batch;
        if (n > settings->most || n > TD_PLAN_MOST_BATCH) break;
        if (settings->together && n != settings->together) continue;
        if (rate_hz > FULL_LOAD * top_hz(curve, n)) continue;
        if (n > 1 && !catches_up(service, n, limit_ms)) break;
        td_plan_latency latency = td_plan_queue_run(
            service, arrivals_ms, count, n, wait_ms(curve, service),
            settings->percentile, 2 * limit_ms);
        if (latency.tail_ms > limit_ms) continue;
        double mean_ms = latency.mean_ms + settings->overhead_ms;
        if (found && mean_ms > ret_point->mean_ms * AS_QUICK) continue;
        *ret_point =
            (td_plan_point){mean_ms, latency.tail_ms + settings->overhead_ms, n,
                            wait_ms(curve, service)};
        found = true;
    }
    return found;
}

static double most_hz(const td_plan_curve *curve)
{
    double most = 0;
    if (td_config_profile_continuous(curve->profile))
        return top_hz(curve, curve->settings.most);
    for (size_t i = 0; i < curve->profile->service_count; i++) {
        uint32_t n = (uint32_t)curve->profile->service[i].batch;
        if (n <= curve->settings.most) most = fmax(most, top_hz(curve, n));
    }
    return most;
}

static void rise(td_plan_point *point, const td_plan_point *before)
{
    point->mean_ms = fmax(point->mean_ms, before->mean_ms);
    point->tail_ms = fmax(point->tail_ms, before->tail_ms);
}

static bool estimate(const td_plan_curve *curve, const td_plan_service *service,
                     double rate_hz, td_plan_point *ret_point)
{
    double arrivals_ms[RANDOM_ARRIVALS];
    size_t count = curve->settings.random ? RANDOM_ARRIVALS : ARRIVALS;
    if (td_config_profile_continuous(curve->profile))
        return reckon_continuous(curve, rate_hz, ret_point);
    if (curve->settings.random)
        td_plan_queue_random(rate_hz, arrivals_ms, count);
    else
        td_plan_queue_even(rate_hz, curve->settings.jitter_ms,
                           curve->settings.together ? curve->settings.together
                                                    : 1,
                           arrivals_ms, count);
    return reckon_batches(curve, service, arrivals_ms, count, rate_hz,
                          ret_point);
}

void td_plan_curve_init(td_plan_curve *curve, const td_config_profile *profile,
                        const td_plan_curve_settings *settings)
{
    td_plan_service service;
    double overhead_ms = settings->overhead_ms;
    uint32_t n = settings->together ? settings->together : 1;
    *curve = (td_plan_curve){.profile = profile, .settings = *settings};
    td_plan_service_init(&service, profile);
    curve->alone_ms =
        td_config_profile_quantile_ms(profile, n, settings->percentile / 100) +
        overhead_ms;
    curve->points[0] = (td_plan_point){
        .mean_ms = td_config_profile_mean_ms(profile, n) + overhead_ms,
        .tail_ms = curve->alone_ms,
        .batch = n,
    };
    curve->step_hz = most_hz(curve) / TD_PLAN_CURVE_STEPS;
    if (curve->alone_ms > settings->deadline_ms) return;
    for (size_t i = 1; i <= TD_PLAN_CURVE_STEPS; i++) {
        double rate_hz = (double)i * curve->step_hz;
        if (!estimate(curve, &service, rate_hz, &curve->points[i])) break;
        rise(&curve->points[i], &curve->points[i - 1]);
        curve->capacity_hz = rate_hz;
    }
}

bool td_plan_curve_at(const td_plan_curve *curve, double rate_hz,
                      td_plan_point *ret_point)
{
    if (rate_hz > curve->capacity_hz * (1 + 1e-9)) return false;
    double place = rate_hz / curve->step_hz;
    size_t above = (size_t)ceil(place - 1e-9);
    if (above == 0) above = 1;
    if (above > TD_PLAN_CURVE_STEPS) above = TD_PLAN_CURVE_STEPS;
    const td_plan_point *high = &curve->points[above];
    const td_plan_point *low = &curve->points[above - 1];
    double part = fmin(place - (double)(above - 1), 1);
    *ret_point = (td_plan_point){
        .mean_ms = low->mean_ms + part * (high->mean_ms - low->mean_ms),
        .tail_ms = low->tail_ms + part * (high->tail_ms - low->tail_ms),
        .batch = high->batch,
        .wait_ms = high->wait_ms,
    };
    return true;
}
