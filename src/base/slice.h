// SPDX-License-Identifier: Apache-2.0
#ifndef TD_BASE_SLICE_H
#define TD_BASE_SLICE_H

// Bytes that somebody else owns, for code inside Tendon.

#include "tendon/slice.h" // IWYU pragma: export

// How many bytes a message in parts has.
static inline size_t td_slice_total(const td_slice *parts, size_t count)
{
    size_t size = 0;
    for (size_t i = 0; i < count; i++)
        size += parts[i].size;
    return size;
}

#endif
