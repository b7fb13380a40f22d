// SPDX-License-Identifier: Apache-2.0
#ifndef TD_DATASET_DISK_COMMIT_H
#define TD_DATASET_DISK_COMMIT_H

// One instant in which a dataset becomes the next one.
//
// LeRobot takes every data file that it finds, so files and what is said about
// them must change together. The next dataset is built beside the present one:
// what stays is the same file under a second name, what changes is a new file.
// When all of it is on the disk the two folders are swapped by one rename, so
// that the folder is one whole dataset or the other whenever anybody looks.

#include "dataset/disk/staging.h"

// Begins `staging->next` as a copy of the present dataset, or empty where there
// is none. FULL, IO.
TD_NODISCARD td_err td_dataset_commit_begin(td_dataset_staging *staging,
                                            td_errinfo *info);

// Where to write the file `name` ("meta/info.json") of the next dataset: its
// folders are there, it is not. FULL, IO.
TD_NODISCARD td_err td_dataset_commit_file(td_dataset_staging *staging,
                                           const char *name,
                                           td_dataset_disk_path *ret_path,
                                           td_errinfo *info);

// Makes the next dataset the present one; it is on the disk when this returns
// TD_OK. After an error it is one or the other, each whole. FULL, IO.
TD_NODISCARD td_err td_dataset_commit_swap(td_dataset_staging *staging,
                                           td_errinfo *info);

#endif
