// SPDX-License-Identifier: Apache-2.0
#include "cli/cli.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PROGRAM "tendon-bench"

// Becomes the program that stands beside this one.
int td_cli_bench(int argc, char **argv)
{
    (void)argc;
    char path[PATH_MAX + sizeof "/" PROGRAM] = "";
    ssize_t size = readlink("/proc/self/exe", path, PATH_MAX - 1);
    path[size > 0 ? size : 0] = '\0';
    char *slash = strrchr(path, '/');
    if (slash) memcpy(slash, "/" PROGRAM, sizeof "/" PROGRAM);
    (void)execv(path, argv);
    (void)fprintf(stderr,
                  "tendon bench: %s: %s; the benchmarks are a program of their "
                  "own, which `make all` builds beside this one\n",
                  path, strerror(errno));
    return 1;
}
