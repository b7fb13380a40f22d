// SPDX-License-Identifier: Apache-2.0
#ifndef TD_BASE_HIST_H
#define TD_BASE_HIST_H

// Histogram of durations with bounded relative error (HDR style).
//
// Values 0 to 2^40 - 1 (18 minutes in nanoseconds) fall into buckets no wider
// than 1/128 of their value (0.8 %); larger ones go into the last bucket.
// Count, sum, minimum and maximum are exact. Recording costs a few instructions
// and allocates nothing. One writer; a reader on another thread may copy it at
// any time and sees each bucket whole.

#include "base/err.h"

#include <stdatomic.h>

#define TD_HIST_SUB_BITS 7
#define TD_HIST_BUCKETS ((40 - TD_HIST_SUB_BITS + 1) << TD_HIST_SUB_BITS)

typedef struct td_hist {
    _Atomic uint64_t count;
    _Atomic uint64_t sum;
    _Atomic int64_t min; // INT64_MAX when empty
    _Atomic int64_t max; // INT64_MIN when empty
    _Atomic uint64_t buckets[TD_HIST_BUCKETS];
} td_hist;

void td_hist_init(td_hist *hist);

// A negative value counts as 0. Writer thread only; never blocks.
void td_hist_record(td_hist *hist, int64_t value);

// Adds the values of `from` to `into`. `into`'s writer thread only.
void td_hist_merge(td_hist *into, const td_hist *from);

// What was recorded between two copies of one histogram; `before` is the older.
// Min and max are those of the buckets, not exact.
void td_hist_since(const td_hist *now, const td_hist *before,
                   td_hist *ret_hist);

// The value at `quantile` (0 to 1), or above it by less than one bucket's
// width; never outside [min, max], and exact at 0 and 1. 0 when empty. Any
// thread.
int64_t td_hist_quantile(const td_hist *hist, double quantile);

// How many values are `value` or less, or above it by less than one bucket's
// width. At INT64_MAX all that the buckets hold. Any thread.
uint64_t td_hist_count_to(const td_hist *hist, int64_t value);

uint64_t td_hist_count(const td_hist *hist);
uint64_t td_hist_sum(const td_hist *hist);
int64_t td_hist_min(const td_hist *hist); // 0 when empty
int64_t td_hist_max(const td_hist *hist); // 0 when empty
double td_hist_mean(const td_hist *hist); // 0 when empty

#endif
