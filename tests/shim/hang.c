// SPDX-License-Identifier: Apache-2.0
// Preloaded into a program, as a disk that has gone: to open a file whose path
// holds HANG_AT never returns, or not before there is a file HANG_UNTIL.

#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOOK_US 1000

static void hang(void)
{
    const char *until = getenv("HANG_UNTIL");
    (void)fprintf(stderr, "hangs\n");
    while (!until || access(until, F_OK) != 0)
        (void)usleep(LOOK_US);
}

// NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): libc's
int open(const char *path, int flags, ...)
{
    const char *at = getenv("HANG_AT");
    va_list args;
    va_start(args, flags);
    int mode = va_arg(args, int);
    va_end(args);
    if (at && strstr(path, at)) hang();
    int (*real)(const char *, int, ...) =
        (__typeof__(&open))dlsym(RTLD_NEXT, "open");
    return real(path, flags, mode);
}
