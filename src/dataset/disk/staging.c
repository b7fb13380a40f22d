// SPDX-License-Identifier: Apache-2.0
// The staging folder beside a dataset, PARENT/.NAME.recording/.
//
// Opening it finds its paths, takes the lock and tries out, on the folders
// themselves, what a commit will need: that two folders can be swapped and that
// a file can have a second name. A file system that cannot do this is refused
// before anything is recorded, not at the end of the first episode.
//
// A commit has three steps. staging_begin() makes next/ a mirror of the
// dataset, every file a hard link; staging_file() removes the link of each file
// that is to be rewritten, so that the present dataset is never written
// into; staging_commit() syncs next/ and swaps it with the dataset by one
// rename. The old dataset is then what next/ holds, and whoever committed
// removes it.
//
// The lock is flock() on the file `lock`, which names the process that holds
// it. Since whoever leaves removes the file, a process that got the lock looks
// whether the file still has its name, and else tries again. The kernel lets go
// of the lock when its process dies, however that happens.
//
// Closing removes the folder if neither a journal nor an unfinished episode is
// left in it; a folder that stays is found by the next recorder and by repair.
#include "dataset/disk/staging.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_UNFINISHED 999
#define LOCK_ATTEMPTS 50
#define LOCK_PAUSE_US 2000
#define ADVICE "record on ext4, xfs, btrfs, f2fs or tmpfs"

static td_err copy_path(const char *text, td_dataset_disk_path *ret_path,
                        td_errinfo *info)
{
    if (strlen(text) >= sizeof ret_path->text)
        return td_fail(info, TD_ERR_LIMIT, "%s: the path is too long", text);
    strcpy(ret_path->text, text); // NOLINT(*.strcpy): it fits
    return TD_OK;
}

static td_err real_path(const char *path, td_dataset_disk_path *ret_path,
                        td_errinfo *info)
{
    char *found = realpath(path, NULL);
    if (!found) return td_dataset_disk_fail(path, info);
    td_err err = copy_path(found, ret_path, info);
    free(found);
    return err;
}

// "PARENT" and "NAME" of a path that need not be there.
static td_err split(const char *path, td_dataset_disk_path *ret_parent,
                    td_dataset_disk_path *ret_name, td_errinfo *info)
{
    td_dataset_disk_path text;
    TD_TRY(copy_path(path, &text, info));
    TD_TRY(copy_path(dirname(text.text), ret_parent, info));
    TD_TRY(copy_path(path, &text, info));
    TD_TRY(copy_path(basename(text.text), ret_name, info));
    if (strcmp(ret_name->text, ".") == 0 || strcmp(ret_name->text, "..") == 0 ||
        strcmp(ret_name->text, "/") == 0)
        return td_fail(info, TD_ERR_INVALID, "%s: not a name for a folder",
                       path);
    return TD_OK;
}

// Fills in the paths. `make`: the parent is made where it is absent.
static td_err find_paths(const char *folder, bool make,
                         td_dataset_staging *staging, td_errinfo *info)
{
    td_dataset_disk_path path;
    td_dataset_disk_path name;
    td_dataset_disk_path hidden;
    if (real_path(folder, &path, NULL) != TD_OK)
        TD_TRY(copy_path(folder, &path, info));
    TD_TRY(split(path.text, &staging->parent, &name, info));
    if (make)
        TD_TRY(td_dataset_disk_make_folder_synced(staging->parent.text, info));
    TD_TRY(real_path(staging->parent.text, &path, info));
    staging->parent = path;
    TD_TRY(td_dataset_disk_join(path.text, name.text, &staging->folder, info));
    int size =
        snprintf(hidden.text, sizeof hidden.text, ".%s.recording", name.text);
    if (size < 0 || (size_t)size > NAME_MAX)
        return td_fail(info, TD_ERR_LIMIT, "%s: the name is too long", folder);
    TD_TRY(td_dataset_disk_join(path.text, hidden.text, &staging->area, info));
    TD_TRY(
        td_dataset_disk_join(staging->area.text, "next", &staging->next, info));
    return td_dataset_disk_join(staging->area.text, "episode",
                                &staging->episode, info);
}

