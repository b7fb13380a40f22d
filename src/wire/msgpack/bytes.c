// SPDX-License-Identifier: Apache-2.0
// The types of text and binary.
#include "wire/key.h"
#include "wire/msgpack/table.h"
#include "wire/msgpack/text.h"

#include <string.h>

static td_err read_text(const td_wire_at *at, const msgpack_object *in,
                        td_wire_text *ret_text)
{
    if (in->type != MSGPACK_OBJECT_STR)
        return td_wire_fail_type(at, "must be text", in);
    *ret_text = (td_wire_text){in->via.str.ptr, in->via.str.size};
    return TD_OK;
}

static bool text_is_absent(const td_wire_field *field, const void *value)
{
    (void)field;
    return ((const td_wire_text *)value)->size == 0;
}

static void text_write(td_wire_encoder *encoder, const td_wire_field *field,
                       const void *value)
{
    (void)field;
    td_wire_encoder_text(encoder, *(const td_wire_text *)value);
}

static td_err text_check(const td_wire_at *at, const td_wire_field *field,
                         const void *value)
{
    (void)field;
    return td_wire_text_check(at, *(const td_wire_text *)value);
}

static td_err text_read(const td_wire_at *at, const td_wire_field *field,
                        const msgpack_object *in, void *ret_value)
{
    TD_TRY(read_text(at, in, ret_value));
    return text_check(at, field, ret_value);
}

const td_wire_type td_wire_type_text = {text_read, text_check, text_is_absent,
                                        text_write};

// An empty name or id that need not be there is as good as missing.
static bool may_be_empty(const td_wire_field *field, const td_wire_text *text)
{
    return text->size == 0 && !field->required;
}

static td_err name_check(const td_wire_at *at, const td_wire_field *field,
                         const void *value)
{
    if (may_be_empty(field, value)) return TD_OK;
    return td_wire_text_check_name(at, *(const td_wire_text *)value);
}

static td_err name_read(const td_wire_at *at, const td_wire_field *field,
                        const msgpack_object *in, void *ret_value)
{
    TD_TRY(read_text(at, in, ret_value));
    return name_check(at, field, ret_value);
}

const td_wire_type td_wire_type_name = {name_read, name_check, text_is_absent,
                                        text_write};

static td_err id_check(const td_wire_at *at, const td_wire_field *field,
                       const void *value)
{
    if (may_be_empty(field, value)) return TD_OK;
    return td_wire_key_check_id(at, *(const td_wire_text *)value);
}

static td_err id_read(const td_wire_at *at, const td_wire_field *field,
                      const msgpack_object *in, void *ret_value)
{
    TD_TRY(read_text(at, in, ret_value));
    return id_check(at, field, ret_value);
}

const td_wire_type td_wire_type_id = {id_read, id_check, text_is_absent,
                                      text_write};

// The two members of a struct that td_wire_type_bytes stands for are laid out
// as a td_slice.
static td_slice bytes_of(const void *value)
{
    td_slice bytes;
    memcpy(&bytes, value, sizeof bytes);
    return bytes;
}

static td_err bytes_read(const td_wire_at *at, const td_wire_field *field,
                         const msgpack_object *in, void *ret_value)
{
    (void)field;
    if (in->type != MSGPACK_OBJECT_BIN)
        return td_wire_fail_type(at, "must be binary", in);
    td_slice bytes = {in->via.bin.ptr, in->via.bin.size};
    memcpy(ret_value, &bytes, sizeof bytes);
    return TD_OK;
}

static bool bytes_is_absent(const td_wire_field *field, const void *value)
{
    (void)field;
    return bytes_of(value).size == 0;
}

static void bytes_write(td_wire_encoder *encoder, const td_wire_field *field,
                        const void *value)
{
    (void)field;
    td_slice bytes = bytes_of(value);
    td_wire_encoder_bytes(encoder, bytes.data, bytes.size);
}

const td_wire_type td_wire_type_bytes = {bytes_read, NULL, bytes_is_absent,
                                         bytes_write};

static void borrowed_write(td_wire_encoder *encoder, const td_wire_field *field,
                           const void *value)
{
    (void)field;
    td_slice bytes = bytes_of(value);
    td_wire_encoder_borrow(encoder, bytes.data, bytes.size);
}

const td_wire_type td_wire_type_borrowed = {bytes_read, NULL, bytes_is_absent,
                                            borrowed_write};
