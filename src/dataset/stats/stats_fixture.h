// SPDX-License-Identifier: Apache-2.0
#ifndef TD_DATASET_STATS_STATS_FIXTURE_H
#define TD_DATASET_STATS_STATS_FIXTURE_H

// The numbers of tests/golden/make_stats.py: what goes in, and what LeRobot
// made of it.

#include "dataset/stats/stats.h"

// Numbers in [0, 1).
double golden_share(size_t i);

#define GOLDEN_ROOM 1024

// The whole file: how many numbers there are.
size_t read_golden(double *ret_numbers, size_t room);

// Holds all nine statistics of all channels against the next ones of the file.
void check_golden(const td_dataset_stats *stats, const double **golden);

#endif
