// SPDX-License-Identifier: Apache-2.0
// The types of members: arrays, maps from names, extents.
#include "wire/msgpack/table.h"
#include "wire/msgpack/text.h"

#include <string.h>

static td_err check_count(const td_wire_at *at, const td_wire_list *list,
                          uint32_t count)
{
    if (count <= list->max) return TD_OK;
    return td_wire_fail(at, TD_ERR_LIMIT, "%u members, limit %u", count,
                        list->max);
}

// The count lies in the same struct as the array, not in the array.
static ptrdiff_t count_offset(const td_wire_field *field)
{
    return (ptrdiff_t)field->list->count - (ptrdiff_t)field->offset;
}

static void set_count(const td_wire_field *field, void *array, uint32_t count)
{
    *(uint32_t *)((char *)array + count_offset(field)) = count;
}

static uint32_t count_of(const td_wire_field *field, const void *array)
{
    return *(const uint32_t *)((const char *)array + count_offset(field));
}

static const char *element(const td_wire_list *list, const void *array,
                           uint32_t i)
{
    return (const char *)array + i * list->stride;
}

static bool list_is_absent(const td_wire_field *field, const void *value)
{
    return count_of(field, value) == 0;
}

static td_err array_read(const td_wire_at *at, const td_wire_field *field,
                         const msgpack_object *in, void *ret_value)
{
    if (in->type != MSGPACK_OBJECT_ARRAY)
        return td_wire_fail_type(at, "must be an array", in);
    const td_wire_list *list = field->list;
    const td_wire_field *member = &list->member;
    TD_TRY(check_count(at, list, in->via.array.size));
    for (uint32_t i = 0; i < in->via.array.size; i++) {
        char *into = (char *)ret_value + i * list->stride + member->offset;
        TD_TRY(member->type->read(at, member, &in->via.array.ptr[i], into));
    }
    set_count(field, ret_value, in->via.array.size);
    return TD_OK;
}

static td_err array_check(const td_wire_at *at, const td_wire_field *field,
                          const void *value)
{
    const td_wire_list *list = field->list;
    const td_wire_field *member = &list->member;
    uint32_t count = count_of(field, value);
    TD_TRY(check_count(at, list, count));
    for (uint32_t i = 0; member->type->check && i < count; i++) {
        const char *from = element(list, value, i) + member->offset;
        TD_TRY(member->type->check(at, member, from));
    }
    return TD_OK;
}

static void array_write(td_wire_encoder *encoder, const td_wire_field *field,
                        const void *value)
{
    const td_wire_list *list = field->list;
    uint32_t count = count_of(field, value);
    msgpack_pack_array(&encoder->packer, count);
    for (uint32_t i = 0; i < count; i++) {
        const char *from = element(list, value, i) + list->member.offset;
        list->member.type->write(encoder, &list->member, from);
    }
}

const td_wire_type td_wire_type_array = {array_read, array_check,
                                         list_is_absent, array_write};

size_t td_wire_list_bytes(const td_wire_field *field, const void *value)
{
    bool is_list = field->type == &td_wire_type_array ||
                   field->type == &td_wire_type_names;
    return is_list ? count_of(field, value) * field->list->stride : 0;
}

static const td_wire_text *name_of(const td_wire_list *list, const void *array,
                                   uint32_t i)
{
    return (const td_wire_text *)element(list, array, i);
}

// Element i must not be named as one before it.
static td_err check_name(const td_wire_at *at, const td_wire_list *list,
                         const void *array, uint32_t i)
{
    td_wire_text name = *name_of(list, array, i);
    TD_TRY(td_wire_text_check_name(at, name));
    for (uint32_t k = 0; k < i; k++)
        if (td_wire_text_same(name, *name_of(list, array, k)))
            return td_wire_fail(at, TD_ERR_FORMAT, "%.*s is there twice",
                                (int)name.size, name.data);
    return TD_OK;
}

