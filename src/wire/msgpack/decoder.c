// SPDX-License-Identifier: Apache-2.0
#include "wire/msgpack/scan.h"
#include "wire/msgpack/table.h"
#include "wire/msgpack/text.h"
#include "wire/outline.h"
#include "wire/wire.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

// All that msgpack-c can ask for after a scan, so that it never asks malloc.
#define ZONE_BYTES (TD_WIRE_MAX_ITEMS * sizeof(msgpack_object_kv) + 64)

struct td_wire_decoder {
    msgpack_zone zone; // objects of the present message
};

td_err td_wire_decoder_new(td_wire_decoder **ret_decoder)
{
    td_wire_decoder *decoder = malloc(sizeof *decoder);
    if (!decoder) return TD_ERR_NOMEM;
    if (!msgpack_zone_init(&decoder->zone, ZONE_BYTES)) {
        free(decoder);
        return TD_ERR_NOMEM;
    }
    *ret_decoder = decoder;
    return TD_OK;
}

void td_wire_decoder_free(td_wire_decoder *decoder)
{
    if (!decoder) return;
    msgpack_zone_destroy(&decoder->zone);
    free(decoder);
}

// Comes before all else: a newer message may hold what we would refuse, and
// mean something else by the rest.
static td_err check_schema(const td_wire_at *at, const void *data, size_t size)
{
    uint64_t version;
    if (size > TD_WIRE_MAX_BYTES ||
        td_wire_scan_find(data, size, "schema", &version) != TD_OK ||
        version <= TD_WIRE_SCHEMA)
        return TD_OK;
    return td_wire_fail(at, TD_ERR_VERSION,
                        "schema %" PRIu64 " is newer than %d, which this "
                        "version speaks: update Tendon",
                        version, TD_WIRE_SCHEMA);
}

static void preset(const td_wire_table *table, void *ret_struct)
{
    for (uint32_t i = 0; i < table->count; i++) {
        const td_wire_field *field = &table->fields[i];
        if (!field->preset) continue;
        *(uint32_t *)((char *)ret_struct + field->offset) = field->preset;
    }
}

static void copy(const td_wire_message *message, const void *from,
                 void *ret_struct)
{
    memcpy(ret_struct, from, message->lists);
    if (message->lists == message->size) return;
    for (uint32_t i = 0; i < message->table.count; i++) {
        const td_wire_field *field = &message->table.fields[i];
        const char *list = (const char *)from + field->offset;
        memcpy((char *)ret_struct + field->offset, list,
               td_wire_list_bytes(field, list));
    }
}

static td_err decode(const td_wire_at *at, const td_wire_message *message,
                     td_wire_decoder *decoder, td_slice in, void *scratch,
                     void *ret_struct)
{
    TD_TRY(check_schema(at, in.data, in.size));
    TD_TRY(td_wire_scan(at, in.data, in.size));

    msgpack_object top;
    msgpack_zone_clear(&decoder->zone);
    if (msgpack_unpack(in.data, in.size, NULL, &decoder->zone, &top) !=
        MSGPACK_UNPACK_SUCCESS)
        return td_wire_fail(at, TD_ERR_FORMAT, "is not MessagePack");

    memset(scratch, 0, message->lists);
    preset(&message->table, scratch);
    TD_TRY(td_wire_table_read(at, &message->table, &top, scratch));
    if (message->check) TD_TRY(message->check(at, scratch));
    copy(message, scratch, ret_struct);
    return TD_OK;
}

td_err td_wire_decode(const td_wire_message *message, td_wire_decoder *decoder,
                      const void *data, size_t size, void *scratch,
                      void *ret_struct, td_errinfo *info)
{
    td_wire_at at = {.name = td_wire_text_of(message->name), .info = info};
    return decode(&at, message, decoder, (td_slice){data, size}, scratch,
                  ret_struct);
}

td_err td_wire_decode_outline(const td_wire_message *message,
                              td_wire_decoder *decoder,
                              const td_wire_outline *outline, void *scratch,
                              void *ret_struct, td_errinfo *info)
{
    td_wire_at at = {.name = td_wire_text_of(message->name),
                     .info = info,
                     .outline = outline};
    return decode(&at, message, decoder,
                  (td_slice){outline->bytes, outline->size}, scratch,
                  ret_struct);
}

td_err td_wire_encode(const td_wire_message *message, td_wire_encoder *encoder,
                      const void *from, td_errinfo *info)
{
    td_wire_at at = {.name = td_wire_text_of(message->name), .info = info};
    td_wire_encoder_begin(encoder);
    TD_TRY(td_wire_table_check(&at, &message->table, from));
    if (message->check) TD_TRY(message->check(&at, from));
    td_wire_table_write(encoder, &message->table, from);
    TD_TRY(td_wire_encoder_end(encoder));
    if (encoder->size <= TD_WIRE_MAX_BYTES) return TD_OK;
    size_t size = encoder->size;
    td_wire_encoder_begin(encoder);
    return td_wire_fail(&at, TD_ERR_LIMIT, "%zu bytes, limit %u", size,
                        TD_WIRE_MAX_BYTES);
}
