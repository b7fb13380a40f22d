// SPDX-License-Identifier: Apache-2.0
// The types of numbers, booleans and enumerations: how each is read, checked,
// left out and written.
//
// A type is four functions (msgpack/table.h). Reading accepts every MessagePack
// encoding of a value that fits: an integer of any width, and for floats an
// integer too, because other languages write 1 for 1.0. What does not fit is
// refused with the member, what came and what it must be. Where a type has a
// check, values that our own code is about to send pass it too, so that nothing
// is sent that a reader would refuse.
//
// A member whose value is its default is left out, which keeps messages small
// and lets older readers ignore what they do not know. Integers are written in
// their shortest encoding and floats in the width of their type, as the golden
// bytes have it.
#include "wire/msgpack/table.h"
#include "wire/msgpack/text.h"

#include <float.h>
#include <inttypes.h>

static td_err u64_read(const td_wire_at *at, const td_wire_field *field,
                       const msgpack_object *in, void *ret_value)
{
    (void)field;
    if (in->type != MSGPACK_OBJECT_POSITIVE_INTEGER)
        return td_wire_fail_type(at, "must be an integer of at least 0", in);
    *(uint64_t *)ret_value = in->via.u64;
    return TD_OK;
}

static bool u64_is_absent(const td_wire_field *field, const void *value)
{
    (void)field;
    return *(const uint64_t *)value == 0;
}

static void u64_write(td_wire_encoder *encoder, const td_wire_field *field,
                      const void *value)
{
    (void)field;
    msgpack_pack_uint64(&encoder->packer, *(const uint64_t *)value);
}

const td_wire_type td_wire_type_u64 = {u64_read, NULL, u64_is_absent,
                                       u64_write};

static td_err u32_read(const td_wire_at *at, const td_wire_field *field,
                       const msgpack_object *in, void *ret_value)
{
    uint64_t value = 0;
    TD_TRY(u64_read(at, field, in, &value));
    if (value > UINT32_MAX)
        return td_wire_fail(at, TD_ERR_FORMAT,
                            "must be below 2^32, got %" PRIu64, value);
    *(uint32_t *)ret_value = (uint32_t)value;
    return TD_OK;
}

static bool u32_is_absent(const td_wire_field *field, const void *value)
{
    return *(const uint32_t *)value == field->preset;
}

static void u32_write(td_wire_encoder *encoder, const td_wire_field *field,
                      const void *value)
{
    (void)field;
    msgpack_pack_uint32(&encoder->packer, *(const uint32_t *)value);
}

const td_wire_type td_wire_type_u32 = {u32_read, NULL, u32_is_absent,
                                       u32_write};

static td_err i64_read(const td_wire_at *at, const td_wire_field *field,
                       const msgpack_object *in, void *ret_value)
{
    (void)field;
    bool negative = in->type == MSGPACK_OBJECT_NEGATIVE_INTEGER;
    bool positive =
        in->type == MSGPACK_OBJECT_POSITIVE_INTEGER && in->via.u64 <= INT64_MAX;
    if (!negative && !positive)
        return td_wire_fail_type(at, "must be a 64-bit integer", in);
    *(int64_t *)ret_value = in->via.i64;
    return TD_OK;
}

static bool i64_is_absent(const td_wire_field *field, const void *value)
{
    (void)field;
    return *(const int64_t *)value == 0;
}

static void i64_write(td_wire_encoder *encoder, const td_wire_field *field,
                      const void *value)
{
    (void)field;
    msgpack_pack_int64(&encoder->packer, *(const int64_t *)value);
}

const td_wire_type td_wire_type_i64 = {i64_read, NULL, i64_is_absent,
                                       i64_write};

static td_err duration_check(const td_wire_at *at, const td_wire_field *field,
                             const void *value)
{
    (void)field;
    int64_t us = *(const int64_t *)value;
    if (us >= 0) return TD_OK;
    return td_wire_fail(at, TD_ERR_FORMAT, "must be at least 0, got %" PRId64,
                        us);
}

static td_err duration_read(const td_wire_at *at, const td_wire_field *field,
                            const msgpack_object *in, void *ret_value)
{
    TD_TRY(i64_read(at, field, in, ret_value));
    return duration_check(at, field, ret_value);
}

const td_wire_type td_wire_type_duration = {duration_read, duration_check,
                                            i64_is_absent, i64_write};

static td_err bool_read(const td_wire_at *at, const td_wire_field *field,
                        const msgpack_object *in, void *ret_value)
{
    (void)field;
    if (in->type != MSGPACK_OBJECT_BOOLEAN)
        return td_wire_fail_type(at, "must be a boolean", in);
    *(bool *)ret_value = in->via.boolean;
    return TD_OK;
}

static bool bool_is_absent(const td_wire_field *field, const void *value)
{
    (void)field;
    return !*(const bool *)value;
}

static void bool_write(td_wire_encoder *encoder, const td_wire_field *field,
                       const void *value)
{
    (void)field;
    if (*(const bool *)value)
        msgpack_pack_true(&encoder->packer);
    else
        msgpack_pack_false(&encoder->packer);
}

const td_wire_type td_wire_type_bool = {bool_read, NULL, bool_is_absent,
                                        bool_write};

