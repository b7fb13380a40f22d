// SPDX-License-Identifier: Apache-2.0
#ifndef TD_EDGE_LOOP_TICK_WITNESS_H
#define TD_EDGE_LOOP_TICK_WITNESS_H

// For tests of the control tick: counts what its thread must not do. A program
// that links this has the functions that allocate, wait or write replaced, for
// itself and for the libraries under it. The thread named "td-tick" is watched
// after its first ticks: from then on the kernel itself lets it make no system
// call but those that never wait, and its page faults are counted.

#include <stdbool.h>
#include <stdint.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define WITNESS_IS_BLIND // the sanitizer takes the place of malloc itself
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define WITNESS_IS_BLIND
#endif
#endif

#define WITNESS_FIRST_TICKS 10 // what is there to be touched is touched

// `system_call` is any but to sleep until a time, to wake others, and to ask
// for the time, whoever makes it; the rest are calls by name.
#define WITNESS_ACTS(X)                                                        \
    X(malloc)                                                                  \
    X(calloc)                                                                  \
    X(realloc)                                                                 \
    X(free)                                                                    \
    X(posix_memalign)                                                          \
    X(aligned_alloc)                                                           \
    X(pthread_mutex_lock)                                                      \
    X(pthread_cond_wait)                                                       \
    X(pthread_cond_timedwait)                                                  \
    X(pthread_rwlock_rdlock)                                                   \
    X(pthread_rwlock_wrlock)                                                   \
    X(sem_wait)                                                                \
    X(sem_timedwait)                                                           \
    X(write)                                                                   \
    X(futex_wait)                                                              \
    X(system_call)                                                             \
    X(page_fault)

typedef enum witness_act {
#define WITNESS_ENUM(name) WITNESS_##name,
    WITNESS_ACTS(WITNESS_ENUM)
#undef WITNESS_ENUM
        WITNESS_ACT_COUNT
} witness_act;

// Any thread.
void witness_forget(void);
const char *witness_name(witness_act act);
uint64_t witness_count(witness_act act);
uint64_t witness_ticks(void);   // watched since forgotten
bool witness_is_filtered(void); // the kernel took the filter
long witness_last_call(void);   // the number of the last `system_call`

#endif
