// SPDX-License-Identifier: Apache-2.0
#include "engine/native/checkpoint/tensor.h"

#include "base/finite.h"

#include <stdio.h>
#include <string.h>

#define BLOCK 4096 // values that are looked at between two decisions

static const struct {
    const char *name;
    size_t bytes;
    bool is_float;
} dtypes[] = {
#define TD_NATIVE_DTYPE_ROW(name, bytes, is_float) {#name, bytes, is_float},
    TD_NATIVE_DTYPES(TD_NATIVE_DTYPE_ROW)
#undef TD_NATIVE_DTYPE_ROW
};

const char *td_native_dtype_name(td_native_dtype dtype)
{
    return dtypes[dtype].name;
}

size_t td_native_dtype_bytes(td_native_dtype dtype)
{
    return dtypes[dtype].bytes;
}

bool td_native_dtype_is_float(td_native_dtype dtype)
{
    return dtypes[dtype].is_float;
}

td_native_dtype td_native_dtype_find(const char *name)
{
    td_native_dtype dtype = 0;
    while (dtype < TD_NATIVE_DTYPE_COUNT &&
           strcmp(dtypes[dtype].name, name) != 0)
        dtype++;
    return dtype;
}

bool td_native_tensor_has_shape(const td_native_tensor *tensor, uint32_t rank,
                                const uint64_t *shape)
{
    return tensor->rank == rank &&
           (rank == 0 ||
            memcmp(tensor->shape, shape, rank * sizeof *shape) == 0);
}

void td_native_tensor_shape_text(uint32_t rank, const uint64_t *shape,
                                 char ret_text[TD_NATIVE_SHAPE_BYTES])
{
    size_t used = 0;
    ret_text[used++] = '[';
    for (uint32_t i = 0; i < rank; i++)
        used += (size_t)snprintf(ret_text + used, TD_NATIVE_SHAPE_BYTES - used,
                                 "%s%llu", i ? ", " : "",
                                 (unsigned long long)shape[i]);
    (void)snprintf(ret_text + used, TD_NATIVE_SHAPE_BYTES - used, "]");
}

static float of_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

// Exact: a small half is a whole number of 2^-24.
static float of_half(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16;
    uint32_t exponent = half >> 10 & 0x1f, mantissa = half & 0x3ff;
    if (exponent == 0) {
        float value = (float)mantissa * 0x1p-24f;
        return sign ? -value : value;
    }
    if (exponent == 0x1f) return of_bits(sign | 0x7f800000 | mantissa << 13);
    return of_bits(sign | (exponent + 112) << 23 | mantissa << 13);
}

static float of_brain(uint16_t brain)
{
    return of_bits((uint32_t)brain << 16);
}

#define READ(type, convert)                                                    \
    do {                                                                       \
        const type *from = (const type *)tensor->data + first;                 \
        for (uint64_t i = 0; i < count; i++)                                   \
            ret_values[i] = convert(from[i]);                                  \
    } while (0)

void td_native_tensor_read(const td_native_tensor *tensor, uint64_t first,
                           uint64_t count, float *ret_values)
{
    switch (tensor->dtype) {
    case TD_NATIVE_F32:
        READ(float, );
        break;
    case TD_NATIVE_F16:
        READ(uint16_t, of_half);
        break;
    case TD_NATIVE_BF16:
        READ(uint16_t, of_brain);
        break;
    case TD_NATIVE_F64:
        READ(double, (float));
        break;
    case TD_NATIVE_I64:
        READ(int64_t, (float));
        break;
    case TD_NATIVE_I32:
        READ(int32_t, (float));
        break;
    case TD_NATIVE_I16:
        READ(int16_t, );
        break;
    case TD_NATIVE_I8:
        READ(int8_t, );
        break;
    case TD_NATIVE_U8:
    case TD_NATIVE_BOOL:
        READ(uint8_t, );
        break;
    case TD_NATIVE_DTYPE_COUNT:
        break;
    }
}

static bool all_finite(const td_native_tensor *tensor, uint64_t first,
                       uint64_t count)
{
    switch (tensor->dtype) {
    case TD_NATIVE_F32:
        return td_finite_f32((const float *)tensor->data + first, count);
    case TD_NATIVE_F16:
        return td_finite_f16((const uint16_t *)tensor->data + first, count);
    case TD_NATIVE_BF16:
        return td_finite_bf16((const uint16_t *)tensor->data + first, count);
    case TD_NATIVE_F64:
        return td_finite_f64((const double *)tensor->data + first, count);
    default:
        return true;
    }
}

td_err td_native_tensor_check_finite(const td_native_tensor *tensor,
                                     td_errinfo *info)
{
    for (uint64_t at = 0; at < tensor->count; at += BLOCK) {
        uint64_t left = tensor->count - at;
        if (all_finite(tensor, at, left < BLOCK ? left : BLOCK)) continue;
        while (all_finite(tensor, at, 1))
            at++;
        return td_fail(info, TD_ERR_FORMAT, "%s: value %llu is not finite",
                       tensor->name, (unsigned long long)at);
    }
    return TD_OK;
}
