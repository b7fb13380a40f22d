// SPDX-License-Identifier: Apache-2.0
#ifndef TENDON_SLICE_H
#define TENDON_SLICE_H

#include <stddef.h>

// Bytes that somebody else owns.
typedef struct td_slice {
    const void *data;
    size_t size;
} td_slice;

#endif