static pid_t read_pid(int fd)
{
    char line[32] = "";
    if (pread(fd, line, sizeof line - 1, 0) <= 0) return 0;
    return (pid_t)strtol(line, NULL, 10);
}

// Whether the file that was locked still has its name: the one who had it
// before removes it when he leaves.
static bool is_still(int fd, const char *path)
{
    struct stat one;
    struct stat other;
    return fstat(fd, &one) == 0 && stat(path, &other) == 0 &&
           one.st_ino == other.st_ino && one.st_dev == other.st_dev;
}

// TIMEOUT: somebody left in this moment.
static td_err try_lock(td_dataset_staging *staging, const char *path,
                       td_errinfo *info)
{
    TD_TRY(td_dataset_disk_make_folder_synced(staging->area.text, info));
    staging->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (staging->lock_fd < 0)
        return errno == ENOENT ? TD_ERR_TIMEOUT
                               : td_dataset_disk_fail(path, info);
    if (flock(staging->lock_fd, LOCK_EX | LOCK_NB) == 0) {
        if (is_still(staging->lock_fd, path)) return TD_OK;
        (void)close(staging->lock_fd);
        staging->lock_fd = -1;
        return TD_ERR_TIMEOUT;
    }
    if (errno != EWOULDBLOCK) return td_dataset_disk_fail(path, info);
    pid_t pid = read_pid(staging->lock_fd);
    (void)close(staging->lock_fd);
    staging->lock_fd = -1;
    return td_fail(info, TD_ERR_BUSY, "%s: process %ld is recording there",
                   staging->folder.text, (long)pid);
}

// More than once: whoever asks who records holds it for a moment, too.
static td_err take_lock(td_dataset_staging *staging, td_errinfo *info)
{
    char line[32];
    td_dataset_disk_path path;
    TD_TRY(td_dataset_disk_join(staging->area.text, "lock", &path, info));
    td_err err = try_lock(staging, path.text, info);
    for (int i = 0;
         (err == TD_ERR_TIMEOUT || err == TD_ERR_BUSY) && i < LOCK_ATTEMPTS;
         i++) {
        (void)usleep(LOCK_PAUSE_US);
        err = try_lock(staging, path.text, info);
    }
    if (err != TD_OK) return err;
    int size = snprintf(line, sizeof line, "%ld\n", (long)getpid());
    if (ftruncate(staging->lock_fd, 0) != 0)
        return td_dataset_disk_fail(path.text, info);
    err = td_dataset_disk_write(staging->lock_fd,
                                (td_slice){line, (size_t)size}, 0);
    return err == TD_OK ? TD_OK : td_dataset_disk_fail(path.text, info);
}

// A file system that cannot, or one that can and fails.
static td_err refuse(const td_dataset_staging *staging, const char *what,
                     td_errinfo *info)
{
    bool cannot = errno == EPERM || errno == EINVAL || errno == ENOSYS ||
                  errno == EOPNOTSUPP;
    if (!cannot) return td_dataset_disk_fail(staging->parent.text, info);
    return td_fail(info, TD_ERR_UNSUPPORTED, "%s: %s (%s); %s",
                   staging->parent.text, what, strerror(errno), ADVICE);
}

// Two folders are swapped, and a file gets a second name.
static td_err try_out(const td_dataset_staging *staging, const char *one,
                      const char *other, td_errinfo *info)
{
    td_dataset_disk_path file;
    td_dataset_disk_path twin;
    TD_TRY(td_dataset_disk_make_folder(one, info));
    TD_TRY(td_dataset_disk_make_folder(other, info));
    TD_TRY(td_dataset_disk_join(staging->area.text, "lock", &file, info));
    TD_TRY(td_dataset_disk_join(one, "lock", &twin, info));
    if (link(file.text, twin.text) != 0)
        return refuse(staging, "files cannot have two names there", info);
    if (renameat2(AT_FDCWD, one, AT_FDCWD, other, RENAME_EXCHANGE) != 0)
        return refuse(staging, "folders cannot be swapped there", info);
    return TD_OK;
}

