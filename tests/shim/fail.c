// SPDX-License-Identifier: Apache-2.0
// Preloaded into a program, fails the n-th step that changes the disk, among
// those below one folder: a write, sync, truncation, rename, link, and the
// making and removing of names.
//
//   FAIL_UNDER   the folder; steps elsewhere are neither counted nor failed
//   FAIL_AT      n, from 1; 0: none
//   FAIL_HOW     "EIO" or "ENOSPC": that step fails, having done nothing;
//                "torn": it fails, and if it is a write half of it is done;
//                "full": as ENOSPC, and so does every later write;
//                "kill": the process dies instead
//   FAIL_FREE    so many bytes are free on its disk
//   FAIL_COUNT   a file that gets the number of steps, when the
//                program ends by itself

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <unistd.h>

typedef enum kind { WRITE, SYNC, NAME } kind;

static atomic_long steps;
static long fail_at;
static const char *under;
static const char *how = "EIO";

// NOLINTBEGIN(readability-inconsistent-declaration-parameter-name): libc's own
// names begin with underscores

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

__attribute__((constructor)) static void begin(void)
{
    const char *at = getenv("FAIL_AT");
    if (getenv("FAIL_HOW")) how = getenv("FAIL_HOW");
    under = getenv("FAIL_UNDER");
    fail_at = at ? strtol(at, NULL, 10) : 0;
}

__attribute__((destructor)) static void end(void)
{
    const char *path = getenv("FAIL_COUNT");
    FILE *file = path ? fopen(path, "we") : NULL;
    if (!file) return;
    (void)fprintf(file, "%ld\n", atomic_load(&steps));
    (void)fclose(file);
}

static bool is_under(const char *path)
{
    char full[PATH_MAX];
    if (!under) return false;
    if (path[0] != '/') {
        char here[PATH_MAX / 2];
        if (!getcwd(here, sizeof here)) return false;
        (void)snprintf(full, sizeof full, "%s/%s", here, path);
        path = full;
    }
    return strncmp(path, under, strlen(under)) == 0;
}

static bool is_file_under(int fd)
{
    char link[64];
    char path[PATH_MAX] = "";
    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    return readlink(link, path, sizeof path - 1) > 0 && is_under(path);
}

// Whether this step fails; errno says how.
static bool fails(kind of)
{
    long step = atomic_fetch_add(&steps, 1) + 1;
    bool full = strcmp(how, "full") == 0;
    bool now = step == fail_at ||
               (full && of == WRITE && fail_at > 0 && step > fail_at);
    if (!now) return false;
    if (strcmp(how, "kill") == 0) (void)kill(getpid(), SIGKILL);
    errno = full || strcmp(how, "ENOSPC") == 0 ? ENOSPC : EIO;
    return true;
}

static bool fails_at(int fd, kind of)
{
    return is_file_under(fd) && fails(of);
}

static bool fails_named(const char *path)
{
    return is_under(path) && fails(NAME);
}

static size_t half(size_t size)
{
    return strcmp(how, "torn") == 0 ? size / 2 : 0;
}

ssize_t write(int fd, const void *data, size_t size)
{
    if (!fails_at(fd, WRITE)) return REAL(write)(fd, data, size);
    int code = errno;
    if (half(size) > 0) (void)!REAL(write)(fd, data, half(size));
    errno = code;
    return -1;
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t offset)
{
    if (!fails_at(fd, WRITE)) return REAL(pwrite)(fd, data, size, offset);
    int code = errno;
    if (half(size) > 0) (void)!REAL(pwrite)(fd, data, half(size), offset);
    errno = code;
    return -1;
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t offset)
{
    return pwrite(fd, data, size, offset);
}

ssize_t writev(int fd, const struct iovec *parts, int count)
{
    return fails_at(fd, WRITE) ? -1 : REAL(writev)(fd, parts, count);
}

int fsync(int fd)
{
    return fails_at(fd, SYNC) ? -1 : REAL(fsync)(fd);
}

int fdatasync(int fd)
{
    return fails_at(fd, SYNC) ? -1 : REAL(fdatasync)(fd);
}

int ftruncate(int fd, off_t size)
{
    return fails_at(fd, WRITE) ? -1 : REAL(ftruncate)(fd, size);
}

int ftruncate64(int fd, off64_t size)
{
    return ftruncate(fd, size);
}

int link(const char *from, const char *to)
{
    return fails_named(to) ? -1 : REAL(link)(from, to);
}

int symlink(const char *target, const char *path)
{
    return fails_named(path) ? -1 : REAL(symlink)(target, path);
}

int rename(const char *from, const char *to)
{
    return fails_named(to) ? -1 : REAL(rename)(from, to);
}

int renameat2(int from_fd, const char *from, int to_fd, const char *to,
              unsigned flags)
{
    return fails_named(to) ? -1
                           : REAL(renameat2)(from_fd, from, to_fd, to, flags);
}

int mkdir(const char *path, mode_t mode)
{
    return fails_named(path) ? -1 : REAL(mkdir)(path, mode);
}

int rmdir(const char *path)
{
    return fails_named(path) ? -1 : REAL(rmdir)(path);
}

int unlink(const char *path)
{
    return fails_named(path) ? -1 : REAL(unlink)(path);
}

int open(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    mode_t mode = flags & O_CREAT ? (mode_t)va_arg(args, int) : 0;
    va_end(args);
    if (flags & O_CREAT && fails_named(path)) return -1;
    return REAL(open)(path, flags, mode);
}

int open64(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    mode_t mode = flags & O_CREAT ? (mode_t)va_arg(args, int) : 0;
    va_end(args);
    return open(path, flags, mode);
}

int statvfs(const char *path, struct statvfs *disk)
{
    const char *bytes = getenv("FAIL_FREE");
    int result = REAL(statvfs)(path, disk);
    if (result == 0 && bytes && is_under(path)) {
        disk->f_frsize = 1;
        disk->f_bavail = strtoul(bytes, NULL, 10);
    }
    return result;
}

// NOLINTEND(readability-inconsistent-declaration-parameter-name)
