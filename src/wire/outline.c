// SPDX-License-Identifier: Apache-2.0
#include "wire/outline.h"

#include "wire/msgpack/scan.h"

#include <stdlib.h>
#include <string.h>

// Images of less are joined with the rest.
#define CUT_BYTES 1024

// Nobody keeps more for the next message.
#define KEEP_BYTES (64 * 1024)

// In the place of what was cut: a binary of one byte, known by where it is.
static const uint8_t mark[] = {0xc4, 1, 0};
#define MARK_HEAD 2

typedef struct walk {
    const td_slice *piece; // where it is,
    size_t at;             // and where in that
    size_t left;           // bytes from there on, of all pieces
    uint32_t heads;        // that may still be looked at
    td_wire_outline *outline;
} walk;

void td_wire_outline_done(td_wire_outline *outline)
{
    free(outline->bytes);
    *outline = (td_wire_outline){0};
}

void td_wire_outline_trim(td_wire_outline *outline)
{
    if (outline->room > KEEP_BYTES) td_wire_outline_done(outline);
}

// Steps over the ends of pieces.
static void settle(walk *in)
{
    while (in->left > 0 && in->at == in->piece->size) {
        in->piece++;
        in->at = 0;
    }
}

// Goes on by `size` bytes, which are copied unless `into` is NULL.
static void pass(walk *in, uint8_t *into, size_t size)
{
    while (size > 0) {
        settle(in);
        size_t here = in->piece->size - in->at;
        if (here > size) here = size;
        if (into) {
            memcpy(into, (const uint8_t *)in->piece->data + in->at, here);
            into += here;
        }
        in->at += here;
        in->left -= here;
        size -= here;
    }
}

static td_err reserve(td_wire_outline *outline, size_t more)
{
    size_t wanted = outline->size + more;
    if (wanted <= outline->room) return TD_OK;
    size_t room = wanted + wanted / 2;
    uint8_t *bytes = realloc(outline->bytes, room);
    if (!bytes) return TD_ERR_NOMEM;
    outline->bytes = bytes;
    outline->room = room;
    return TD_OK;
}

static td_err copy(walk *in, size_t size)
{
    td_wire_outline *outline = in->outline;
    TD_TRY(reserve(outline, size));
    pass(in, outline->bytes + outline->size, size);
    outline->size += size;
    return TD_OK;
}

static td_err cut(walk *in, size_t head, size_t body)
{
    td_wire_outline *outline = in->outline;
    TD_TRY(reserve(outline, sizeof mark));
    memcpy(outline->bytes + outline->size, mark, sizeof mark);
    pass(in, NULL, head);
    settle(in);
    outline->cuts[outline->cut_count++] =
        (td_wire_cut){outline->size + MARK_HEAD, in->piece, in->at, body};
    outline->size += sizeof mark;
    pass(in, NULL, body);
    return TD_OK;
}

static bool is_cut(const walk *in, bool in_images, td_wire_head head)
{
    return in_images && head.kind == TD_WIRE_HEAD_BIN &&
           head.number >= CUT_BYTES &&
           in->outline->cut_count < TD_WIRE_MAX_IMAGES;
}

// The header ahead, which may lie in two pieces. As td_wire_scan_head().
static size_t peek(const walk *in, td_wire_head *ret_head)
{
    const uint8_t *here = (const uint8_t *)in->piece->data + in->at;
    size_t size = in->piece->size - in->at;
    uint8_t bytes[TD_WIRE_HEAD_BYTES];
    if (size >= sizeof bytes) return td_wire_scan_head(here, size, ret_head);
    size = in->left < sizeof bytes ? in->left : sizeof bytes;
    walk ahead = *in;
    pass(&ahead, bytes, size);
    return td_wire_scan_head(bytes, size, ret_head);
}

// One header and what belongs to it. EMPTY when the bytes end first, or nothing
// sensible has so many.
static td_err step(walk *in, bool in_images, td_wire_head *ret_head)
{
    if (in->left == 0 || in->heads == 0) return TD_ERR_EMPTY;
    size_t head = peek(in, ret_head);
    if (head == 0) return TD_ERR_EMPTY;
    in->heads--;
    uint64_t body = td_wire_scan_body(*ret_head);
    if (body > in->left - head) return TD_ERR_EMPTY;
    if (is_cut(in, in_images, *ret_head)) return cut(in, head, body);
    return copy(in, head + body);
}

// A value and its members.
static td_err copy_value(walk *in, bool in_images)
{
    for (uint64_t open = 1; open > 0; open--) {
        td_wire_head head;
        TD_TRY(step(in, in_images, &head));
        open += td_wire_scan_members(head);
    }
    return TD_OK;
}

// Whether the key that was copied last is `key`.
static bool is_key(const td_wire_outline *outline, td_wire_head head,
                   const char *key)
{
    size_t size = strlen(key);
    return head.kind == TD_WIRE_HEAD_STR && head.number == size &&
           memcmp(outline->bytes + outline->size - size, key, size) == 0;
}

static td_err copy_message(walk *in)
{
    td_wire_head top, key;
    TD_TRY(step(in, false, &top));
    if (top.kind != TD_WIRE_HEAD_MAP) return TD_ERR_EMPTY;
    for (uint64_t i = 0; i < top.number; i++) {
        TD_TRY(step(in, false, &key));
        if (td_wire_scan_members(key)) return TD_ERR_EMPTY;
        TD_TRY(copy_value(in, is_key(in->outline, key, "images")));
    }
    return TD_OK;
}

td_err td_wire_outline_make(td_wire_outline *outline, const td_slice *pieces,
                            size_t count)
{
    walk in = {pieces, 0, 0, TD_WIRE_SCAN_HEADS, outline};
    for (size_t i = 0; i < count; i++)
        in.left += pieces[i].size;
    outline->size = 0;
    outline->cut_count = 0;
    td_err err = copy_message(&in);
    if (err != TD_OK && err != TD_ERR_EMPTY) return err;
    return copy(&in, in.left); // as it came, for the decoder to refuse
}

static void place(const td_wire_cut *cut, td_wire_image *image)
{
    const td_slice *piece = cut->piece;
    image->size = cut->size;
    if (cut->size <= piece->size - cut->skip) {
        image->data = (const uint8_t *)piece->data + cut->skip;
        return;
    }
    image->data = NULL;
    image->pieces = piece;
    image->skip = cut->skip;
}

void td_wire_outline_restore(const td_wire_outline *outline,
                             td_wire_image *image)
{
    for (uint32_t i = 0; i < outline->cut_count; i++) {
        if (image->data != outline->bytes + outline->cuts[i].at) continue;
        place(&outline->cuts[i], image);
        return;
    }
}

void td_wire_image_copy(const td_wire_image *image, size_t from, size_t size,
                        void *into)
{
    if (image->data) {
        memcpy(into, (const uint8_t *)image->data + from, size);
        return;
    }
    walk in = {.piece = image->pieces, .at = image->skip, .left = image->size};
    pass(&in, NULL, from);
    pass(&in, into, size);
}

td_slice td_wire_image_head(const td_wire_image *image)
{
    if (image->data) return (td_slice){image->data, image->size};
    const td_slice *piece = image->pieces;
    return (td_slice){(const uint8_t *)piece->data + image->skip,
                      piece->size - image->skip};
}
