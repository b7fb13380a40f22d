// SPDX-License-Identifier: Apache-2.0
#ifndef TD_BASE_SYNC_THREAD_H
#define TD_BASE_SYNC_THREAD_H

// Threads with a name, and with real-time scheduling where the system allows.

#include "base/err.h"

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>

typedef struct td_thread_config {
    const char *name;      // at most 15 characters, as `top -H` shows it
    int realtime_priority; // SCHED_FIFO 1 to 99; 0: ordinary
    int cpu;               // run on this CPU only; -1: any
} td_thread_config;

typedef struct td_thread td_thread;

// Starts `run(user)`. A refused real-time priority or CPU does not stop the
// start: the thread runs as an ordinary one, and td_thread_refusal() says what
// was refused and what to do. Owned by the caller. INVALID, NOMEM, LIMIT.
TD_NODISCARD td_err td_thread_start(const td_thread_config *config,
                                    void (*run)(void *user), void *user,
                                    td_thread **ret_thread, td_errinfo *info);

// One line for a person, or NULL when everything asked for was given. Borrowed
// until the thread is joined.
const char *td_thread_refusal(const td_thread *thread);

// Waits for the thread to return, and frees it. Blocks; not on that thread.
void td_thread_join(td_thread *thread);

// The same, until CLOCK_MONOTONIC reads `until_ns` at most. False: it still
// runs, and nothing was freed. One waiting thread at a time.
TD_NODISCARD bool td_thread_join_until(td_thread *thread, int64_t until_ns);

// Locks the process's memory: what was touched once stays, so that no tick
// meets a page fault later. DENIED with the one line to run when the limit is
// too low.
TD_NODISCARD td_err td_thread_lock_memory(td_errinfo *info);

// Keeps every CPU of the machine out of sleeps that take more than `wake_us` to
// wake from, until `ret_fd` is closed; 0: out of all sleep, which a virtual
// machine needs, whose host takes a sleeping CPU away. DENIED with what to do.
TD_NODISCARD td_err td_thread_stay_awake(int32_t wake_us, int *ret_fd,
                                         td_errinfo *info);

// Keeps the calling thread, and those that it starts from now on, off a CPU
// that another has to itself. `ret_before` is for td_thread_run_on(). DENIED
// with why: it is the only one there is.
TD_NODISCARD td_err td_thread_keep_off(int cpu, cpu_set_t *ret_before,
                                       td_errinfo *info);
void td_thread_run_on(const cpu_set_t *cpus);

// Touches `bytes` of the calling thread's stack, so that none of it faults
// later.
void td_thread_prefault_stack(size_t bytes);

#endif
