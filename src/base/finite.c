// SPDX-License-Identifier: Apache-2.0
#include "base/finite.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

// One loop a format: whether any value has all bits of the exponent set. No
// branch in it, so that it is vectorised.
#define DEFINE_FINITE(name, type, exponent)                                    \
    bool td_finite_##name(const void *values, size_t count)                    \
    {                                                                          \
        const char *at = values;                                               \
        type bad = 0;                                                          \
        for (size_t i = 0; i < count; i++) {                                   \
            type bits;                                                         \
            memcpy(&bits, at + i * sizeof bits, sizeof bits);                  \
            bad |= (bits & (exponent)) == (exponent);                          \
        }                                                                      \
        return !bad;                                                           \
    }
DEFINE_FINITE(f64, uint64_t, UINT64_C(0x7ff0000000000000))
DEFINE_FINITE(f32, uint32_t, UINT32_C(0x7f800000))
DEFINE_FINITE(f16, uint16_t, 0x7c00)
DEFINE_FINITE(bf16, uint16_t, 0x7f80)
#undef DEFINE_FINITE

size_t td_finite_first_bad(const float *values, size_t count)
{
    size_t i = 0;
    while (i < count && isfinite(values[i]))
        i++;
    return i;
}
