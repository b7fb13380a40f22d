// SPDX-License-Identifier: Apache-2.0
#ifndef TD_DATASET_DISK_SYNC_FIXTURE_H
#define TD_DATASET_DISK_SYNC_FIXTURE_H

// For tests of what is on the disk, and not only written: libc's fsync() is
// here, and knows the file or folder that it was last called for.

#include "dataset/disk/disk_fixture.h"

#include <sys/syscall.h>
#include <unistd.h>

enum { SYNCED = 256 };
static ino_t synced[SYNCED]; // one after the other, again from the beginning
static size_t synced_count;

// NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): libc's
int fsync(int fd)
{
    struct stat found;
    if (fstat(fd, &found) == 0) synced[synced_count++ % SYNCED] = found.st_ino;
    return (int)syscall(SYS_fsync, fd);
}

// Since `before` were.
static inline bool is_synced(const char *path, size_t before)
{
    for (size_t i = before; i < synced_count; i++)
        if (synced[i % SYNCED] == inode_of(path)) return true;
    return false;
}

#endif
