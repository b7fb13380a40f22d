// SPDX-License-Identifier: Apache-2.0
#include "engine/native/library.h"

#include "base/err.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NAME "libtendon_cuda.so"
#define DRIVER "libcuda.so.1"

// "FOLDER/libtendon_cuda.so", FOLDER being the program's; false when it cannot
// be said.
static bool find_beside(size_t room, char *ret_path)
{
    char program[PATH_MAX];
    ssize_t size = readlink("/proc/self/exe", program, sizeof program - 1);
    if (size <= 0) return false;
    program[size] = '\0';
    char *slash = strrchr(program, '/');
    if (!slash) return false;
    *slash = '\0';
    return snprintf(ret_path, room, "%s/" NAME, program) < (int)room;
}

static void *open_library(void)
{
    char beside[PATH_MAX + sizeof NAME];
    const char *given = getenv("TENDON_CUDA_LIBRARY");
    if (given && given[0]) return dlopen(given, RTLD_NOW | RTLD_LOCAL);
    void *library = NULL;
    if (find_beside(sizeof beside, beside) && access(beside, R_OK) == 0)
        library = dlopen(beside, RTLD_NOW | RTLD_LOCAL);
    return library ? library : dlopen(NAME, RTLD_NOW | RTLD_LOCAL);
}

td_err td_native_library_load(const td_ops **ret_ops, td_errinfo *info)
{
    void *driver = dlopen(DRIVER, RTLD_NOW | RTLD_LOCAL);
    if (!driver)
        return td_fail(info, TD_ERR_NOTFOUND, "no NVIDIA driver: %s",
                       dlerror());
    void *library = open_library();
    if (!library)
        return td_fail(info, TD_ERR_NOTFOUND, "no CUDA engine: %s", dlerror());
    td_ops_library *entry = NULL;
    void *symbol = dlsym(library, "td_ops_cuda");
    if (!symbol)
        return td_fail(info, TD_ERR_VERSION, "no td_ops_cuda in " NAME);
    entry = (td_ops_library *)&symbol;
    const td_ops *ops = (*entry)(TD_OPS_VERSION);
    if (!ops)
        return td_fail(info, TD_ERR_VERSION,
                       NAME " is of another release than this program");
    *ret_ops = ops;
    return TD_OK;
}
