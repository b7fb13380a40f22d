// SPDX-License-Identifier: Apache-2.0
#ifndef TD_ENGINE_NATIVE_CPU_POOL_H
#define TD_ENGINE_NATIVE_CPU_POOL_H

// Threads that share the tasks of one operation after another.

#include "base/err.h"

#include <stdint.h>

#define TD_NATIVE_CPU_MAX_THREADS 256

typedef struct td_native_cpu_pool td_native_cpu_pool;

// Does one of a number of tasks; tasks must not care who does them, or in which
// order. `thread` is below the pool's.
typedef void (*td_native_cpu_task)(void *user, uint32_t task, uint32_t thread);

// Of so many threads, the caller of run() among them. Owned by the caller.
// INVALID, NOMEM, LIMIT.
TD_NODISCARD td_err td_native_cpu_pool_new(uint32_t threads,
                                           td_native_cpu_pool **ret_pool,
                                           td_errinfo *info);
void td_native_cpu_pool_free(td_native_cpu_pool *pool);
TD_AUTO_FREE(td_native_cpu_pool, td_native_cpu_pool_free)

// Does all tasks; blocks until the last is done. One thread at a time.
void td_native_cpu_pool_run(td_native_cpu_pool *pool, uint32_t tasks,
                            td_native_cpu_task task, void *user);

#endif
