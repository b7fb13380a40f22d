// SPDX-License-Identifier: Apache-2.0
// Stands for libnvidia-ml.so.1 of a machine with one GPU, as far as the program
// asks it.
#include <stdio.h>

typedef struct memory {
    unsigned long long total, free, used;
} memory;

int nvmlInit_v2(void);
int nvmlShutdown(void);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **ret_handle);
int nvmlDeviceGetName(void *handle, char *ret_name, unsigned size);
int nvmlDeviceGetMemoryInfo(void *handle, memory *ret_memory);

static int gpu;

int nvmlInit_v2(void)
{
    return 0;
}

int nvmlShutdown(void)
{
    return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **ret_handle)
{
    *ret_handle = &gpu;
    return index == 0 ? 0 : 2;
}

int nvmlDeviceGetName(void *handle, char *ret_name, unsigned size)
{
    (void)snprintf(ret_name, size, "Stand-in H200");
    return handle == &gpu ? 0 : 2;
}

int nvmlDeviceGetMemoryInfo(void *handle, memory *ret_memory)
{
    *ret_memory = (memory){.total = 9ULL << 30, .free = 9ULL << 30};
    return handle == &gpu ? 0 : 2;
}
