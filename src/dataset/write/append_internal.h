// SPDX-License-Identifier: Apache-2.0
#ifndef TD_DATASET_WRITE_APPEND_INTERNAL_H
#define TD_DATASET_WRITE_APPEND_INTERNAL_H

// What dataset/write/append.c knows of a dataset that episodes are added to;
// for it and append/ alone.

#include "dataset/meta/episodes.h"
#include "dataset/meta/path.h"
#include "dataset/meta/tasks.h"
#include "dataset/write/append.h"

// A row of files of which the last one grows.
typedef struct td_dataset_append_files {
    td_dataset_place at; // of the file that grows, or of the first new one
    bool begun;          // the file is there, and ours
    uint64_t rows;       // in it
    uint64_t bytes;
} td_dataset_append_files;

struct td_dataset_append {
    td_dataset_staging *staging;
    const td_dataset_schema *schema;
    td_dataset_info *dataset;
    td_dataset_tasks *tasks;
    td_dataset_episodes *before; // as they were when opened; NULL: none
    td_dataset_table *first;     // file of them, likewise
    td_dataset_stats **totals;   // one a feature; NULL: none yet
    td_dataset_append_files data;
    td_dataset_append_files meta;
    // One a video, in info.json's order.
    td_dataset_append_files videos[TD_DATASET_MAX_CAMERAS];
};

// Where `files` go on: a file's name in the dataset, and its path in the
// present one. EXISTS where a new one would replace a file, LIMIT.
TD_NODISCARD td_err td_dataset_append_place(
    const td_dataset_append *append, const td_dataset_append_files *files,
    const char *pattern, const char *key, char ret_name[TD_DATASET_MAX_PATH],
    td_dataset_disk_path *ret_path, td_errinfo *info);

#endif
