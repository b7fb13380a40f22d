// SPDX-License-Identifier: Apache-2.0
#include "dataset/read/compare.h"

#include <math.h>
#include <stdlib.h>

td_err td_dataset_compare_init(td_dataset_compare *compare, uint32_t channels,
                               uint32_t steps)
{
    *compare = (td_dataset_compare){
        .channels = channels,
        .steps = steps,
        .wraps = calloc(channels, sizeof *compare->wraps),
        .cells = calloc((size_t)channels * steps, sizeof *compare->cells),
    };
    if (compare->wraps && compare->cells) return TD_OK;
    td_dataset_compare_done(compare);
    return TD_ERR_NOMEM;
}

void td_dataset_compare_done(td_dataset_compare *compare)
{
    free(compare->wraps);
    free(compare->cells);
    *compare = (td_dataset_compare){0};
}

static double distance(bool wraps, float a, float b)
{
    double apart = (double)a - (double)b;
    if (!isfinite(apart)) return INFINITY;
    return fabs(wraps ? remainder(apart, 2 * M_PI) : apart);
}

void td_dataset_compare_add(td_dataset_compare *compare, uint32_t step,
                            const float *recorded, const float *predicted)
{
    td_dataset_compare_error *row =
        compare->cells + (size_t)step * compare->channels;
    for (uint32_t i = 0; i < compare->channels; i++) {
        double off = distance(compare->wraps[i], recorded[i], predicted[i]);
        row[i].count++;
        row[i].sum += off;
        row[i].square_sum += off * off;
        row[i].largest = fmax(row[i].largest, off);
    }
}

td_dataset_compare_error
td_dataset_compare_channel(const td_dataset_compare *compare, uint32_t channel,
                           uint32_t steps)
{
    td_dataset_compare_error all = {0};
    for (uint32_t i = 0; i < steps; i++) {
        const td_dataset_compare_error *one =
            &compare->cells[(size_t)i * compare->channels + channel];
        all.count += one->count;
        all.sum += one->sum;
        all.square_sum += one->square_sum;
        all.largest = fmax(all.largest, one->largest);
    }
    return all;
}

double td_dataset_compare_mean(td_dataset_compare_error error)
{
    return error.count ? error.sum / (double)error.count : 0;
}

double td_dataset_compare_rms(td_dataset_compare_error error)
{
    return error.count ? sqrt(error.square_sum / (double)error.count) : 0;
}
