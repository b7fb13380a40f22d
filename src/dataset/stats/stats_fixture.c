// SPDX-License-Identifier: Apache-2.0
#include "dataset/stats/stats_fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define CLOSE 1e-7 // relative; LeRobot's own are of single precision

double golden_share(size_t i)
{
    return (double)(uint32_t)(i * 2654435761u + 12345) / 4294967296.0;
}

size_t read_golden(double *ret_numbers, size_t room)
{
    FILE *in = fopen(TD_SOURCE_DIR "/tests/golden/stats.f64", "rbe");
    if (!in) {
        fail_msg("no tests/golden/stats.f64");
        return 0;
    }
    size_t count = fread(ret_numbers, sizeof(double), room, in);
    (void)fclose(in);
    return count;
}

void check_golden(const td_dataset_stats *stats, const double **golden)
{
    for (int i = 0; i < TD_DATASET_STAT_COUNT; i++)
        for (uint32_t k = 0; k < stats->channels; k++) {
            double ours = stats->values[(uint32_t)i * stats->channels + k];
            double theirs = *(*golden)++;
            if (!(fabs(ours - theirs) <= CLOSE * fmax(1, fabs(theirs))))
                fail_msg("%s of channel %u: %.9g, LeRobot has %.9g",
                         td_dataset_stat_name((td_dataset_stat)i), k, ours,
                         theirs);
        }
}
