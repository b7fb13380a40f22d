// SPDX-License-Identifier: Apache-2.0
#ifndef TD_DATASET_DISK_DISK_H
#define TD_DATASET_DISK_DISK_H

// Files and folders, one step at a time. Everything goes through libc, so that
// a test can fail the n-th step of a run from outside (tests/shim/).

#include "base/err.h"

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

typedef struct td_dataset_disk_path {
    char text[PATH_MAX];
} td_dataset_disk_path;

// "FOLDER/NAME". LIMIT when it is too long.
TD_NODISCARD td_err td_dataset_disk_join(const char *folder, const char *name,
                                         td_dataset_disk_path *ret_path,
                                         td_errinfo *info);

// FULL, DENIED, NOTFOUND, EXISTS or IO by errno, with "PATH: what the system
// says".
td_err td_dataset_disk_fail(const char *path, td_errinfo *info);

// All of it at `offset`, or an error. FULL, IO.
TD_NODISCARD td_err td_dataset_disk_write(int fd, td_slice bytes, off_t offset);

// Makes a folder and those above it; fine where they are there. The second:
// the names of those that it made are on the disk when it returns.
TD_NODISCARD td_err td_dataset_disk_make_folder(const char *path,
                                                td_errinfo *info);
TD_NODISCARD td_err td_dataset_disk_make_folder_synced(const char *path,
                                                       td_errinfo *info);

// Removes a file, or a folder with all that is in it; fine where nothing is.
// Never follows a link.
TD_NODISCARD td_err td_dataset_disk_remove(const char *path, td_errinfo *info);

// Makes `to` a folder with the content of `from`: folders are made, files are
// hard links, symbolic links are written again. UNSUPPORTED for anything else,
// and for a link to a folder: what is in it would be that of `from`, too.
TD_NODISCARD td_err td_dataset_disk_mirror(const char *from, const char *to,
                                           td_errinfo *info);

// To the disk: a file or folder; and a folder with every folder in it and every
// file that has no other name, which is what td_dataset_disk_mirror() has not
// made.
TD_NODISCARD td_err td_dataset_disk_sync(const char *path, td_errinfo *info);
TD_NODISCARD td_err td_dataset_disk_sync_tree(const char *path,
                                              td_errinfo *info);

// Whether there is anything of that name, and whether it is a folder with
// nothing in it.
bool td_dataset_disk_exists(const char *path);
bool td_dataset_disk_is_empty(const char *path);

// What a process without rights of its own may still write. IO.
TD_NODISCARD td_err td_dataset_disk_free_bytes(const char *path,
                                               uint64_t *ret_bytes,
                                               td_errinfo *info);

#endif
