// SPDX-License-Identifier: Apache-2.0
// Files and folders, one step at a time, for those who must know what is on the
// disk and what is only written.
//
// Each call is a few system calls and nothing else, without buffers of its own,
// so that a test can fail the n-th of them from outside. Errors are errno's, as
// FULL, DENIED, NOTFOUND, EXISTS or IO, with the path in words.
//
// Three of them walk a tree: remove, mirror and sync_tree share for_each(),
// which goes through one folder, or through two of the same shape in step. None
// follows a symbolic link. mirror() makes new folders and gives every file
// a second name; sync_tree() then skips the files with two names, since these
// were on the disk before, and syncs what is new: a commit of one episode into
// a large dataset costs what the episode costs.
//
// Making a folder and syncing its parent are two calls, because only some
// callers need the name itself to survive a power cut.
#include "dataset/disk/disk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

static inline void dir_close(DIR *dir)
{
    (void)closedir(dir);
}
TD_AUTO_FREE(DIR, dir_close)

td_err td_dataset_disk_join(const char *folder, const char *name,
                            td_dataset_disk_path *ret_path, td_errinfo *info)
{
    td_dataset_disk_path path;
    int size = snprintf(path.text, sizeof path.text, "%s/%s", folder, name);
    if (size < 0 || (size_t)size >= sizeof path.text)
        return td_fail(info, TD_ERR_LIMIT, "%s/%s: the path is too long",
                       folder, name);
    *ret_path = path;
    return TD_OK;
}

static td_err by_errno(int code)
{
    switch (code) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
        return TD_ERR_FULL;
    case EACCES:
    case EPERM:
    case EROFS:
        return TD_ERR_DENIED;
    case ENOENT:
        return TD_ERR_NOTFOUND;
    case EEXIST:
        return TD_ERR_EXISTS;
    default:
        return TD_ERR_IO;
    }
}

td_err td_dataset_disk_fail(const char *path, td_errinfo *info)
{
    int code = errno;
    return td_fail(info, by_errno(code), "%s: %s", path, strerror(code));
}

td_err td_dataset_disk_write(int fd, td_slice bytes, off_t offset)
{
    const uint8_t *at = bytes.data;
    size_t left = bytes.size;
    while (left > 0) {
        ssize_t size = pwrite(fd, at, left, offset);
        if (size < 0 && errno == EINTR) continue;
        if (size < 0) return by_errno(errno);
        if (size == 0) return TD_ERR_IO;
        at += size;
        left -= (size_t)size;
        offset += size;
    }
    return TD_OK;
}

static td_err sync_opened(const char *path, int flags, td_errinfo *info)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | flags);
    if (fd < 0) return td_dataset_disk_fail(path, info);
    td_err err = fsync(fd) == 0 ? TD_OK : td_dataset_disk_fail(path, info);
    (void)close(fd);
    return err;
}

// The folder that has the name `path`.
static td_err sync_above(const char *path, td_errinfo *info)
{
    td_dataset_disk_path text;
    (void)snprintf(text.text, sizeof text.text, "%s", path);
    return sync_opened(dirname(text.text), O_DIRECTORY, info);
}

static td_err make_one(const char *path, bool synced, td_errinfo *info)
{
    if (mkdir(path, 0777) == 0) return synced ? sync_above(path, info) : TD_OK;
    return errno == EEXIST ? TD_OK : td_dataset_disk_fail(path, info);
}

static td_err make_all(const char *path, bool synced, td_errinfo *info)
{
    td_dataset_disk_path made;
    TD_TRY(td_dataset_disk_join(path, "", &made, info));
    for (char *slash = strchr(made.text + 1, '/'); slash;
         slash = strchr(slash + 1, '/')) {
        *slash = 0;
        TD_TRY(make_one(made.text, synced, info));
        *slash = '/';
    }
    return TD_OK;
}

td_err td_dataset_disk_make_folder(const char *path, td_errinfo *info)
{
    return make_all(path, false, info);
}

td_err td_dataset_disk_make_folder_synced(const char *path, td_errinfo *info)
{
    return make_all(path, true, info);
}

bool td_dataset_disk_exists(const char *path)
{
    struct stat found;
    return lstat(path, &found) == 0;
}

static td_err stat_path(const char *path, struct stat *ret_found,
                        td_errinfo *info)
{
    if (lstat(path, ret_found) == 0) return TD_OK;
    return td_dataset_disk_fail(path, info);
}

// Calls `each` for everything in a folder. Two folders of one shape are walked
// in step: `to` is NULL where there is only one.
typedef td_err each_fn(const char *from, const char *to, td_errinfo *info);

