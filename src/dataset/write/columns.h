// SPDX-License-Identifier: Apache-2.0
#ifndef TD_DATASET_WRITE_COLUMNS_H
#define TD_DATASET_WRITE_COLUMNS_H

// A unsaved as what a dataset keeps of it: the columns of its rows, and the
// statistics of each feature.

#include "dataset/journal/unsaved.h"
#include "dataset/meta/info.h"
#include "dataset/stats/stats.h"
#include "dataset/table/table.h"

// Where an episode stands in its dataset.
typedef struct td_dataset_columns_place {
    uint64_t number;       // of the episode
    uint64_t first;        // row of the dataset
    const uint32_t *tasks; // of the dataset, for each of the unsaved's
} td_dataset_columns_place;

typedef struct td_dataset_columns td_dataset_columns;

// Borrows the unsaved until freed. Blocks while the pictures are looked at.
// Owned by the caller. NOTFOUND (a feature that a unsaved does not have),
// NOMEM, IO.
TD_NODISCARD td_err td_dataset_columns_new(
    const td_dataset_info *dataset, const td_dataset_unsaved *unsaved,
    const td_dataset_columns_place *place, td_dataset_columns **ret_columns,
    td_errinfo *info);
void td_dataset_columns_free(td_dataset_columns *columns);
TD_AUTO_FREE(td_dataset_columns, td_dataset_columns_free)

// One for each feature that is no video, in their order. Borrowed.
const td_dataset_column *
td_dataset_columns_rows(const td_dataset_columns *columns);

// One for each feature. Borrowed.
const td_dataset_stats *const *
td_dataset_columns_stats(const td_dataset_columns *columns);

#endif
