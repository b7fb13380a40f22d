// SPDX-License-Identifier: Apache-2.0
#ifndef TD_PLAN_CAPACITY_ROSA_H
#define TD_PLAN_CAPACITY_ROSA_H

// What a server can take, as the Rosa paper's scheduler computes it: no phases,
// batches that wait until they are full, every robot's plan under way at once.

#include "plan/capacity/curve.h"

bool td_plan_rosa_estimate(const td_plan_curve *curve, uint32_t streams,
                           double rate_hz, double least_hz,
                           td_plan_point *ret_point);

double td_plan_rosa_capacity_hz(const td_plan_curve *curve);

// What it takes in batches of n.
double td_plan_rosa_batch_hz(const td_plan_curve *curve, uint32_t n);

// The batch limit with the least mean latency, of streams with any phases.
uint32_t td_plan_rosa_batch(const td_plan_curve *curve, uint32_t streams,
                            double rate_hz);

#endif
