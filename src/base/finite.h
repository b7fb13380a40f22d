// SPDX-License-Identifier: Apache-2.0
#ifndef TD_BASE_FINITE_H
#define TD_BASE_FINITE_H

// Whether numbers are finite: neither infinite nor "not a number". Decided by
// their bits, so that they may lie at any address. Any thread; never blocks.

#include <stdbool.h>
#include <stddef.h>

bool td_finite_f64(const void *values, size_t count);
bool td_finite_f32(const void *values, size_t count);
bool td_finite_f16(const void *values, size_t count);
bool td_finite_bf16(const void *values, size_t count);

// The index of the first value that is not finite, or `count` if all are.
size_t td_finite_first_bad(const float *values, size_t count);

#endif
