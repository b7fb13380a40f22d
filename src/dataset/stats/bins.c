// SPDX-License-Identifier: Apache-2.0
#include "dataset/stats/bins.h"

#include <stdlib.h>

#define BINS 5000
#define MARGIN 1e-10 // so that the smallest and the largest are inside

struct td_dataset_bins {
    bool single;
    uint64_t total;
    uint64_t counts[BINS];
    double edges[BINS + 1];
};

// As NumPy spaces them, which rounds each step to the precision of the edges.
static void space_single(double *edges, float low, float high)
{
    float width = high - low, step = width / BINS;
    for (int i = 0; i < BINS; i++) {
        float at = step != 0 ? (float)i * step : (float)i / BINS * width;
        edges[i] = at + low;
    }
    edges[BINS] = high;
}

static void space_double(double *edges, double low, double high)
{
    double width = high - low, step = width / BINS;
    for (int i = 0; i < BINS; i++) {
        double at = step != 0 ? i * step : (double)i / BINS * width;
        edges[i] = at + low;
    }
    edges[BINS] = high;
}

td_err td_dataset_bins_new(double low, double high, bool single,
                           td_dataset_bins **ret_bins)
{
    td_dataset_bins *bins = calloc(1, sizeof *bins);
    if (!bins) return TD_ERR_NOMEM;
    bins->single = single;
    if (single)
        space_single(bins->edges, (float)low - (float)MARGIN,
                     (float)high + (float)MARGIN);
    else
        space_double(bins->edges, low - MARGIN, high + MARGIN);
    *ret_bins = bins;
    return TD_OK;
}

void td_dataset_bins_free(td_dataset_bins *bins)
{
    free(bins);
}

void td_dataset_bins_add(td_dataset_bins *bins, double value, uint64_t count)
{
    size_t below = 0, above = BINS; // the bin is in [below, above)
    while (above - below > 1) {
        size_t middle = (below + above) / 2;
        if (bins->edges[middle] <= value)
            below = middle;
        else
            above = middle;
    }
    bins->counts[below] += count;
    bins->total += count;
}

// Counted from the edge of the bin in which the wanted value lies. The first
// bin stands for its lower edge.
static double quantile(const td_dataset_bins *bins, double share)
{
    double wanted = share * (double)bins->total;
    uint64_t before = 0;
    size_t i = 0;
    while (i < BINS && (double)(before + bins->counts[i]) < wanted)
        before += bins->counts[i++];
    if (i == 0) return bins->edges[0];
    if (i == BINS) return bins->edges[BINS];
    double width = bins->edges[i + 1] - bins->edges[i];
    double part = (wanted - (double)before) / (double)bins->counts[i];
    return bins->edges[i] + part * (bins->single ? (float)width : width);
}

void td_dataset_bins_quantiles(const td_dataset_bins *bins,
                               td_dataset_stats *stats, uint32_t at)
{
    static const struct {
        td_dataset_stat stat;
        double share;
    } wanted[] = {
        {TD_DATASET_STAT_Q01, 0.01}, {TD_DATASET_STAT_Q10, 0.10},
        {TD_DATASET_STAT_Q50, 0.50}, {TD_DATASET_STAT_Q90, 0.90},
        {TD_DATASET_STAT_Q99, 0.99},
    };
    for (size_t i = 0; i < TD_COUNT_OF(wanted); i++)
        td_dataset_stats_of(stats, wanted[i].stat)[at] =
            quantile(bins, wanted[i].share);
}
