// SPDX-License-Identifier: Apache-2.0
#include "plan/capacity/queue.h"

#include "base/rand.h"

#include <math.h>

#define BINS 256

void td_plan_service_init(td_plan_service *service,
                          const td_config_profile *profile)
{
    uint32_t most = td_config_profile_max_batch(profile);
    service->most = most < TD_PLAN_MOST_BATCH ? most : TD_PLAN_MOST_BATCH;
    for (uint32_t n = 1; n <= service->most; n++)
        for (uint32_t i = 0; i < TD_PLAN_DRAWS; i++)
            service->ms[n][i] = td_config_profile_quantile_ms(
                profile, n, (i + 0.5) / TD_PLAN_DRAWS);
}

// Latencies by how long, so that a tail costs no sorting.
typedef struct counts {
    uint32_t bins[BINS + 1]; // the last: beyond the ceiling
    size_t count;
    double sum_ms, bin_ms;
} counts;

static void tally_add(counts *tally, double ms)
{
    size_t bin = (size_t)(ms / tally->bin_ms);
    tally->bins[bin < BINS ? bin : BINS]++;
    tally->sum_ms += ms;
    tally->count++;
}

static td_plan_latency tally_read(const counts *tally, double percentile)
{
    size_t above = 0;
    double allowed = (double)tally->count * (1 - percentile / 100);
    size_t bin = BINS;
    while (bin > 0 && (double)(above + tally->bins[bin]) <= allowed)
        above += tally->bins[bin--];
    return (td_plan_latency){
        .mean_ms = tally->sum_ms / (double)tally->count,
        .tail_ms = bin == BINS ? INFINITY : (double)(bin + 1) * tally->bin_ms,
    };
}

// How many of those from `first` on start together, and when.
static size_t form(const double *arrivals_ms, size_t first, size_t count,
                   uint32_t most, double wait_ms, double *start_ms)
{
    size_t size = 1;
    double latest_ms = arrivals_ms[first] + wait_ms;
    if (first + most <= count)
        latest_ms = fmin(latest_ms, arrivals_ms[first + most - 1]);
    if (isinf(latest_ms)) return 0;
    *start_ms = fmax(*start_ms, latest_ms);
    while (size < most && first + size < count &&
           arrivals_ms[first + size] <= *start_ms)
        size++;
    return size;
}

td_plan_latency td_plan_queue_run(const td_plan_service *service,
                                  const double *arrivals_ms, size_t count,
                                  uint32_t most, double wait_ms,
                                  double percentile, double ceiling_ms)
{
    counts tally = {.bin_ms = ceiling_ms / BINS};
    double free_ms = 0;
    td_rand rand;
    td_rand_init(&rand, most);
    for (size_t first = 0, size; first < count; first += size) {
        size = form(arrivals_ms, first, count, most, wait_ms, &free_ms);
        if (size == 0) break;
        free_ms += service->ms[size][td_rand_u64(&rand) % TD_PLAN_DRAWS];
        for (size_t i = first; i < first + size; i++)
            if (i >= count / 4) tally_add(&tally, free_ms - arrivals_ms[i]);
    }
    if (tally.count == 0) return (td_plan_latency){INFINITY, INFINITY};
    return tally_read(&tally, percentile);
}

// They are nearly in order already.
static void sort(double *values, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        double value = values[i];
        size_t at = i;
        for (; at > 0 && values[at - 1] > value; at--)
            values[at] = values[at - 1];
        values[at] = value;
    }
}

void td_plan_queue_even(double rate_hz, double jitter_ms, uint32_t together,
                        double *ret_ms, size_t count)
{
    td_rand rand;
    td_rand_init(&rand, 1);
    for (size_t i = 0; i < count; i++)
        ret_ms[i] = (double)(i - i % together) * 1000 / rate_hz +
                    jitter_ms * (6 + td_rand_normal(&rand));
    sort(ret_ms, count);
}

void td_plan_queue_random(double rate_hz, double *ret_ms, size_t count)
{
    double at_ms = 0;
    td_rand rand;
    td_rand_init(&rand, 1);
    for (size_t i = 0; i < count; i++) {
        at_ms -= log(1 - td_rand_unit(&rand)) * 1000 / rate_hz;
        ret_ms[i] = at_ms;
    }
}

void td_plan_queue_phases(uint32_t streams, double rate_hz, uint64_t seed,
                          double *ret_ms, size_t count)
{
    td_rand rand;
    td_rand_init(&rand, seed);
    for (size_t i = 0; i < streams && i < count; i++)
        ret_ms[i] = td_rand_unit(&rand) * 1000 / rate_hz;
    sort(ret_ms, streams < count ? streams : count);
    for (size_t i = streams; i < count; i++)
        ret_ms[i] = ret_ms[i - streams] + 1000 / rate_hz;
}
