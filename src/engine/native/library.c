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

// The folder of this program; empty when it cannot be said.
static void find_program(char ret_folder[PATH_MAX])
{
    ssize_t size = readlink("/proc/self/exe", ret_folder, PATH_MAX - 1);
    ret_folder[size > 0 ? size : 0] = '\0';
    char *slash = strrchr(ret_folder, '/');
    ret_folder[slash ? slash - ret_folder : 0] = '\0';
}

// Where it is, seen from the program: in a build, and installed.
static const char *const places[] = {"", "../" TD_LIBRARY_FOLDER "/"};

static void *open_library(void)
{
    char folder[PATH_MAX], path[PATH_MAX + 128];
    const char *given = getenv("TENDON_CUDA_LIBRARY");
    if (given && given[0]) return dlopen(given, RTLD_NOW | RTLD_LOCAL);
    find_program(folder);
    for (size_t i = 0; folder[0] && i < TD_COUNT_OF(places); i++) {
        (void)snprintf(path, sizeof path, "%s/%s" NAME, folder, places[i]);
        if (access(path, R_OK) == 0) return dlopen(path, RTLD_NOW | RTLD_LOCAL);
    }
    return dlopen(NAME, RTLD_NOW | RTLD_LOCAL);
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
