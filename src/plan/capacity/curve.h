// SPDX-License-Identifier: Apache-2.0
#ifndef TD_PLAN_CAPACITY_CURVE_H
#define TD_PLAN_CAPACITY_CURVE_H

// What a server can take: latency by the rate of all that it is asked, with the
// best batch limit at each rate.
//
// Made from service times alone, for streams whose phases are spread evenly,
// for groups of streams in step, whose batches wait for all of them, or for
// such as have no phases: so the rate matters and not how many streams it comes
// from. Latencies never fall as the rate grows (a dip is filled up), so
// whatever holds at a rate holds below it, which the search over rates relies
// on.

#include "plan/plan.h"

#define TD_PLAN_CURVE_STEPS 96

typedef struct td_plan_point {
    double mean_ms, tail_ms; // with what comes on top of the model
    uint32_t batch;          // limit
    double wait_ms;          // of a batch that is not full
} td_plan_point;

typedef struct td_plan_curve_settings {
    double deadline_ms, percentile;
    double overhead_ms;
    double jitter_ms;  // of arrivals, one deviation
    uint32_t most;     // batch or concurrency; what memory and options leave
    uint32_t together; // streams in step, and their batch; 0: each by itself
    bool random;       // arrivals know nothing of each other
} td_plan_curve_settings;

typedef struct td_plan_curve {
    const td_config_profile *profile; // borrowed
    td_plan_curve_settings settings;
    double step_hz;
    double capacity_hz; // within the deadline; 0: never
    double alone_ms;    // tail of a request, or of those in step, that meet no
                        // other
    td_plan_point points[TD_PLAN_CURVE_STEPS + 1]; // [0] is no load
} td_plan_curve;

void td_plan_curve_init(td_plan_curve *curve, const td_config_profile *profile,
                        const td_plan_curve_settings *settings);

// False beyond the capacity.
bool td_plan_curve_at(const td_plan_curve *curve, double rate_hz,
                      td_plan_point *ret_point);

#endif
