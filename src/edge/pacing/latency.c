// SPDX-License-Identifier: Apache-2.0
#include "edge/pacing/latency.h"

#include <math.h>
#include <string.h>

enum {
    TAIL_SHARE = 20,
    TAIL_MIN = 4,
    FEW = 8, // fewer have no tail
    RECENT = 16,
};

void td_edge_latency_init(td_edge_latency *latency)
{
    *latency = (td_edge_latency){0};
}

void td_edge_latency_reconnect(td_edge_latency *latency)
{
    latency->warm = false;
    latency->cold_ns = 0;
    latency->size = latency->next = 0;
    latency->late_ns = 0;
}

// The first place whose sample is not below `value`.
static uint32_t place_of(const td_edge_latency *latency, int64_t value)
{
    uint32_t low = 0, high = latency->size;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (latency->sorted[middle] < value)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void forget(td_edge_latency *latency, int64_t value)
{
    uint32_t at = place_of(latency, value);
    latency->size--;
    memmove(&latency->sorted[at], &latency->sorted[at + 1],
            (latency->size - at) * sizeof *latency->sorted);
}

static void keep(td_edge_latency *latency, int64_t value)
{
    uint32_t at = place_of(latency, value);
    memmove(&latency->sorted[at + 1], &latency->sorted[at],
            (latency->size - at) * sizeof *latency->sorted);
    latency->sorted[at] = value;
    latency->size++;
}

bool td_edge_latency_add(td_edge_latency *latency, int64_t took_ns)
{
    if (!latency->warm) {
        latency->warm = true;
        latency->cold_ns = took_ns;
        return false;
    }
    if (took_ns < 0) took_ns = 0;
    if (latency->size == TD_EDGE_LATENCY_WINDOW)
        forget(latency, latency->samples[latency->next]);
    keep(latency, took_ns);
    latency->samples[latency->next] = took_ns;
    latency->next = (latency->next + 1) % TD_EDGE_LATENCY_WINDOW;
    latency->late_ns -= latency->late_ns / 16;
    if (took_ns > latency->late_ns) latency->late_ns = took_ns;
    return true;
}

int64_t td_edge_latency_quantile(const td_edge_latency *latency,
                                 double quantile)
{
    if (latency->size == 0) return 0;
    double rank = ceil(quantile * latency->size);
    if (!(rank > 1)) return latency->sorted[0];
    if (rank > latency->size) rank = latency->size;
    return latency->sorted[(uint32_t)rank - 1];
}

static double capped(int64_t value, int64_t cap_ns)
{
    return (double)(value < cap_ns ? value : cap_ns);
}

int64_t td_edge_latency_mean(const td_edge_latency *latency)
{
    if (latency->size == 0) return 0;
    int64_t cap_ns = 4 * td_edge_latency_quantile(latency, 0.5);
    double sum = 0;
    for (uint32_t i = 0; i < latency->size; i++)
        sum += capped(latency->sorted[i], cap_ns);
    return (int64_t)(sum / latency->size);
}

static double largest_of_late(const td_edge_latency *latency, int64_t cap_ns)
{
    int64_t largest = 0;
    for (uint32_t back = 1; back <= RECENT && back <= latency->size; back++) {
        uint32_t at = (latency->next + TD_EDGE_LATENCY_WINDOW - back) %
                      TD_EDGE_LATENCY_WINDOW;
        if (latency->samples[at] > largest) largest = latency->samples[at];
    }
    return capped(largest, cap_ns);
}

// The exponential tail of the header; of FEW samples or more.
static double tail_bound(const td_edge_latency *latency, double miss,
                         int64_t cap_ns)
{
    uint32_t n = latency->size;
    uint32_t k = n / TAIL_SHARE > TAIL_MIN ? n / TAIL_SHARE : TAIL_MIN;
    double below = capped(latency->sorted[n - k - 1], cap_ns);
    double largest = capped(latency->sorted[n - 1], cap_ns);
    double excess = 0;
    for (uint32_t i = n - k; i < n; i++)
        excess += capped(latency->sorted[i], cap_ns) - below;
    double scale = excess / k * (1 + 1 / sqrt(k));
    double bound = below + scale * fmax(0, log(k / (n * miss)));
    double furthest = largest + scale * fmax(0, log(1 / (n * miss)));
    return fmin(bound, furthest);
}

int64_t td_edge_latency_bound(const td_edge_latency *latency, double miss,
                              int64_t cap_ns)
{
    uint32_t n = latency->size;
    if (n == 0) return 0;
    double bound =
        n < FEW ? (1 + (double)FEW / n) * capped(latency->sorted[n - 1], cap_ns)
                : fmax(tail_bound(latency, miss, cap_ns),
                       largest_of_late(latency, cap_ns));
    return bound < (double)cap_ns ? (int64_t)bound : cap_ns;
}

uint32_t td_edge_latency_steps(int64_t took_ns, int64_t period_ns,
                               uint64_t executed)
{
    if (took_ns <= 0) return 0;
    uint64_t steps = ((uint64_t)took_ns - 1) / (uint64_t)period_ns + 1;
    if (steps > executed) steps = executed;
    return steps < UINT32_MAX ? (uint32_t)steps : UINT32_MAX;
}