static td_err for_each(const char *from, const char *to, each_fn *each,
                       td_errinfo *info)
{
    TD_AUTO(DIR) *dir = opendir(from);
    if (!dir) return td_dataset_disk_fail(from, info);
    for (struct dirent *at = readdir(dir); at; at = readdir(dir)) {
        if (strcmp(at->d_name, ".") == 0 || strcmp(at->d_name, "..") == 0)
            continue;
        td_dataset_disk_path one;
        td_dataset_disk_path other;
        TD_TRY(td_dataset_disk_join(from, at->d_name, &one, info));
        if (to) TD_TRY(td_dataset_disk_join(to, at->d_name, &other, info));
        TD_TRY(each(one.text, to ? other.text : NULL, info));
    }
    return TD_OK;
}

static td_err refuse_any(const char *path, const char *to, td_errinfo *info)
{
    (void)path, (void)to, (void)info;
    return TD_ERR_EXISTS;
}

bool td_dataset_disk_is_empty(const char *path)
{
    return for_each(path, NULL, refuse_any, NULL) == TD_OK;
}

// NOLINTNEXTLINE(misc-no-recursion): as deep as the folders of a dataset
static td_err remove_one(const char *path, const char *to, td_errinfo *info)
{
    (void)to;
    struct stat found;
    TD_TRY(stat_path(path, &found, info));
    if (S_ISDIR(found.st_mode)) {
        TD_TRY(for_each(path, NULL, remove_one, info));
        return rmdir(path) == 0 ? TD_OK : td_dataset_disk_fail(path, info);
    }
    return unlink(path) == 0 ? TD_OK : td_dataset_disk_fail(path, info);
}

td_err td_dataset_disk_remove(const char *path, td_errinfo *info)
{
    if (!td_dataset_disk_exists(path)) return TD_OK;
    return remove_one(path, NULL, info);
}

static td_err mirror_link(const char *from, const char *to, td_errinfo *info)
{
    struct stat found;
    td_dataset_disk_path target;
    if (stat(from, &found) == 0 && S_ISDIR(found.st_mode))
        return td_fail(info, TD_ERR_UNSUPPORTED,
                       "%s: a link to a folder, which would be written into "
                       "while it is in use",
                       from);
    ssize_t size = readlink(from, target.text, sizeof target.text - 1);
    if (size < 0) return td_dataset_disk_fail(from, info);
    target.text[size] = 0;
    return symlink(target.text, to) == 0 ? TD_OK
                                         : td_dataset_disk_fail(to, info);
}

static each_fn mirror_one;

// NOLINTNEXTLINE(misc-no-recursion): as deep as the folders of a dataset
static td_err mirror_folder(const char *from, const char *to, mode_t mode,
                            td_errinfo *info)
{
    if (mkdir(to, 0777) != 0) return td_dataset_disk_fail(to, info);
    TD_TRY(for_each(from, to, mirror_one, info));
    // Who may do what there is more than mkdir() leaves of it.
    return chmod(to, mode) == 0 ? TD_OK : td_dataset_disk_fail(to, info);
}

// NOLINTNEXTLINE(misc-no-recursion): as deep as the folders of a dataset
static td_err mirror_one(const char *from, const char *to, td_errinfo *info)
{
    struct stat found;
    TD_TRY(stat_path(from, &found, info));
    if (S_ISDIR(found.st_mode))
        return mirror_folder(from, to, found.st_mode & 07777, info);
    if (S_ISLNK(found.st_mode)) return mirror_link(from, to, info);
    if (!S_ISREG(found.st_mode))
        return td_fail(info, TD_ERR_UNSUPPORTED,
                       "%s: neither a file nor a folder", from);
    return link(from, to) == 0 ? TD_OK : td_dataset_disk_fail(to, info);
}

td_err td_dataset_disk_mirror(const char *from, const char *to,
                              td_errinfo *info)
{
    return mirror_one(from, to, info);
}

td_err td_dataset_disk_sync(const char *path, td_errinfo *info)
{
    return sync_opened(path, O_NOFOLLOW, info);
}

// NOLINTNEXTLINE(misc-no-recursion): as deep as the folders of a dataset
static td_err sync_one(const char *path, const char *to, td_errinfo *info)
{
    (void)to;
    struct stat found;
    TD_TRY(stat_path(path, &found, info));
    if (S_ISDIR(found.st_mode))
        TD_TRY(for_each(path, NULL, sync_one, info));
    else if (!S_ISREG(found.st_mode) || found.st_nlink > 1)
        return TD_OK;
    return td_dataset_disk_sync(path, info);
}

td_err td_dataset_disk_sync_tree(const char *path, td_errinfo *info)
{
    return sync_one(path, NULL, info);
}

td_err td_dataset_disk_free_bytes(const char *path, uint64_t *ret_bytes,
                                  td_errinfo *info)
{
    struct statvfs disk;
    if (statvfs(path, &disk) != 0) return td_dataset_disk_fail(path, info);
    *ret_bytes = (uint64_t)disk.f_bavail * disk.f_frsize;
    return TD_OK;
}
