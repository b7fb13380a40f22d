// SPDX-License-Identifier: Apache-2.0
#ifndef TD_BASE_SYNC_CACHELINE_H
#define TD_BASE_SYNC_CACHELINE_H

// What two threads write often lies on lines of its own, so that neither side
// waits for the other's cache.

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define TD_CACHELINE_BYTES 64

#define TD_CACHELINE_ALIGNED _Alignas(TD_CACHELINE_BYTES)

// Zeroed memory on whole lines. Owned by the caller; free with free(). NULL if
// there is not enough, or if the size overflows.
static inline void *td_cacheline_calloc(size_t count, size_t bytes)
{
    size_t total;
    if (__builtin_mul_overflow(count, bytes, &total)) return NULL;
    if (total > PTRDIFF_MAX - TD_CACHELINE_BYTES) return NULL;

    total = (total + TD_CACHELINE_BYTES - 1) / TD_CACHELINE_BYTES *
            TD_CACHELINE_BYTES;
    void *memory = aligned_alloc(TD_CACHELINE_BYTES, total);
    if (memory) memset(memory, 0, total);
    return memory;
}

#endif
