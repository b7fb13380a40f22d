// SPDX-License-Identifier: Apache-2.0
#ifndef TD_ENGINE_NATIVE_OPS_HASHED_H
#define TD_ENGINE_NATIVE_OPS_HASHED_H

// Numbers made from a name, as tests/golden/hashed.py makes them. For tests.

#include <stddef.h>
#include <stdint.h>

// From -1 to 1.
void td_native_hashed_floats(const char *name, size_t count, float *ret_values);
void td_native_hashed_pixels(const char *name, size_t count,
                             uint8_t *ret_pixels);

// As a trained network's might be, for a tensor of `rank` sides of which all
// but the first hold `inputs`.
void td_native_hashed_weights(const char *name, uint32_t rank, uint64_t inputs,
                              size_t count, float *ret_values);

#endif