static td_err f64_read(const td_wire_at *at, const td_wire_field *field,
                       const msgpack_object *in, void *ret_value)
{
    (void)field;
    double *ret = ret_value;
    switch (in->type) {
    case MSGPACK_OBJECT_FLOAT32:
    case MSGPACK_OBJECT_FLOAT64:
        *ret = in->via.f64;
        return TD_OK;
    case MSGPACK_OBJECT_POSITIVE_INTEGER:
        *ret = (double)in->via.u64;
        return TD_OK;
    case MSGPACK_OBJECT_NEGATIVE_INTEGER:
        *ret = (double)in->via.i64;
        return TD_OK;
    default:
        return td_wire_fail_type(at, "must be a number", in);
    }
}

static bool f64_is_absent(const td_wire_field *field, const void *value)
{
    (void)field;
    return *(const double *)value == 0;
}

static void f64_write(td_wire_encoder *encoder, const td_wire_field *field,
                      const void *value)
{
    (void)field;
    msgpack_pack_double(&encoder->packer, *(const double *)value);
}

const td_wire_type td_wire_type_f64 = {f64_read, NULL, f64_is_absent,
                                       f64_write};

// False for NaN too.
static td_err check_range(const td_wire_at *at, double value, double max)
{
    if (value >= 0 && value <= max) return TD_OK;
    return td_wire_fail(at, TD_ERR_FORMAT, "must be 0 to %g, got %g", max,
                        value);
}

static td_err rate_check(const td_wire_at *at, const td_wire_field *field,
                         const void *value)
{
    (void)field;
    return check_range(at, *(const double *)value, DBL_MAX);
}

static td_err rate_read(const td_wire_at *at, const td_wire_field *field,
                        const msgpack_object *in, void *ret_value)
{
    TD_TRY(f64_read(at, field, in, ret_value));
    return rate_check(at, field, ret_value);
}

const td_wire_type td_wire_type_rate = {rate_read, rate_check, f64_is_absent,
                                        f64_write};

static td_err read_float(const td_wire_at *at, const msgpack_object *in,
                         double max, float *ret_value)
{
    double value = 0;
    TD_TRY(f64_read(at, NULL, in, &value));
    TD_TRY(check_range(at, value, max));
    *ret_value = (float)value;
    return TD_OK;
}

static bool f32_is_absent(const td_wire_field *field, const void *value)
{
    (void)field;
    return *(const float *)value == 0;
}

static void f32_write(td_wire_encoder *encoder, const td_wire_field *field,
                      const void *value)
{
    (void)field;
    msgpack_pack_float(&encoder->packer, *(const float *)value);
}

static td_err ms_check(const td_wire_at *at, const td_wire_field *field,
                       const void *value)
{
    (void)field;
    return check_range(at, *(const float *)value, FLT_MAX);
}

static td_err ms_read(const td_wire_at *at, const td_wire_field *field,
                      const msgpack_object *in, void *ret_value)
{
    (void)field;
    return read_float(at, in, FLT_MAX, ret_value);
}

const td_wire_type td_wire_type_ms = {ms_read, ms_check, f32_is_absent,
                                      f32_write};

static td_err unit_check(const td_wire_at *at, const td_wire_field *field,
                         const void *value)
{
    (void)field;
    return check_range(at, *(const float *)value, 1);
}

static td_err unit_read(const td_wire_at *at, const td_wire_field *field,
                        const msgpack_object *in, void *ret_value)
{
    (void)field;
    return read_float(at, in, 1, ret_value);
}

const td_wire_type td_wire_type_unit = {unit_read, unit_check, f32_is_absent,
                                        f32_write};

static td_err enum_read(const td_wire_at *at, const td_wire_field *field,
                        const msgpack_object *in, void *ret_value)
{
    if (in->type != MSGPACK_OBJECT_STR)
        return td_wire_fail_type(at, "must be text", in);
    td_wire_text text = {in->via.str.ptr, in->via.str.size};
    for (uint32_t i = 0; field->names[i]; i++) {
        if (!td_wire_text_is(text, field->names[i])) continue;
        *(uint32_t *)ret_value = i;
        return TD_OK;
    }
    TD_TRY(td_wire_text_check_name(at, text)); // so that it can be printed
    return td_wire_fail(at, TD_ERR_FORMAT, "'%.*s' is not known",
                        (int)text.size, text.data);
}

static td_err enum_check(const td_wire_at *at, const td_wire_field *field,
                         const void *value)
{
    uint32_t count = 0;
    while (field->names[count])
        count++;
    if (*(const uint32_t *)value < count) return TD_OK;
    return td_wire_fail(at, TD_ERR_FORMAT, "%u is not known",
                        *(const uint32_t *)value);
}

static bool enum_is_absent(const td_wire_field *field, const void *value)
{
    (void)field;
    return *(const uint32_t *)value == 0;
}

static void enum_write(td_wire_encoder *encoder, const td_wire_field *field,
                       const void *value)
{
    const char *name = field->names[*(const uint32_t *)value];
    td_wire_encoder_text(encoder, td_wire_text_of(name));
}

const td_wire_type td_wire_type_enum = {enum_read, enum_check, enum_is_absent,
                                        enum_write};

static td_err schema_read(const td_wire_at *at, const td_wire_field *field,
                          const msgpack_object *in, void *ret_value)
{
    (void)ret_value;
    uint64_t version; // td_wire_decode() has compared it
    return u64_read(at, field, in, &version);
}

static void schema_write(td_wire_encoder *encoder, const td_wire_field *field,
                         const void *value)
{
    (void)field, (void)value;
    msgpack_pack_int(&encoder->packer, TD_WIRE_SCHEMA);
}

const td_wire_type td_wire_type_schema = {.read = schema_read,
                                          .write = schema_write};
