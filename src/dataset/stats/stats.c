// SPDX-License-Identifier: Apache-2.0
// Statistics of one feature, to the rounding as LeRobot 0.6 computes them with
// NumPy. Pure.
//
// The sums are the point of this file. LeRobot keeps numbers in single
// precision, and NumPy adds them in one of two ways: a feature of one channel
// lies in one piece and is summed pairwise, in blocks of 128 and eight parts; a
// feature of several channels is summed row after row. Both are rebuilt here,
// with each sum rounded to single precision. Whole numbers are double precision
// there and here. The tests hold all of it to numbers that LeRobot itself
// produced (tests/golden/make_stats.py).
//
// Quantiles are estimated from a histogram (stats/bins.c); of a single row each
// is its value.
//
// td_dataset_stats_merge() takes an episode into the totals: means are weighed
// by rows, deviations also have the distance of each mean from the common one,
// quantiles are weighed like means, which is what LeRobot does.
#include "dataset/stats/stats.h"

#include "dataset/stats/bins.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

// NumPy sums what lies in one piece so: blocks of this size in eight parts.
#define BLOCK 128
#define PARTS 8

const char *td_dataset_stat_name(td_dataset_stat stat)
{
    static const char *const names[] = {
#define STAT_NAME(name, text) [TD_DATASET_STAT_##name] = (text),
        TD_DATASET_STATS(STAT_NAME)
#undef STAT_NAME
    };
    return names[stat];
}

td_err td_dataset_stats_new(uint32_t channels, td_dataset_stats **ret_stats)
{
    if (channels == 0) return TD_ERR_INVALID;
    TD_AUTO(td_dataset_stats) *stats = calloc(1, sizeof *stats);
    if (!stats) return TD_ERR_NOMEM;
    stats->channels = channels;
    stats->values =
        calloc((size_t)TD_DATASET_STAT_COUNT * channels, sizeof(double));
    if (!stats->values) return TD_ERR_NOMEM;
    *ret_stats = TD_TAKE(stats);
    return TD_OK;
}

void td_dataset_stats_free(td_dataset_stats *stats)
{
    free(stats->values);
    free(stats);
}

double *td_dataset_stats_of(td_dataset_stats *stats, td_dataset_stat stat)
{
    return stats->values + (size_t)stat * stats->channels;
}

// One channel. Whole numbers are double precision in LeRobot, all else single.
typedef struct one_channel {
    bool single;
    bool alone; // the only one of its feature
    size_t rows;
    double *values;
} one_channel;

// A sum of two numbers of single precision, made in double and rounded, is what
// single precision makes of it.
static double rounded(const one_channel *channel, double value)
{
    return channel->single ? (float)value : value;
}

static double term(const one_channel *channel, size_t i, bool squares)
{
    double value = channel->values[i];
    return squares ? rounded(channel, value * value) : value;
}

static double sum_block(const one_channel *channel, size_t i, size_t count,
                        bool squares)
{
    double parts[PARTS] = {0};
    size_t end = i + count;
    for (; i + PARTS <= end; i += PARTS)
        for (size_t k = 0; k < PARTS; k++)
            parts[k] =
                rounded(channel, parts[k] + term(channel, i + k, squares));
    for (size_t width = 1; width < PARTS; width *= 2)
        for (size_t k = 0; k < PARTS; k += 2 * width)
            parts[k] = rounded(channel, parts[k] + parts[k + width]);
    for (; i < end; i++)
        parts[0] = rounded(channel, parts[0] + term(channel, i, squares));
    return parts[0];
}

static double sum_pairwise(const one_channel *channel, size_t i, size_t count,
                           bool squares)
{
    if (count <= BLOCK) return sum_block(channel, i, count, squares);
    size_t half = count / 2 - count / 2 % PARTS;
    return rounded(channel,
                   sum_pairwise(channel, i, half, squares) +
                       sum_pairwise(channel, i + half, count - half, squares));
}

static double sum_in_order(const one_channel *channel, bool squares)
{
    double sum = 0;
    for (size_t i = 0; i < channel->rows; i++)
        sum = rounded(channel, sum + term(channel, i, squares));
    return sum;
}

static double mean_of(const one_channel *channel, bool squares)
{
    double sum = channel->alone
                     ? sum_pairwise(channel, 0, channel->rows, squares)
                     : sum_in_order(channel, squares);
    return rounded(channel, sum / (double)channel->rows);
}

double td_dataset_stats_deviation(double mean, double mean_of_squares,
                                  bool single)
{
    if (!single) return sqrt(fmax(0, mean_of_squares - mean * mean));
    float square = (float)mean * (float)mean;
    return sqrtf(fmaxf(0, (float)mean_of_squares - square));
}

static td_err count_channel(const one_channel *channel, td_dataset_stats *stats,
                            uint32_t at)
{
    TD_AUTO(td_dataset_bins) *bins = NULL;
    double low = td_dataset_stats_of(stats, TD_DATASET_STAT_MIN)[at];
    double high = td_dataset_stats_of(stats, TD_DATASET_STAT_MAX)[at];
    TD_TRY(td_dataset_bins_new(low, high, channel->single, &bins));
    for (size_t i = 0; i < channel->rows; i++)
        td_dataset_bins_add(bins, channel->values[i], 1);
    td_dataset_bins_quantiles(bins, stats, at);
    return TD_OK;
}