// A commit will give every file of the dataset a second name for a moment,
// which the kernel refuses for files that are somebody else's.
static td_err try_mirror(const td_dataset_staging *staging, td_errinfo *info)
{
    td_dataset_disk_path file;
    TD_TRY(td_dataset_disk_join(staging->folder.text, "meta/info.json", &file,
                                info));
    if (!td_dataset_disk_exists(file.text)) return TD_OK; // no dataset
    TD_TRY(td_dataset_disk_remove(staging->next.text, info));
    return td_dataset_disk_mirror(staging->folder.text, staging->next.text,
                                  info);
}

static td_err check_mount(const td_dataset_staging *staging, td_errinfo *info)
{
    struct stat folder;
    struct stat area;
    if (stat(staging->folder.text, &folder) != 0) return TD_OK;
    if (!S_ISDIR(folder.st_mode))
        return td_fail(info, TD_ERR_INVALID, "%s: not a folder",
                       staging->folder.text);
    if (stat(staging->area.text, &area) != 0)
        return td_dataset_disk_fail(staging->area.text, info);
    if (folder.st_dev == area.st_dev) return TD_OK;
    return td_fail(info, TD_ERR_UNSUPPORTED,
                   "%s: a mount of its own, which cannot be swapped; record "
                   "into a folder inside it",
                   staging->folder.text);
}

static td_err try_file_system(const td_dataset_staging *staging,
                              td_errinfo *info)
{
    td_dataset_disk_path one;
    td_dataset_disk_path other;
    TD_TRY(check_mount(staging, info));
    TD_TRY(td_dataset_disk_join(staging->next.text, "one", &one, info));
    TD_TRY(td_dataset_disk_join(staging->next.text, "other", &other, info));
    TD_TRY(try_out(staging, one.text, other.text, info));
    TD_TRY(try_mirror(staging, info));
    return td_dataset_disk_remove(staging->next.text, info);
}

td_err td_dataset_staging_open(const char *folder,
                               td_dataset_staging **ret_staging,
                               td_errinfo *info)
{
    TD_AUTO(td_dataset_staging) *staging = calloc(1, sizeof *staging);
    if (!staging) return TD_ERR_NOMEM;
    staging->lock_fd = -1;
    TD_TRY(find_paths(folder, true, staging, info));
    TD_TRY(take_lock(staging, info));
    staging->owned = true;
    TD_TRY(td_dataset_disk_remove(staging->next.text, info));
    TD_TRY(try_file_system(staging, info));
    *ret_staging = TD_TAKE(staging);
    return TD_OK;
}

static bool is_clear(const td_dataset_staging *staging)
{
    return !td_dataset_disk_exists(staging->episode.text) &&
           td_dataset_staging_unfinished(staging->folder.text) == 0;
}

void td_dataset_staging_close(td_dataset_staging *staging)
{
    td_dataset_disk_path lock;
    if (staging->owned && is_clear(staging) &&
        td_dataset_disk_remove(staging->next.text, NULL) == TD_OK &&
        td_dataset_disk_join(staging->area.text, "lock", &lock, NULL) ==
            TD_OK) {
        (void)unlink(lock.text);
        (void)rmdir(staging->area.text);
    }
    // A child process may have the same lock, and go on.
    if (staging->owned) (void)flock(staging->lock_fd, LOCK_UN);
    if (staging->lock_fd >= 0) (void)close(staging->lock_fd);
    free(staging);
}

td_err td_dataset_staging_begin(td_dataset_staging *staging, td_errinfo *info)
{
    TD_TRY(td_dataset_disk_remove(staging->next.text, info));
    if (td_dataset_disk_exists(staging->folder.text))
        return td_dataset_disk_mirror(staging->folder.text, staging->next.text,
                                      info);
    return td_dataset_disk_make_folder(staging->next.text, info);
}

td_err td_dataset_staging_file(td_dataset_staging *staging, const char *name,
                               td_dataset_disk_path *ret_path, td_errinfo *info)
{
    td_dataset_disk_path path;
    TD_TRY(td_dataset_disk_join(staging->next.text, name, &path, info));
    td_dataset_disk_path folder = path;
    TD_TRY(td_dataset_disk_make_folder(dirname(folder.text), info));
    // Never written over: the present dataset has the same file.
    TD_TRY(td_dataset_disk_remove(path.text, info));
    *ret_path = path;
    return TD_OK;
}

