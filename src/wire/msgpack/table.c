// SPDX-License-Identifier: Apache-2.0
#include "wire/msgpack/table.h"

#include "wire/msgpack/text.h"

// Starts at `next`, the row after the last one found: fields that come in our
// own order are found at once.
static const td_wire_field *find(const td_wire_table *table, td_wire_text key,
                                 uint32_t next)
{
    for (uint32_t i = 0; i < table->count; i++, next++) {
        const td_wire_field *field = &table->fields[next % table->count];
        if (td_wire_text_same(key, field->key)) return field;
    }
    return NULL;
}

static td_err read_field(const td_wire_at *at, const td_wire_field *field,
                         const msgpack_object *in, void *ret_struct)
{
    td_wire_at here = td_wire_at_in(at, field->key);
    char *base = ret_struct;
    TD_TRY(field->type->read(&here, field, in, base + field->offset));
    if (field->has) *(bool *)(base + field->has) = true;
    return TD_OK;
}

static td_err check_required(const td_wire_at *at, const td_wire_table *table,
                             uint64_t seen)
{
    for (uint32_t i = 0; i < table->count; i++)
        if (table->fields[i].required && !(seen >> i & 1))
            return td_wire_fail(at, TD_ERR_FORMAT, "%s is missing",
                                table->fields[i].key.data);
    return TD_OK;
}

td_err td_wire_table_read(const td_wire_at *at, const td_wire_table *table,
                          const msgpack_object *in, void *ret_struct)
{
    if (in->type != MSGPACK_OBJECT_MAP)
        return td_wire_fail_type(at, "must be a map", in);
    uint64_t seen = 0;
    uint32_t next = 0;
    for (uint32_t i = 0; i < in->via.map.size; i++) {
        const msgpack_object_kv *pair = &in->via.map.ptr[i];
        if (pair->key.type != MSGPACK_OBJECT_STR)
            return td_wire_fail_type(at, "a key must be text", &pair->key);
        td_wire_text key = {pair->key.via.str.ptr, pair->key.via.str.size};
        const td_wire_field *field = find(table, key, next);
        if (!field || pair->val.type == MSGPACK_OBJECT_NIL) continue;
        uint32_t row = (uint32_t)(field - table->fields);
        if (seen >> row & 1)
            return td_wire_fail(at, TD_ERR_FORMAT, "%s is there twice",
                                field->key.data);
        TD_TRY(read_field(at, field, &pair->val, ret_struct));
        seen |= UINT64_C(1) << row;
        next = row + 1;
    }
    return check_required(at, table, seen);
}

static bool is_written(const td_wire_field *field, const char *base)
{
    if (field->required || field->always) return true;
    if (field->has) return *(const bool *)(base + field->has);
    return !field->type->is_absent(field, base + field->offset);
}

td_err td_wire_table_check(const td_wire_at *at, const td_wire_table *table,
                           const void *from)
{
    const char *base = from;
    for (uint32_t i = 0; i < table->count; i++) {
        const td_wire_field *field = &table->fields[i];
        if (!field->type->check || !is_written(field, base)) continue;
        td_wire_at here = td_wire_at_in(at, field->key);
        TD_TRY(field->type->check(&here, field, base + field->offset));
    }
    return TD_OK;
}

void td_wire_table_write(td_wire_encoder *encoder, const td_wire_table *table,
                         const void *from)
{
    const char *base = from;
    size_t count = 0;
    for (uint32_t i = 0; i < table->count; i++)
        count += is_written(&table->fields[i], base);
    msgpack_pack_map(&encoder->packer, count);
    for (uint32_t i = 0; i < table->count; i++) {
        const td_wire_field *field = &table->fields[i];
        if (!is_written(field, base)) continue;
        td_wire_encoder_text(encoder, field->key);
        field->type->write(encoder, field, base + field->offset);
    }
}

static td_err map_read(const td_wire_at *at, const td_wire_field *field,
                       const msgpack_object *in, void *ret_value)
{
    return td_wire_table_read(at, field->table, in, ret_value);
}

static td_err map_check(const td_wire_at *at, const td_wire_field *field,
                        const void *value)
{
    return td_wire_table_check(at, field->table, value);
}

static bool map_is_absent(const td_wire_field *field, const void *value)
{
    const td_wire_field *first = field->table->fields;
    return first->type->is_absent(first, (const char *)value + first->offset);
}

static void map_write(td_wire_encoder *encoder, const td_wire_field *field,
                      const void *value)
{
    td_wire_table_write(encoder, field->table, value);
}

const td_wire_type td_wire_type_map = {map_read, map_check, map_is_absent,
                                       map_write};
