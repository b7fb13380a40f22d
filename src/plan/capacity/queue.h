// SPDX-License-Identifier: Apache-2.0
#ifndef TD_PLAN_CAPACITY_QUEUE_H
#define TD_PLAN_CAPACITY_QUEUE_H

// What requests wait and take at one server, from the service times of its
// profile and from when they arrive. Pure and exact for the arrivals given:
// Lindley's recursion, with batches.

#include "config/factory/profile.h"

#define TD_PLAN_MOST_BATCH 64
#define TD_PLAN_DRAWS 32 // quantiles that stand for a distribution

// Service times by the size of the batch.
typedef struct td_plan_service {
    uint32_t most;
    double ms[TD_PLAN_MOST_BATCH + 1][TD_PLAN_DRAWS];
} td_plan_service;

void td_plan_service_init(td_plan_service *service,
                          const td_config_profile *profile);

typedef struct td_plan_latency {
    double mean_ms, tail_ms;
} td_plan_latency;

// A batch of at most `most` starts when the device is free, and so many wait or
// its first has waited for `wait_ms` (INFINITY: only when so many wait).
// `arrivals_ms` grow; the first quarter of them is not counted. `ceiling_ms`: a
// tail above it reads as INFINITY.
td_plan_latency td_plan_queue_run(const td_plan_service *service,
                                  const double *arrivals_ms, size_t count,
                                  uint32_t most, double wait_ms,
                                  double percentile, double ceiling_ms);

// `count` arrivals of one rate, so many `together` and these evenly spaced, but
// for a deviation of each.
void td_plan_queue_even(double rate_hz, double jitter_ms, uint32_t together,
                        double *ret_ms, size_t count);

// `count` arrivals of one rate that know nothing of each other.
void td_plan_queue_random(double rate_hz, double *ret_ms, size_t count);

// `count` arrivals of `streams` periodic streams, each with a phase of its own
// from `seed`.
void td_plan_queue_phases(uint32_t streams, double rate_hz, uint64_t seed,
                          double *ret_ms, size_t count);

#endif
