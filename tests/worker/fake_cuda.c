// SPDX-License-Identifier: Apache-2.0
// Stands for libtendon_cuda.so where there is no GPU: the processor's backend,
// which fails as a GPU can when the file that TENDON_FAKE_GPU names says so:
// "load", "run" (no memory for either) or "lost".
#include "base/err.h"
#include "engine/native/ops/ops.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static td_ops ops;

static bool is_commanded(const char *what)
{
    char word[16] = "";
    const char *path = getenv("TENDON_FAKE_GPU");
    FILE *file = path ? fopen(path, "re") : NULL;
    if (!file) return false;
    (void)!fgets(word, sizeof word, file);
    (void)fclose(file);
    return strcmp(word, what) == 0;
}

static td_err open_backend(const td_ops_config *config,
                           td_ops_backend **ret_backend, td_errinfo *info)
{
    td_ops_config own = *config;
    own.precision = TD_OPS_F32;
    return td_ops_cpu.open(&own, ret_backend, info);
}

static td_err alloc(td_ops_backend *backend, size_t bytes, void **ret_data,
                    td_errinfo *info)
{
    if (is_commanded("load"))
        return td_fail(info, TD_ERR_NOMEM,
                       "CUDA, allocating 5 MiB after 6: out of memory, 3 of 9 "
                       "MiB are free");
    return td_ops_cpu.alloc(backend, bytes, ret_data, info);
}

static td_err run(td_ops_backend *backend, td_ops_graph *graph,
                  td_errinfo *info)
{
    if (is_commanded("lost"))
        return td_fail(info, TD_ERR_IO, "CUDA, running: the GPU is lost");
    if (is_commanded("run"))
        return td_fail(info, TD_ERR_NOMEM,
                       "CUDA, running: out of memory, 0 of 9 MiB are free");
    return td_ops_cpu.run(backend, graph, info);
}

// As libtendon_cuda.so exports it.
const td_ops *td_ops_cuda(uint32_t version);

const td_ops *td_ops_cuda(uint32_t version)
{
    ops = td_ops_cpu;
    ops.name = "fake";
    ops.open = open_backend;
    ops.alloc = alloc;
    ops.run = run;
    return version == TD_OPS_VERSION ? &ops : NULL;
}
