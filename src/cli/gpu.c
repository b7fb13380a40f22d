// SPDX-License-Identifier: Apache-2.0
#include "cli/gpu.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES_PER_GB 1073741824.0

// NVML's nvmlMemory_t.
typedef struct memory {
    unsigned long long total, free, used;
} memory;

typedef struct driver {
    void *library;
    int (*init)(void);
    int (*shutdown)(void);
    int (*handle)(unsigned index, void **ret_handle);
    int (*name)(void *handle, char *ret_name, unsigned size);
    int (*memory)(void *handle, memory *ret_memory);
} driver;

static bool find_all(driver *nvml)
{
    void *at = nvml->library;
    nvml->init = (int (*)(void))dlsym(at, "nvmlInit_v2");
    nvml->shutdown = (int (*)(void))dlsym(at, "nvmlShutdown");
    nvml->handle =
        (int (*)(unsigned, void **))dlsym(at, "nvmlDeviceGetHandleByIndex_v2");
    nvml->name =
        (int (*)(void *, char *, unsigned))dlsym(at, "nvmlDeviceGetName");
    nvml->memory =
        (int (*)(void *, memory *))dlsym(at, "nvmlDeviceGetMemoryInfo");
    return nvml->init && nvml->shutdown && nvml->handle && nvml->name &&
           nvml->memory;
}

static bool ask(const driver *nvml, unsigned index, td_cli_gpu *ret_gpu)
{
    void *handle = NULL;
    td_cli_gpu gpu = {.name = ""};
    memory bytes = {0};
    if (nvml->init() != 0) return false;
    bool known = nvml->handle(index, &handle) == 0 &&
                 nvml->name(handle, gpu.name, sizeof gpu.name) == 0 &&
                 nvml->memory(handle, &bytes) == 0;
    (void)nvml->shutdown();
    if (!known) return false;
    gpu.total_gb = (double)bytes.total / BYTES_PER_GB;
    gpu.used_gb = (double)bytes.used / BYTES_PER_GB;
    *ret_gpu = gpu;
    return true;
}

td_err td_cli_gpu_query(const char *device, td_cli_gpu *ret_gpu,
                        td_errinfo *info)
{
    char *end = NULL;
    unsigned long index = 0;
    if (strncmp(device, "cuda", 4) != 0)
        return td_fail(info, TD_ERR_INVALID, "%.64s is no GPU", device);
    if (device[4] == ':') index = strtoul(device + 5, &end, 10);
    if ((end && *end) || index > 1024)
        return td_fail(info, TD_ERR_INVALID, "%.64s is no GPU", device);

    driver nvml = {.library = dlopen("libnvidia-ml.so.1", RTLD_NOW)};
    bool known =
        nvml.library && find_all(&nvml) && ask(&nvml, (unsigned)index, ret_gpu);
    if (nvml.library) (void)dlclose(nvml.library);
    if (known) return TD_OK;
    return td_fail(info, TD_ERR_NOTFOUND,
                   "no NVIDIA driver here knows the GPU %.64s", device);
}
