// SPDX-License-Identifier: Apache-2.0
#include "engine/native/cuda/library.h"

#include "base/library.h"

#include <dlfcn.h>

#define NAME "libtendon_cuda.so"
#define DRIVER "libcuda.so.1"

td_err td_native_cuda_library_load(const td_ops **ret_ops, td_errinfo *info)
{
    void *driver = dlopen(DRIVER, RTLD_NOW | RTLD_LOCAL);
    if (!driver)
        return td_fail(info, TD_ERR_NOTFOUND, "no NVIDIA driver: %s",
                       dlerror());
    void *library = NULL;
    td_errinfo why = {""};
    if (td_library_open(NAME, "TENDON_CUDA_LIBRARY", &library, &why) != TD_OK)
        return td_fail(info, TD_ERR_NOTFOUND, "no CUDA engine: " NAME ": %s",
                       why.text);
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
