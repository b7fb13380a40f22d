// SPDX-License-Identifier: Apache-2.0
#ifndef TD_DATASET_META_TASKS_H
#define TD_DATASET_META_TASKS_H

// The tasks of a dataset, in words: meta/tasks.parquet.

#include "base/err.h"

#include <stddef.h>

#define TD_DATASET_MAX_TASKS (1u << 20)

typedef struct td_dataset_tasks {
    size_t count;
    char **texts; // [task_index]; each, and the list, freed by free()
} td_dataset_tasks;

// Owned by the caller. NOTFOUND (no file), FORMAT, LIMIT, IO, NOMEM.
TD_NODISCARD td_err td_dataset_tasks_read(const char *folder,
                                          td_dataset_tasks **ret_tasks,
                                          td_errinfo *info);
// With pandas' index, into an empty fd. FULL, IO, NOMEM.
TD_NODISCARD td_err td_dataset_tasks_write(const td_dataset_tasks *tasks,
                                           int fd, td_errinfo *info);
void td_dataset_tasks_free(td_dataset_tasks *tasks);
TD_AUTO_FREE(td_dataset_tasks, td_dataset_tasks_free)

#endif
