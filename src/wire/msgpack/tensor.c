// SPDX-License-Identifier: Apache-2.0
// The type of tensors.
#include "wire/wire.h"

#include "base/finite.h"
#include "wire/msgpack/table.h"
#include "wire/msgpack/text.h"

#include <stdio.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "tensors on the wire are little-endian, and are not swapped");

#define AT(member) offsetof(td_wire_tensor, member)

static const td_wire_list shape_list = {
    .member = {.type = &td_wire_type_u32},
    .stride = sizeof(uint32_t),
    .max = TD_WIRE_MAX_RANK,
    .count = AT(rank),
};

static const td_wire_field fields[] = {
    TD_WIRE_FIELD("dtype", enum, AT(dtype), .required = true,
                  .names = td_wire_dtype_names),
    TD_WIRE_FIELD("shape", array, AT(shape), .required = true,
                  .list = &shape_list),
    TD_WIRE_FIELD("age_us", duration, AT(age_us), .has = AT(has_age)),
    TD_WIRE_FIELD("data", bytes, AT(data), .required = true),
};
static const td_wire_table table = TD_WIRE_TABLE(fields);

_Static_assert(AT(size) - AT(data) == offsetof(td_slice, size),
               "td_wire_type_bytes needs the layout of td_slice");

// "2x7".
static const char *shape_text(const td_wire_tensor *tensor,
                              char text[TD_WIRE_MAX_RANK * 11 + 1])
{
    char *at = text;
    *at = '\0';
    for (uint32_t i = 0; i < tensor->rank; i++)
        at += sprintf(at, i ? "x%u" : "%u", tensor->shape[i]);
    return text;
}

size_t td_wire_tensor_bytes(const td_wire_tensor *tensor)
{
    size_t bytes = td_wire_dtype_bytes(tensor->dtype);
    bool overflow = false;
    for (uint32_t i = 0; i < tensor->rank; i++) {
        if (tensor->shape[i] == 0) return 0;
        overflow |= __builtin_mul_overflow(bytes, tensor->shape[i], &bytes);
    }
    return overflow ? SIZE_MAX : bytes;
}

static td_err check_bytes(const td_wire_at *at, const td_wire_tensor *tensor)
{
    size_t bytes = td_wire_tensor_bytes(tensor);
    if (bytes == tensor->size) return TD_OK;
    char shape[TD_WIRE_MAX_RANK * 11 + 1];
    return td_wire_fail(at, TD_ERR_FORMAT,
                        "shape %s of %s needs %zu bytes, got %zu",
                        shape_text(tensor, shape),
                        td_wire_dtype_name(tensor->dtype), bytes, tensor->size);
}

static bool all_finite(const td_wire_tensor *tensor)
{
    switch (tensor->dtype) {
    case TD_WIRE_F64:
        return td_finite_f64(tensor->data, tensor->size / sizeof(double));
    case TD_WIRE_F32:
        return td_finite_f32(tensor->data, tensor->size / sizeof(float));
    case TD_WIRE_F16:
        return td_finite_f16(tensor->data, tensor->size / sizeof(uint16_t));
    case TD_WIRE_BF16:
        return td_finite_bf16(tensor->data, tensor->size / sizeof(uint16_t));
    default:
        return true;
    }
}

static td_err check_values(const td_wire_at *at, const td_wire_field *field,
                           const td_wire_tensor *tensor)
{
    if (tensor->rank == 0)
        return td_wire_fail(at, TD_ERR_FORMAT, "shape is empty");
    TD_TRY(check_bytes(at, tensor));
    const td_wire_rule *rule = field->rule;
    if (!rule) return TD_OK;
    if (rule->rank && tensor->rank != rule->rank)
        return td_wire_fail(at, TD_ERR_FORMAT, "must have %u sides, has %u",
                            rule->rank, tensor->rank);
    if (rule->finite && !all_finite(tensor))
        return td_wire_fail(at, TD_ERR_FORMAT, "a value is not finite");
    return TD_OK;
}

static td_err tensor_read(const td_wire_at *at, const td_wire_field *field,
                          const msgpack_object *in, void *ret_value)
{
    TD_TRY(td_wire_table_read(at, &table, in, ret_value));
    return check_values(at, field, ret_value);
}

static td_err tensor_check(const td_wire_at *at, const td_wire_field *field,
                           const void *value)
{
    TD_TRY(td_wire_table_check(at, &table, value));
    return check_values(at, field, value);
}

static bool tensor_is_absent(const td_wire_field *field, const void *value)
{
    (void)field;
    return ((const td_wire_tensor *)value)->rank == 0;
}

static void tensor_write(td_wire_encoder *encoder, const td_wire_field *field,
                         const void *value)
{
    (void)field;
    td_wire_table_write(encoder, &table, value);
}

const td_wire_type td_wire_type_tensor = {tensor_read, tensor_check,
                                          tensor_is_absent, tensor_write};
