// SPDX-License-Identifier: Apache-2.0
#ifndef TD_DATASET_STATS_BINS_H
#define TD_DATASET_STATS_BINS_H

// Quantiles as LeRobot estimates them: values of one channel counted in 5,000
// bins of equal width between the smallest and the largest, and interpolated.

#include "dataset/stats/stats.h"

#include <stdbool.h>

typedef struct td_dataset_bins td_dataset_bins;

// `single`: the edges are of single precision. Owned by the caller. NOMEM.
TD_NODISCARD td_err td_dataset_bins_new(double low, double high, bool single,
                                        td_dataset_bins **ret_bins);
void td_dataset_bins_free(td_dataset_bins *bins);
TD_AUTO_FREE(td_dataset_bins, td_dataset_bins_free)

// `value` lies between low and high, and was met `count` times.
void td_dataset_bins_add(td_dataset_bins *bins, double value, uint64_t count);

// Writes Q01 to Q99 of the channel `at`.
void td_dataset_bins_quantiles(const td_dataset_bins *bins,
                               td_dataset_stats *stats, uint32_t at);

#endif
