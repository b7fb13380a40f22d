// SPDX-License-Identifier: Apache-2.0
#include "edge/session/boot.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_DIGITS 18 // of milliseconds: thirty million years

// A line of digits and nothing else; 0 for anything that we did not write.
static uint64_t read_number(const char *path)
{
    char line[32] = "";
    FILE *file = fopen(path, "re");
    if (!file) return 0;
    size_t size = fread(line, 1, sizeof line - 1, file);
    (void)fclose(file);
    size_t digits = strspn(line, "0123456789");
    if (digits == 0 || digits > MAX_DIGITS || digits + 1 != size ||
        line[digits] != '\n')
        return 0;
    return strtoull(line, NULL, 10);
}

static void make_folders(const char *path)
{
    char folder[PATH_MAX];
    size_t size = strlen(path) + 1;
    if (size > sizeof folder) return;
    memcpy(folder, path, size);
    for (char *slash = strchr(folder + 1, '/'); slash;
         slash = strchr(slash + 1, '/')) {
        *slash = 0;
        (void)mkdir(folder, 0755); // a failure shows when the file is opened
        *slash = '/';
    }
}

static bool write_file(const char *path, uint64_t number)
{
    FILE *file = fopen(path, "we");
    if (!file) return false;
    bool ok = fprintf(file, "%" PRIu64 "\n", number) > 0 && fflush(file) == 0 &&
              fsync(fileno(file)) == 0;
    return fclose(file) == 0 && ok;
}

// A new file renamed over the old one: a crash leaves one or the other.
static bool write_number(const char *path, uint64_t number)
{
    char fresh[PATH_MAX];
    int length = snprintf(fresh, sizeof fresh, "%s.%ld", path, (long)getpid());
    if (length < 0 || (size_t)length >= sizeof fresh) {
        errno = ENAMETOOLONG;
        return false;
    }
    if (write_file(fresh, number) && rename(fresh, path) == 0) return true;
    int why = errno;
    (void)unlink(fresh);
    errno = why;
    return false;
}

td_err td_edge_boot_next(const char *path, int64_t wall_ms, uint64_t *ret_boot,
                         td_errinfo *info)
{
    uint64_t kept = read_number(path);
    uint64_t boot = (uint64_t)wall_ms;
    if (kept >= boot) boot = kept + 1;
    *ret_boot = boot;
    make_folders(path);
    if (write_number(path, boot)) return TD_OK;
    return td_fail(info, TD_ERR_IO, "boot_file: %s: %s; using the wall clock",
                   path, strerror(errno));
}
