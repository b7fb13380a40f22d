// SPDX-License-Identifier: Apache-2.0
#include "plan/capacity/rosa.h"

#include "plan/capacity/queue.h"

#include <math.h>

// A profile of ten rates meets the deadline between its ninth and tenth; fitted
// to the rates that the paper's robots were given.
#define KNEE 0.935
#define ARRIVALS 1200
#define SEEDS 8

// While n run, a request takes the time of n. All streams at once is the worst.
static bool reckon_continuous(const td_plan_curve *curve, uint32_t streams,
                              double rate_hz, td_plan_point *ret_point)
{
    const td_plan_curve_settings *settings = &curve->settings;
    if (streams > settings->most) return false;
    if (!td_plan_curve_at(curve, rate_hz, ret_point)) return false;
    ret_point->tail_ms =
        td_config_profile_quantile_ms(curve->profile, streams,
                                      settings->percentile / 100) +
        settings->overhead_ms;
    return ret_point->tail_ms <= settings->deadline_ms;
}

// What runs when a request comes ends first; a batch that waits to be full may
// wait for a whole period, when phases are anyhow.
static bool reckon_batch(const td_plan_curve *curve, uint32_t n, double rate_hz,
                         double least_hz, td_plan_point *ret_point)
{
    const td_plan_curve_settings *settings = &curve->settings;
    double mean_ms = td_config_profile_mean_ms(curve->profile, n);
    double tail_ms = td_config_profile_quantile_ms(curve->profile, n,
                                                   settings->percentile / 100);
    double load = rate_hz * mean_ms / 1000 / n;
    double fill_ms = n > 1 ? 1000 / least_hz : 0;
    *ret_point = (td_plan_point){
        .mean_ms =
            mean_ms * (1 + load / 2) + fill_ms / 2 + settings->overhead_ms,
        .tail_ms = 2 * tail_ms + fill_ms + settings->overhead_ms,
        .batch = n,
    };
    return load <= KNEE && ret_point->tail_ms <= settings->deadline_ms;
}

bool td_plan_rosa_estimate(const td_plan_curve *curve, uint32_t streams,
                           double rate_hz, double least_hz,
                           td_plan_point *ret_point)
{
    const td_config_profile *profile = curve->profile;
    td_plan_point point;
    bool found = false;
    if (td_config_profile_continuous(profile))
        return reckon_continuous(curve, streams, rate_hz, ret_point);
    for (size_t i = 0; i < profile->service_count; i++) {
        uint32_t n = (uint32_t)profile->service[i].batch;
        if (n > curve->settings.most || n > streams) break;
        if (!reckon_batch(curve, n, rate_hz, least_hz, &point)) continue;
        if (found && point.tail_ms >= ret_point->tail_ms) continue;
        *ret_point = point;
        found = true;
    }
    return found;
}

double td_plan_rosa_batch_hz(const td_plan_curve *curve, uint32_t n)
{
    return KNEE * n * 1000 / td_config_profile_mean_ms(curve->profile, n);
}

double td_plan_rosa_capacity_hz(const td_plan_curve *curve)
{
    const td_config_profile *profile = curve->profile;
    double most = 0;
    if (td_config_profile_continuous(profile)) return curve->capacity_hz;
    for (size_t i = 0; i < profile->service_count; i++) {
        uint32_t n = (uint32_t)profile->service[i].batch;
        if (n > curve->settings.most) break;
        most = fmax(most, td_plan_rosa_batch_hz(curve, n));
    }
    return most;
}

uint32_t td_plan_rosa_batch(const td_plan_curve *curve, uint32_t streams,
                            double rate_hz)
{
    const td_config_profile *profile = curve->profile;
    static const double ceiling_ms = 60000;
    double arrivals_ms[ARRIVALS];
    double least = INFINITY;
    uint32_t best = 1;
    td_plan_service service;
    if (td_config_profile_continuous(profile)) return curve->settings.most;
    td_plan_service_init(&service, profile);
    for (size_t i = 0; i < profile->service_count; i++) {
        uint32_t n = (uint32_t)profile->service[i].batch;
        double mean = 0;
        if (n > curve->settings.most || n > streams || n > service.most) break;
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
            td_plan_queue_phases(streams, rate_hz / streams, seed, arrivals_ms,
                                 ARRIVALS);
            mean += td_plan_queue_run(&service, arrivals_ms, ARRIVALS, n,
                                      INFINITY, 99, ceiling_ms)
                        .mean_ms;
        }
        if (mean >= least) continue;
        least = mean;
        best = n;
    }
    return best;
}