static td_err swap(const td_dataset_staging *staging, td_errinfo *info)
{
    unsigned how = td_dataset_disk_exists(staging->folder.text)
                       ? RENAME_EXCHANGE
                       : RENAME_NOREPLACE;
    if (renameat2(AT_FDCWD, staging->next.text, AT_FDCWD, staging->folder.text,
                  how) == 0)
        return TD_OK;
    return td_dataset_disk_fail(staging->folder.text, info);
}

td_err td_dataset_staging_commit(td_dataset_staging *staging, td_errinfo *info)
{
    TD_TRY(td_dataset_disk_sync_tree(staging->next.text, info));
    TD_TRY(swap(staging, info));
    TD_TRY(td_dataset_disk_sync(staging->parent.text, info));
    return td_dataset_disk_sync(staging->area.text, info);
}

static td_err aside_path(const td_dataset_staging *staging, uint32_t number,
                         td_dataset_disk_path *ret_path, td_errinfo *info)
{
    char name[32];
    (void)snprintf(name, sizeof name, "unfinished-%03u", number);
    return td_dataset_disk_join(staging->area.text, name, ret_path, info);
}

// After all that are there, so that the oldest is the first.
td_err td_dataset_staging_put_aside(td_dataset_staging *staging,
                                    td_errinfo *info)
{
    td_dataset_disk_path aside;
    uint32_t next = 0;
    for (uint32_t i = 0; i <= MAX_UNFINISHED; i++) {
        TD_TRY(aside_path(staging, i, &aside, info));
        if (td_dataset_disk_exists(aside.text)) next = i + 1;
    }
    if (next > MAX_UNFINISHED)
        return td_fail(info, TD_ERR_LIMIT,
                       "%s: too many unfinished episodes; run tendon dataset "
                       "repair",
                       staging->area.text);
    TD_TRY(aside_path(staging, next, &aside, info));
    if (rename(staging->episode.text, aside.text) != 0)
        return td_dataset_disk_fail(aside.text, info);
    return td_dataset_disk_sync(staging->area.text, info);
}

td_err td_dataset_staging_take_back(td_dataset_staging *staging,
                                    td_errinfo *info)
{
    td_dataset_disk_path aside;
    for (uint32_t i = 0; i <= MAX_UNFINISHED; i++) {
        TD_TRY(aside_path(staging, i, &aside, info));
        if (!td_dataset_disk_exists(aside.text)) continue;
        if (rename(aside.text, staging->episode.text) != 0)
            return td_dataset_disk_fail(staging->episode.text, info);
        return td_dataset_disk_sync(staging->area.text, info);
    }
    return TD_ERR_EMPTY;
}

bool td_dataset_staging_exists(const char *folder)
{
    td_dataset_staging staging;
    return find_paths(folder, false, &staging, NULL) == TD_OK &&
           td_dataset_disk_exists(staging.area.text);
}

uint32_t td_dataset_staging_unfinished(const char *folder)
{
    uint32_t count = 0;
    td_dataset_disk_path aside;
    td_dataset_staging staging;
    if (find_paths(folder, false, &staging, NULL) != TD_OK ||
        !td_dataset_disk_exists(staging.area.text))
        return 0;
    for (uint32_t i = 0; i <= MAX_UNFINISHED; i++)
        count += aside_path(&staging, i, &aside, NULL) == TD_OK &&
                 td_dataset_disk_exists(aside.text);
    if (td_dataset_disk_exists(staging.episode.text) &&
        td_dataset_staging_recorder(folder) == 0)
        count++;
    return count;
}

pid_t td_dataset_staging_recorder(const char *folder)
{
    td_dataset_disk_path path;
    td_dataset_staging staging;
    if (find_paths(folder, false, &staging, NULL) != TD_OK ||
        td_dataset_disk_join(staging.area.text, "lock", &path, NULL) != TD_OK)
        return 0;
    int fd = open(path.text, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return 0;
    bool held = flock(fd, LOCK_SH | LOCK_NB) != 0;
    pid_t pid = held ? read_pid(fd) : 0;
    (void)close(fd);
    return pid;
}
