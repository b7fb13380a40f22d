// SPDX-License-Identifier: Apache-2.0
#include "engine/traffic.h"

#include "base/clock.h"
#include "base/rand.h"

#include <math.h>
#include <stdlib.h>

td_err td_engine_traffic_init(td_engine_traffic *traffic, double rate_hz,
                              size_t count, uint32_t batch, uint64_t seed,
                              int64_t start_ns)
{
    if (!(rate_hz > 0) || count == 0 || batch == 0) return TD_ERR_INVALID;
    int64_t *arrival_ns = calloc(count, sizeof *arrival_ns);
    double *latency_ms = calloc(count, sizeof *latency_ms);
    if (!arrival_ns || !latency_ms) {
        free(arrival_ns);
        free(latency_ms);
        return TD_ERR_NOMEM;
    }
    td_rand rand;
    td_rand_init(&rand, seed);
    double at_ns = (double)start_ns;
    for (size_t i = 0; i < count; i++) {
        arrival_ns[i] = (int64_t)at_ns;
        at_ns -= log(1 - td_rand_unit(&rand)) * (double)TD_NS_PER_S / rate_hz;
    }
    *traffic = (td_engine_traffic){.arrival_ns = arrival_ns,
                                   .latency_ms = latency_ms,
                                   .count = count,
                                   .batch = batch};
    return TD_OK;
}

void td_engine_traffic_done(td_engine_traffic *traffic)
{
    free(traffic->arrival_ns);
    free(traffic->latency_ms);
    *traffic = (td_engine_traffic){0};
}

int64_t td_engine_traffic_next_ns(const td_engine_traffic *traffic)
{
    return traffic->taken < traffic->count ? traffic->arrival_ns[traffic->taken]
                                           : INT64_MAX;
}

uint32_t td_engine_traffic_take(td_engine_traffic *traffic, int64_t now_ns)
{
    uint32_t members = 0;
    while (members < traffic->batch &&
           td_engine_traffic_next_ns(traffic) <= now_ns) {
        traffic->taken++;
        members++;
    }
    return members;
}

void td_engine_traffic_answer(td_engine_traffic *traffic, int64_t now_ns)
{
    for (; traffic->done < traffic->taken; traffic->done++)
        traffic->latency_ms[traffic->done] =
            (double)(now_ns - traffic->arrival_ns[traffic->done]) /
            (double)TD_NS_PER_MS;
}

static int by_size(const void *a, const void *b)
{
    double one = *(const double *)a, other = *(const double *)b;
    return (one > other) - (one < other);
}

double td_engine_traffic_quantile_ms(td_engine_traffic *traffic,
                                     double quantile)
{
    qsort(traffic->latency_ms, traffic->done, sizeof *traffic->latency_ms,
          by_size);
    size_t index = (size_t)(quantile * (double)traffic->done);
    return traffic
        ->latency_ms[index < traffic->done ? index : traffic->done - 1];
}
