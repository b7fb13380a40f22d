// SPDX-License-Identifier: Apache-2.0
#include "engine/measure.h"

#include "base/clock.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define WARM_BATCHES 3
#define MOST_SLEEP_NS (50 * TD_NS_PER_MS)

static bool is_stopped(const td_engine_measure *measure)
{
    return measure->stop && measure->stop();
}

td_err td_engine_measure_batches(const td_engine_measure *measure, uint32_t n,
                                 size_t count, double *ret_ms, td_errinfo *info)
{
    for (size_t i = 0; i < count + WARM_BATCHES; i++) {
        int64_t ns = 0;
        if (is_stopped(measure)) return TD_ERR_CANCELLED;
        TD_TRY(
            td_engine_probe_run(measure->probe, measure->engine, n, &ns, info));
        if (i >= WARM_BATCHES)
            ret_ms[i - WARM_BATCHES] = (double)ns / (double)TD_NS_PER_MS;
    }
    return TD_OK;
}

// In short pieces, so that it can be stopped.
static td_err wait_until(const td_engine_measure *measure, int64_t at_ns)
{
    for (;;) {
        if (is_stopped(measure)) return TD_ERR_CANCELLED;
        int64_t left_ns = at_ns - td_clock_monotonic_ns();
        if (left_ns <= 0) return TD_OK;
        if (left_ns > MOST_SLEEP_NS) left_ns = MOST_SLEEP_NS;
        td_clock_sleep_until(td_clock_monotonic_ns() + left_ns);
    }
}

td_err td_engine_measure_traffic(const td_engine_measure *measure,
                                 td_engine_traffic *traffic, td_errinfo *info)
{
    int64_t start_ns = td_clock_monotonic_ns();
    while (traffic->done < traffic->count) {
        int64_t now_ns = td_clock_monotonic_ns() - start_ns;
        uint32_t members = td_engine_traffic_take(traffic, now_ns);
        if (members == 0) {
            TD_TRY(wait_until(measure,
                              start_ns + td_engine_traffic_next_ns(traffic)));
            continue;
        }
        if (is_stopped(measure)) return TD_ERR_CANCELLED;
        TD_TRY(td_engine_probe_run(measure->probe, measure->engine, members,
                                   NULL, info));
        td_engine_traffic_answer(traffic, td_clock_monotonic_ns() - start_ns);
    }
    return TD_OK;
}

static int by_size(const void *a, const void *b)
{
    double one = *(const double *)a, other = *(const double *)b;
    return (one > other) - (one < other);
}

// Sorts them.
static double median(double *ms, size_t count)
{
    qsort(ms, count, sizeof *ms, by_size);
    return (ms[(count - 1) / 2] + ms[count / 2]) / 2;
}

td_err td_engine_measure_noise(const double *ms, size_t count,
                               double *ret_noise)
{
    size_t part = count / TD_ENGINE_MEASURE_PARTS;
    double noise = 0;
    double *copy = malloc((count + 1) * sizeof *copy);
    if (!copy) return TD_ERR_NOMEM;
    memcpy(copy, ms, count * sizeof *copy);
    double whole = part ? median(copy, count) : 0;
    for (size_t i = 0; whole > 0 && i < TD_ENGINE_MEASURE_PARTS; i++) {
        memcpy(copy, ms + i * part, part * sizeof *copy);
        noise = fmax(noise, fabs(median(copy, part) / whole - 1));
    }
    free(copy);
    *ret_noise = noise;
    return TD_OK;
}
