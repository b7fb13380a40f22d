// SPDX-License-Identifier: Apache-2.0
#include "engine/load.h"

#include "base/clock.h"
#include "base/rand.h"

#include <math.h>
#include <stdlib.h>

td_err td_engine_load_init(td_engine_load *load, double rate_hz, size_t count,
                           uint32_t batch, uint64_t seed, int64_t start_ns)
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
    *load = (td_engine_load){.arrival_ns = arrival_ns,
                             .latency_ms = latency_ms,
                             .count = count,
                             .batch = batch};
    return TD_OK;
}

void td_engine_load_done(td_engine_load *load)
{
    free(load->arrival_ns);
    free(load->latency_ms);
    *load = (td_engine_load){0};
}

int64_t td_engine_load_next_ns(const td_engine_load *load)
{
    return load->taken < load->count ? load->arrival_ns[load->taken]
                                     : INT64_MAX;
}

uint32_t td_engine_load_take(td_engine_load *load, int64_t now_ns)
{
    uint32_t members = 0;
    while (members < load->batch && td_engine_load_next_ns(load) <= now_ns) {
        load->taken++;
        members++;
    }
    return members;
}

void td_engine_load_answer(td_engine_load *load, int64_t now_ns)
{
    for (; load->done < load->taken; load->done++)
        load->latency_ms[load->done] =
            (double)(now_ns - load->arrival_ns[load->done]) /
            (double)TD_NS_PER_MS;
}

static int by_size(const void *a, const void *b)
{
    double one = *(const double *)a, other = *(const double *)b;
    return (one > other) - (one < other);
}

double td_engine_load_quantile_ms(td_engine_load *load, double quantile)
{
    qsort(load->latency_ms, load->done, sizeof *load->latency_ms, by_size);
    size_t index = (size_t)(quantile * (double)load->done);
    return load->latency_ms[index < load->done ? index : load->done - 1];
}
