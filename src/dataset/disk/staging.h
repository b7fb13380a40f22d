// SPDX-License-Identifier: Apache-2.0
#ifndef TD_DATASET_DISK_STAGING_H
#define TD_DATASET_DISK_STAGING_H

// The place beside a dataset where what is not finished lives,
// PARENT/.NAME.recording/, and the lock that lets one process change the
// dataset:
//
//   lock          held (flock) by that process, whose number is in it
//   episode/      the journal of the episode under way
//   unfinished-N/ journals whose recorder died
//   next/         the dataset as it shall be (see td_dataset_staging_begin);
//   rubbish
//                 whenever nobody is at work
//
// It goes when nothing is left in it.

#include "dataset/disk/disk.h"

typedef struct td_dataset_staging {
    td_dataset_disk_path folder; // the dataset's, absolute and without links
    td_dataset_disk_path parent;
    td_dataset_disk_path area;
    td_dataset_disk_path episode;
    td_dataset_disk_path next;
    int lock_fd;                          // -1: none
    bool owned;                           // the lock is ours
    struct td_dataset_progress *progress; // of what is saved; NULL: nobody asks
} td_dataset_staging;

// Takes the lock, sweeps, and tries out what a commit needs. The folder may be
// absent; its parent is made. Owned by the caller. BUSY (names the process that
// has it), UNSUPPORTED (a file system or a mount that cannot swap folders, with
// what to do), DENIED, FULL, IO.
TD_NODISCARD td_err td_dataset_staging_open(const char *folder,
                                            td_dataset_staging **ret_staging,
                                            td_errinfo *info);
void td_dataset_staging_close(td_dataset_staging *staging);
TD_AUTO_FREE(td_dataset_staging, td_dataset_staging_close)

// Puts the journal aside as unfinished. LIMIT, IO.
TD_NODISCARD td_err td_dataset_staging_put_aside(td_dataset_staging *staging,
                                                 td_errinfo *info);

// Takes the oldest unfinished journal back as `episode/`. EMPTY (there is
// none), IO.
TD_NODISCARD td_err td_dataset_staging_take_back(td_dataset_staging *staging,
                                                 td_errinfo *info);

// One instant in which a dataset becomes the next one: LeRobot takes every data
// file that it finds, so files and what is said about them must change
// together. The next dataset is built in next/: what stays is the same file
// under a second name, what changes is a new file. When all of it is on the
// disk the two folders are swapped by one rename, so that the folder is one
// whole dataset or the other whenever anybody looks.
//
// Begins `staging->next` as a copy of the present dataset, or empty where there
// is none. FULL, IO.
TD_NODISCARD td_err td_dataset_staging_begin(td_dataset_staging *staging,
                                             td_errinfo *info);

// Where to write the file `name` ("meta/info.json") of the next dataset: its
// folders are there, it is not. FULL, IO.
TD_NODISCARD td_err td_dataset_staging_file(td_dataset_staging *staging,
                                            const char *name,
                                            td_dataset_disk_path *ret_path,
                                            td_errinfo *info);

// Makes the next dataset the present one; it is on the disk when this returns
// TD_OK. After an error it is one or the other, each whole. FULL, IO.
TD_NODISCARD td_err td_dataset_staging_commit(td_dataset_staging *staging,
                                              td_errinfo *info);

// Whether anything is beside the dataset in `folder`.
bool td_dataset_staging_exists(const char *folder);

// How many episodes of the dataset in `folder` nobody is finishing, and the
// process that records there now (0: none). Takes nothing, makes nothing.
uint32_t td_dataset_staging_unfinished(const char *folder);
pid_t td_dataset_staging_recorder(const char *folder);

#endif