static td_err read_named(const td_wire_at *at, const td_wire_list *list,
                         const msgpack_object_kv *in, void *array, uint32_t i)
{
    if (in->key.type != MSGPACK_OBJECT_STR)
        return td_wire_fail_type(at, "a key must be text", &in->key);
    char *into = (char *)array + i * list->stride;
    td_wire_text name = {in->key.via.str.ptr, in->key.via.str.size};
    memset(into, 0, list->stride);
    *(td_wire_text *)into = name;
    TD_TRY(check_name(at, list, array, i));
    td_wire_at here = td_wire_at_in(at, name);
    const td_wire_field *member = &list->member;
    return member->type->read(&here, member, &in->val, into + member->offset);
}

static td_err names_read(const td_wire_at *at, const td_wire_field *field,
                         const msgpack_object *in, void *ret_value)
{
    if (in->type != MSGPACK_OBJECT_MAP)
        return td_wire_fail_type(at, "must be a map", in);
    TD_TRY(check_count(at, field->list, in->via.map.size));
    for (uint32_t i = 0; i < in->via.map.size; i++)
        TD_TRY(read_named(at, field->list, &in->via.map.ptr[i], ret_value, i));
    set_count(field, ret_value, in->via.map.size);
    return TD_OK;
}

static td_err names_check(const td_wire_at *at, const td_wire_field *field,
                          const void *value)
{
    const td_wire_list *list = field->list;
    const td_wire_field *member = &list->member;
    uint32_t count = count_of(field, value);
    TD_TRY(check_count(at, list, count));
    for (uint32_t i = 0; i < count; i++) {
        TD_TRY(check_name(at, list, value, i));
        if (!member->type->check) continue;
        td_wire_at here = td_wire_at_in(at, *name_of(list, value, i));
        const char *from = element(list, value, i) + member->offset;
        TD_TRY(member->type->check(&here, member, from));
    }
    return TD_OK;
}

static void names_write(td_wire_encoder *encoder, const td_wire_field *field,
                        const void *value)
{
    const td_wire_list *list = field->list;
    uint32_t count = count_of(field, value);
    msgpack_pack_map(&encoder->packer, count);
    for (uint32_t i = 0; i < count; i++) {
        td_wire_encoder_text(encoder, *name_of(list, value, i));
        const char *from = element(list, value, i) + list->member.offset;
        list->member.type->write(encoder, &list->member, from);
    }
}

const td_wire_type td_wire_type_names = {names_read, names_check,
                                         list_is_absent, names_write};

static td_err extent_check(const td_wire_at *at, const td_wire_field *field,
                           const void *value)
{
    const uint32_t *sides = value;
    for (uint32_t i = 0; i < field->extent; i++)
        if (sides[i] == 0)
            return td_wire_fail(at, TD_ERR_FORMAT, "a side is 0");
    return TD_OK;
}

static td_err extent_read(const td_wire_at *at, const td_wire_field *field,
                          const msgpack_object *in, void *ret_value)
{
    if (in->type != MSGPACK_OBJECT_ARRAY || in->via.array.size != field->extent)
        return td_wire_fail(at, TD_ERR_FORMAT, "must be an array of %u sides",
                            field->extent);
    static const td_wire_field side = {.type = &td_wire_type_u32};
    uint32_t *sides = ret_value;
    for (uint32_t i = 0; i < field->extent; i++)
        TD_TRY(side.type->read(at, &side, &in->via.array.ptr[i], &sides[i]));
    return extent_check(at, field, ret_value);
}

static bool extent_is_absent(const td_wire_field *field, const void *value)
{
    const uint32_t *sides = value;
    uint32_t any = 0;
    for (uint32_t i = 0; i < field->extent; i++)
        any |= sides[i];
    return any == 0;
}

static void extent_write(td_wire_encoder *encoder, const td_wire_field *field,
                         const void *value)
{
    const uint32_t *sides = value;
    msgpack_pack_array(&encoder->packer, field->extent);
    for (uint32_t i = 0; i < field->extent; i++)
        msgpack_pack_uint32(&encoder->packer, sides[i]);
}

const td_wire_type td_wire_type_extent = {extent_read, extent_check,
                                          extent_is_absent, extent_write};
