// SPDX-License-Identifier: Apache-2.0
#ifndef TD_ENGINE_TRAFFIC_H
#define TD_ENGINE_TRAFFIC_H

// Requests that come at a rate and are answered in batches, one batch at a
// time: whoever waits when the engine is free goes with it, in order, up to the
// largest batch. Pure: the time is an argument, so that the same arrivals run
// through a real engine and through its service times.

#include "base/err.h"

typedef struct td_engine_traffic {
    int64_t *arrival_ns; // grows
    double *latency_ms;  // of those that are done
    size_t count;
    size_t taken, done; // the first so many
    uint32_t batch;     // most members
} td_engine_traffic;

// `count` requests at `rate_hz` on average, from `start_ns` on, at times that
// nobody foresees (Poisson) and the seed decides. Free with
// td_engine_traffic_done(). INVALID for a rate, count or batch of 0; NOMEM.
TD_NODISCARD td_err td_engine_traffic_init(td_engine_traffic *traffic,
                                           double rate_hz, size_t count,
                                           uint32_t batch, uint64_t seed,
                                           int64_t start_ns);
void td_engine_traffic_done(td_engine_traffic *traffic);

// When the next request comes that was not taken yet; INT64_MAX: there is none.
int64_t td_engine_traffic_next_ns(const td_engine_traffic *traffic);

// Takes who waits into a batch, and returns how many; 0: nobody. Not while a
// batch is under way.
uint32_t td_engine_traffic_take(td_engine_traffic *traffic, int64_t now_ns);

// The batch that was taken is answered.
void td_engine_traffic_answer(td_engine_traffic *traffic, int64_t now_ns);

// Of the requests that were answered, at least one. Sorts them.
double td_engine_traffic_quantile_ms(td_engine_traffic *traffic,
                                     double quantile);

#endif