static td_err fill_channel(const one_channel *channel, td_dataset_stats *stats,
                           uint32_t at)
{
    double low = channel->values[0], high = channel->values[0];
    for (size_t i = 0; i < channel->rows; i++) {
        if (!isfinite(channel->values[i])) return TD_ERR_INVALID;
        low = fmin(low, channel->values[i]);
        high = fmax(high, channel->values[i]);
    }
    double mean = mean_of(channel, false);
    td_dataset_stats_of(stats, TD_DATASET_STAT_MIN)[at] = low;
    td_dataset_stats_of(stats, TD_DATASET_STAT_MAX)[at] = high;
    td_dataset_stats_of(stats, TD_DATASET_STAT_MEAN)[at] = mean;
    td_dataset_stats_of(stats, TD_DATASET_STAT_STD)[at] =
        td_dataset_stats_deviation(mean, mean_of(channel, true),
                                   channel->single);
    return count_channel(channel, stats, at);
}

// Of a single row nothing is estimated: each quantile is its value.
static void fill_single_row(const one_channel *channel, td_dataset_stats *stats,
                            uint32_t at)
{
    for (int i = 0; i < TD_DATASET_STAT_COUNT; i++)
        if (i != TD_DATASET_STAT_STD)
            td_dataset_stats_of(stats, (td_dataset_stat)i)[at] =
                channel->values[0];
}

static double value_at(td_dataset_stats_type type, const void *values, size_t i)
{
    switch (type) {
    case TD_DATASET_STATS_F32:
        return ((const float *)values)[i];
    case TD_DATASET_STATS_F64:
        return ((const double *)values)[i];
    case TD_DATASET_STATS_I64:
        return (double)((const int64_t *)values)[i];
    case TD_DATASET_STATS_BOOL:
        return ((const uint8_t *)values)[i] != 0;
    }
    return 0;
}

static td_err fill(td_dataset_stats_type type, const void *values,
                   one_channel *channel, td_dataset_stats *stats)
{
    for (uint32_t at = 0; at < stats->channels; at++) {
        for (size_t i = 0; i < channel->rows; i++)
            channel->values[i] =
                value_at(type, values, i * stats->channels + at);
        if (channel->rows == 1 && isfinite(channel->values[0]))
            fill_single_row(channel, stats, at);
        else
            TD_TRY(fill_channel(channel, stats, at));
    }
    return TD_OK;
}

td_err td_dataset_stats_column(td_dataset_stats_type type, const void *values,
                               size_t rows, uint32_t channels,
                               td_dataset_stats **ret_stats)
{
    TD_AUTO(td_dataset_stats) *stats = NULL;
    if (rows == 0) return TD_ERR_INVALID;
    TD_TRY(td_dataset_stats_new(channels, &stats));
    stats->count = rows;
    one_channel channel = {
        .single = type == TD_DATASET_STATS_F32 || type == TD_DATASET_STATS_BOOL,
        .alone = channels == 1,
        .rows = rows,
        .values = calloc(rows, sizeof(double)),
    };
    if (!channel.values) return TD_ERR_NOMEM;
    td_err err = fill(type, values, &channel, stats);
    free(channel.values);
    if (err == TD_OK) *ret_stats = TD_TAKE(stats);
    return err;
}

// Those of a mean are weighed by rows; a deviation also has the distance of its
// mean from the common one.
static void merge_channel(td_dataset_stats *total,
                          const td_dataset_stats *episode, uint32_t at)
{
    const uint32_t channels = total->channels;
    const double a = (double)total->count, b = (double)episode->count;
    double mean[2] = {total->values[TD_DATASET_STAT_MEAN * channels + at],
                      episode->values[TD_DATASET_STAT_MEAN * channels + at]};
    double both = (mean[0] * a + mean[1] * b) / (a + b);
    for (int i = 0; i < TD_DATASET_STAT_COUNT; i++) {
        double *x = &total->values[(uint32_t)i * channels + at];
        double y = episode->values[(uint32_t)i * channels + at];
        double far_x = mean[0] - both, far_y = mean[1] - both;
        if (i == TD_DATASET_STAT_MIN)
            *x = fmin(*x, y);
        else if (i == TD_DATASET_STAT_MAX)
            *x = fmax(*x, y);
        else if (i == TD_DATASET_STAT_STD)
            *x = sqrt(
                ((*x * *x + far_x * far_x) * a + (y * y + far_y * far_y) * b) /
                (a + b));
        else
            *x = (*x * a + y * b) / (a + b);
    }
}

td_err td_dataset_stats_merge(td_dataset_stats *total,
                              const td_dataset_stats *episode)
{
    if (total->channels != episode->channels) return TD_ERR_MISMATCH;
    if (episode->count == 0) return TD_OK;
    if (total->count == 0)
        memcpy(total->values, episode->values,
               (size_t)TD_DATASET_STAT_COUNT * total->channels *
                   sizeof(double));
    else
        for (uint32_t at = 0; at < total->channels; at++)
            merge_channel(total, episode, at);
    total->count += episode->count;
    return TD_OK;
}
