// SPDX-License-Identifier: Apache-2.0
#ifndef TD_DATASET_META_STATS_FILE_H
#define TD_DATASET_META_STATS_FILE_H

// meta/stats.json: the statistics of a whole dataset, a feature each.
//
// Quantiles may be missing, as older LeRobots wrote none: their values are then
// NaN here, and so is what they are merged with; they are not written.

#include "dataset/meta/info.h"
#include "dataset/stats/stats.h"

#define TD_DATASET_STATS_FILE_MAX_BYTES (64u << 20)

// Reads FOLDER/meta/stats.json into one entry a feature, in the dataset's
// order; NULL stays where the file has none. The entries are owned by the
// caller, also those that were read before an error. NOTFOUND, IO, LIMIT,
// FORMAT, MISMATCH (another number of channels than the feature has), NOMEM.
TD_NODISCARD td_err td_dataset_stats_file_read(const char *folder,
                                               const td_dataset_info *dataset,
                                               td_dataset_stats **ret_stats,
                                               td_errinfo *info);

// The same of bytes.
TD_NODISCARD td_err td_dataset_stats_file_parse(td_slice bytes,
                                                const td_dataset_info *dataset,
                                                td_dataset_stats **ret_stats,
                                                td_errinfo *info);

// Writes the text of stats.json into an empty file, as LeRobot lays it out;
// neither synced nor closed. FULL, IO, NOMEM.
TD_NODISCARD td_err td_dataset_stats_file_write(
    const td_dataset_info *dataset, const td_dataset_stats *const *stats,
    int fd, td_errinfo *info);

#endif
