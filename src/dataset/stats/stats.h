// SPDX-License-Identifier: Apache-2.0
#ifndef TD_DATASET_STATS_STATS_H
#define TD_DATASET_STATS_STATS_H

// Statistics of a feature over an episode and over a dataset, as LeRobot 0.6
// computes them: pure.
//
// They are LeRobot's to the rounding. It sums single precision row after row
// (a feature of one channel: pairwise, as NumPy does), so that its means and
// deviations of pictures are off from the true ones in the third digit; those
// who train expect its numbers, hence the same sums in the same order here.

#include "base/err.h"

#include <stdbool.h>

#define TD_DATASET_STATS(X)                                                    \
    X(MIN, "min")                                                              \
    X(MAX, "max")                                                              \
    X(MEAN, "mean")                                                            \
    X(STD, "std")                                                              \
    X(Q01, "q01")                                                              \
    X(Q10, "q10")                                                              \
    X(Q50, "q50")                                                              \
    X(Q90, "q90")                                                              \
    X(Q99, "q99")

typedef enum td_dataset_stat {
#define TD_DATASET_STAT_ENUM(name, text) TD_DATASET_STAT_##name,
    TD_DATASET_STATS(TD_DATASET_STAT_ENUM)
#undef TD_DATASET_STAT_ENUM
        TD_DATASET_STAT_COUNT
} td_dataset_stat;

// "min"; never NULL.
const char *td_dataset_stat_name(td_dataset_stat stat);

typedef struct td_dataset_stats {
    uint64_t count; // rows, or pictures looked at
    uint32_t channels;
    double *values; // [TD_DATASET_STAT_COUNT][channels]
} td_dataset_stats;

// The values of one statistic, a channel each. Borrowed.
double *td_dataset_stats_of(td_dataset_stats *stats, td_dataset_stat stat);

// Owned by the caller; all zero. INVALID (no channel), NOMEM.
TD_NODISCARD td_err td_dataset_stats_new(uint32_t channels,
                                         td_dataset_stats **ret_stats);
void td_dataset_stats_free(td_dataset_stats *stats);
TD_AUTO_FREE(td_dataset_stats, td_dataset_stats_free)

typedef enum td_dataset_stats_type {
    TD_DATASET_STATS_F32,
    TD_DATASET_STATS_F64,
    TD_DATASET_STATS_I64,
    TD_DATASET_STATS_BOOL, // bytes
} td_dataset_stats_type;

// Of a finished episode's column: rows x channels, all finite. Owned by the
// caller. INVALID (no row, a value that is not finite), NOMEM.
TD_NODISCARD td_err td_dataset_stats_column(td_dataset_stats_type type,
                                            const void *values, size_t rows,
                                            uint32_t channels,
                                            td_dataset_stats **ret_stats);

// Of a mean and a mean of squares, in the precision that LeRobot has for it.
double td_dataset_stats_deviation(double mean, double mean_of_squares,
                                  bool single);

// Takes an episode's statistics into those of the episodes before it. MISMATCH
// (another number of channels).
TD_NODISCARD td_err td_dataset_stats_merge(td_dataset_stats *total,
                                           const td_dataset_stats *episode);

#endif
