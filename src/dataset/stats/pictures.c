// SPDX-License-Identifier: Apache-2.0
#include "dataset/stats/pictures.h"

#include "dataset/stats/bins.h"

#include <math.h>
#include <stdlib.h>

#define CHANNELS 3
#define VALUES 256
#define FEW_SAMPLES 100 // at least so many, where there are
#define MANY_SAMPLES 10000
#define SMALL_SIDE 300 // from there on pixels are left out, down to half of it

struct td_dataset_pictures {
    uint64_t pictures;
    uint64_t pixels;
    float sums[CHANNELS];
    float squares[CHANNELS];
    uint64_t counts[CHANNELS][VALUES];
};

uint32_t td_dataset_pictures_step(uint32_t height, uint32_t width)
{
    uint32_t side = width > height ? width : height;
    return side < SMALL_SIDE ? 1 : side / (SMALL_SIDE / 2);
}

size_t td_dataset_pictures_samples(size_t length)
{
    size_t few = length < FEW_SAMPLES ? length : FEW_SAMPLES;
    size_t many = (size_t)pow((double)length, 0.75);
    if (many > MANY_SAMPLES) many = MANY_SAMPLES;
    return many > few ? many : few;
}

size_t td_dataset_pictures_sample(size_t length, size_t i)
{
    size_t samples = td_dataset_pictures_samples(length);
    if (samples < 2) return 0;
    if (i + 1 >= samples) return length - 1;
    double step = (double)(length - 1) / (double)(samples - 1);
    return (size_t)rint((double)i * step);
}

td_err td_dataset_pictures_new(td_dataset_pictures **ret_pictures)
{
    td_dataset_pictures *pictures = calloc(1, sizeof *pictures);
    if (!pictures) return TD_ERR_NOMEM;
    *ret_pictures = pictures;
    return TD_OK;
}

void td_dataset_pictures_free(td_dataset_pictures *pictures)
{
    free(pictures);
}

void td_dataset_pictures_add(td_dataset_pictures *pictures, const uint8_t *rgb,
                             size_t pixels)
{
    for (size_t i = 0; i < pixels; i++)
        for (int k = 0; k < CHANNELS; k++) {
            uint8_t value = rgb[i * CHANNELS + (size_t)k];
            pictures->sums[k] += (float)value;
            pictures->squares[k] += (float)(value * value);
            pictures->counts[k][value]++;
        }
    pictures->pictures++;
    pictures->pixels += pixels;
}

static td_err fill_channel(const td_dataset_pictures *pictures, int k,
                           td_dataset_stats *stats)
{
    TD_AUTO(td_dataset_bins) *bins = NULL;
    const uint64_t *counts = pictures->counts[k];
    const double pixels = (double)pictures->pixels;
    const float mean = (float)(pictures->sums[k] / pixels);
    int low = 0, high = VALUES - 1;
    while (low < VALUES - 1 && counts[low] == 0)
        low++;
    while (high > 0 && counts[high] == 0)
        high--;
    td_dataset_stats_of(stats, TD_DATASET_STAT_MIN)[k] = low;
    td_dataset_stats_of(stats, TD_DATASET_STAT_MAX)[k] = high;
    td_dataset_stats_of(stats, TD_DATASET_STAT_MEAN)[k] = mean;
    td_dataset_stats_of(stats, TD_DATASET_STAT_STD)[k] =
        td_dataset_stats_deviation(mean, (float)(pictures->squares[k] / pixels),
                                   true);
    TD_TRY(td_dataset_bins_new(low, high, true, &bins));
    for (int value = low; value <= high; value++)
        if (counts[value]) td_dataset_bins_add(bins, value, counts[value]);
    td_dataset_bins_quantiles(bins, stats, (uint32_t)k);
    return TD_OK;
}

td_err td_dataset_pictures_stats(const td_dataset_pictures *pictures,
                                 td_dataset_stats **ret_stats)
{
    TD_AUTO(td_dataset_stats) *stats = NULL;
    if (pictures->pixels == 0) return TD_ERR_EMPTY;
    TD_TRY(td_dataset_stats_new(CHANNELS, &stats));
    stats->count = pictures->pictures;
    for (int k = 0; k < CHANNELS; k++)
        TD_TRY(fill_channel(pictures, k, stats));
    for (int i = 0; i < TD_DATASET_STAT_COUNT * CHANNELS; i++)
        stats->values[i] /= 255.0;
    *ret_stats = TD_TAKE(stats);
    return TD_OK;
}
