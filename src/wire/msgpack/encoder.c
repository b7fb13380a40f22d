// SPDX-License-Identifier: Apache-2.0
#include "wire/msgpack/encoder.h"

#include "wire/wire.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

// Below this a slice of its own costs a transport more than the copy.
#define GATHER_BYTES 512
#define HEAD_ROOM_BYTES 4096

static td_err reserve(td_wire_encoder *encoder, size_t size)
{
    size_t room = encoder->head_room;
    while (room - encoder->head_size < size)
        room *= 2;
    if (room == encoder->head_room) return TD_OK;

    char *head = realloc(encoder->head, room);
    if (!head) return TD_ERR_NOMEM;
    encoder->head = head;
    encoder->head_room = room;
    return TD_OK;
}

// Adds to the last part if that is the head's too.
static void extend_head_part(td_wire_encoder *encoder, size_t size)
{
    td_slice *last =
        encoder->part_count ? &encoder->parts[encoder->part_count - 1] : NULL;
    if (last && !last->data) {
        last->size += size;
        return;
    }
    encoder->parts[encoder->part_count++] = (td_slice){NULL, size};
}

// msgpack_packer_write.
static int append(void *user, const char *data, size_t size)
{
    td_wire_encoder *encoder = user;
    if (size == 0) return 0;
    if (encoder->err == TD_OK) encoder->err = reserve(encoder, size);
    if (encoder->err != TD_OK) return -1;
    memcpy(encoder->head + encoder->head_size, data, size);
    encoder->head_size += size;
    encoder->size += size;
    extend_head_part(encoder, size);
    return 0;
}

td_err td_wire_encoder_new(td_wire_encoder **ret_encoder)
{
    TD_AUTO(td_wire_encoder) *encoder = calloc(1, sizeof *encoder);
    if (!encoder) return TD_ERR_NOMEM;
    encoder->head = malloc(HEAD_ROOM_BYTES);
    if (!encoder->head) return TD_ERR_NOMEM;
    encoder->head_room = HEAD_ROOM_BYTES;
    msgpack_packer_init(&encoder->packer, encoder, append);
    *ret_encoder = TD_TAKE(encoder);
    return TD_OK;
}

void td_wire_encoder_free(td_wire_encoder *encoder)
{
    if (!encoder) return;
    free(encoder->head);
    free(encoder);
}

void td_wire_encoder_begin(td_wire_encoder *encoder)
{
    encoder->head_size = 0;
    encoder->part_count = 0;
    encoder->size = 0;
    encoder->err = TD_OK;
}

void td_wire_encoder_text(td_wire_encoder *encoder, td_wire_text text)
{
    msgpack_pack_str_with_body(&encoder->packer, text.data, text.size);
}

void td_wire_encoder_bytes(td_wire_encoder *encoder, const void *data,
                           size_t size)
{
    assert(data || size == 0);
    if (size >= GATHER_BYTES) {
        td_wire_encoder_borrow(encoder, data, size);
        return;
    }
    msgpack_pack_bin(&encoder->packer, size);
    append(encoder, data, size);
}

void td_wire_encoder_borrow(td_wire_encoder *encoder, const void *data,
                            size_t size)
{
    assert(data && size > 0);
    msgpack_pack_bin(&encoder->packer, size);
    assert(encoder->part_count < TD_WIRE_MAX_PARTS);
    encoder->parts[encoder->part_count++] = (td_slice){data, size};
    encoder->size += size;
}

td_err td_wire_encoder_end(td_wire_encoder *encoder)
{
    if (encoder->err != TD_OK) {
        td_err err = encoder->err;
        td_wire_encoder_begin(encoder);
        return err;
    }
    const char *next = encoder->head;
    for (size_t i = 0; i < encoder->part_count; i++) {
        td_slice *part = &encoder->parts[i];
        if (part->data) continue;
        part->data = next;
        next += part->size;
    }
    return TD_OK;
}

const td_slice *td_wire_encoder_parts(const td_wire_encoder *encoder,
                                      size_t *ret_count)
{
    *ret_count = encoder->part_count;
    return encoder->parts;
}

size_t td_wire_encoder_size(const td_wire_encoder *encoder)
{
    return encoder->size;
}

void td_wire_encoder_join(const td_wire_encoder *encoder, void *buffer)
{
    char *out = buffer;
    for (size_t i = 0; i < encoder->part_count; i++) {
        memcpy(out, encoder->parts[i].data, encoder->parts[i].size);
        out += encoder->parts[i].size;
    }
}
