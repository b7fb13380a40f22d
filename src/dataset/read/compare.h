// SPDX-License-Identifier: Apache-2.0
#ifndef TD_DATASET_READ_COMPARE_H
#define TD_DATASET_READ_COMPARE_H

// How far a policy's chunks are from what was recorded: for each channel, and
// for each step ahead of the observation that the chunk came from. Pure.

#include "base/err.h"

#include <stdbool.h>

// Of the absolute differences.
typedef struct td_dataset_compare_error {
    uint64_t count;
    double sum, square_sum, largest;
} td_dataset_compare_error;

typedef struct td_dataset_compare {
    uint32_t channels, steps;
    bool *wraps;                     // an angle, in radians
    td_dataset_compare_error *cells; // [step x channels]
} td_dataset_compare;

// Free with td_dataset_compare_done(). NOMEM.
TD_NODISCARD td_err td_dataset_compare_init(td_dataset_compare *compare,
                                            uint32_t channels, uint32_t steps);
void td_dataset_compare_done(td_dataset_compare *compare);

// One row of a chunk, `step` rows after its observation, beside the recorded
// one. A value that is not finite on either side counts as infinitely far.
void td_dataset_compare_add(td_dataset_compare *compare, uint32_t step,
                            const float *recorded, const float *predicted);

// Of a channel, of the first `steps` steps.
td_dataset_compare_error
td_dataset_compare_channel(const td_dataset_compare *compare, uint32_t channel,
                           uint32_t steps);

// 0 where there is none.
double td_dataset_compare_mean(td_dataset_compare_error error);
double td_dataset_compare_rms(td_dataset_compare_error error);

#endif
