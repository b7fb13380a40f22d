// SPDX-License-Identifier: Apache-2.0
#include "wire/msgpack/scan.h"

#include <string.h>

#define NEVER TD_WIRE_HEAD_NEVER
#define PLAIN TD_WIRE_HEAD_PLAIN
#define UINT TD_WIRE_HEAD_UINT
#define INT TD_WIRE_HEAD_INT
#define STR TD_WIRE_HEAD_STR
#define BIN TD_WIRE_HEAD_BIN
#define ARRAY TD_WIRE_HEAD_ARRAY
#define MAP TD_WIRE_HEAD_MAP
#define EXT TD_WIRE_HEAD_EXT

// The first bytes 0xc0 to 0xdf, and how many bytes of number follow each.
static const struct {
    uint8_t kind, bytes;
} wide[] = {
    {PLAIN, 0}, {NEVER, 0}, {PLAIN, 0}, {PLAIN, 0}, {BIN, 1},   {BIN, 2},
    {BIN, 4},   {EXT, 1},   {EXT, 2},   {EXT, 4},   {PLAIN, 4}, {PLAIN, 8},
    {UINT, 1},  {UINT, 2},  {UINT, 4},  {UINT, 8},  {INT, 1},   {INT, 2},
    {INT, 4},   {INT, 8},   {EXT, 0},   {EXT, 0},   {EXT, 0},   {EXT, 0},
    {EXT, 0},   {STR, 1},   {STR, 2},   {STR, 4},   {ARRAY, 2}, {ARRAY, 4},
    {MAP, 2},   {MAP, 4},
};

static td_wire_head narrow(uint8_t first)
{
    if (first < 0x80) return (td_wire_head){UINT, first};
    if (first < 0x90) return (td_wire_head){MAP, first & 0x0f};
    if (first < 0xa0) return (td_wire_head){ARRAY, first & 0x0f};
    if (first < 0xc0) return (td_wire_head){STR, first & 0x1f};
    return (td_wire_head){PLAIN, 0};
}

size_t td_wire_scan_head(const uint8_t *bytes, size_t size,
                         td_wire_head *ret_head)
{
    if (size == 0) return 0;
    uint8_t first = bytes[0];
    *ret_head = narrow(first);
    if (first < 0xc0 || first >= 0xe0) return 1;

    size_t more = wide[first - 0xc0].bytes;
    if (more > size - 1) return 0;
    td_wire_head head = {wide[first - 0xc0].kind, 0};
    for (size_t i = 1; i <= more; i++)
        head.number = head.number << 8 | bytes[i];
    bool negative = more > 0 && bytes[1] & 0x80;
    if (head.kind == INT) head.kind = negative ? PLAIN : UINT;
    if (first >= 0xd4 && first <= 0xd8) head.number = 1u << (first - 0xd4);
    *ret_head = head;
    return 1 + more;
}

uint64_t td_wire_scan_body(td_wire_head head)
{
    if (head.kind == STR || head.kind == BIN) return head.number;
    if (head.kind == EXT) return head.number + 1; // its type
    return 0;
}

uint64_t td_wire_scan_members(td_wire_head head)
{
    if (head.kind == ARRAY) return head.number;
    if (head.kind == MAP) return 2 * head.number;
    return 0;
}

typedef struct cursor {
    const uint8_t *at, *end;
} cursor;

// Steps over one header and what belongs to it (a number, a text's bytes), but
// not over members. False if the bytes end first.
static bool next_head(cursor *in, td_wire_head *ret_head)
{
    size_t size =
        td_wire_scan_head(in->at, (size_t)(in->end - in->at), ret_head);
    if (size == 0) return false;
    in->at += size;
    uint64_t body = td_wire_scan_body(*ret_head);
    if ((size_t)(in->end - in->at) < body) return false;
    in->at += body;
    return true;
}

static td_err check_head(const td_wire_at *at, td_wire_head got)
{
    if (got.kind == TD_WIRE_HEAD_EXT)
        return td_wire_fail(at, TD_ERR_FORMAT, "holds an extension type");
    if (got.kind == TD_WIRE_HEAD_NEVER)
        return td_wire_fail(at, TD_ERR_FORMAT, "is not MessagePack");
    return TD_OK;
}

// Walks the members of the top map. `open[d]` is what is still to come at depth
// d. A member is at least one byte, so that a lying count ends with the bytes.
static td_err walk(const td_wire_at *at, cursor *in, td_wire_head top)
{
    uint64_t items = top.number;
    uint64_t open[TD_WIRE_MAX_DEPTH] = {td_wire_scan_members(top)};
    for (int depth = 0; depth >= 0;) {
        if (items > TD_WIRE_MAX_ITEMS)
            return td_wire_fail(at, TD_ERR_LIMIT,
                                "more than %d members announced",
                                TD_WIRE_MAX_ITEMS);
        if (open[depth] == 0) {
            depth--;
            continue;
        }
        open[depth]--;
        td_wire_head got;
        if (!next_head(in, &got))
            return td_wire_fail(at, TD_ERR_FORMAT, "is cut short");
        TD_TRY(check_head(at, got));
        uint64_t members = td_wire_scan_members(got);
        if (members == 0) continue;
        if (depth + 1 == TD_WIRE_MAX_DEPTH)
            return td_wire_fail(at, TD_ERR_LIMIT, "is nested deeper than %d",
                                TD_WIRE_MAX_DEPTH);
        open[++depth] = members;
        items += got.number;
    }
    return TD_OK;
}

td_err td_wire_scan(const td_wire_at *at, const void *data, size_t size)
{
    if (size > TD_WIRE_MAX_BYTES)
        return td_wire_fail(at, TD_ERR_LIMIT, "%zu bytes, limit %u", size,
                            TD_WIRE_MAX_BYTES);
    const uint8_t *bytes = data;
    cursor in = {bytes, bytes + size};
    td_wire_head top;
    if (!next_head(&in, &top))
        return td_wire_fail(at, TD_ERR_FORMAT, "is cut short");
    if (top.kind != TD_WIRE_HEAD_MAP)
        return td_wire_fail(at, TD_ERR_FORMAT, "is not a map");
    TD_TRY(walk(at, &in, top));
    if (in.at != in.end)
        return td_wire_fail(at, TD_ERR_FORMAT, "%td bytes after the message",
                            in.end - in.at);
    return TD_OK;
}

// Steps over a value and its members, while `heads` lasts.
static bool skip(cursor *in, uint32_t *heads)
{
    for (uint64_t open = 1; open > 0; open--) {
        td_wire_head got;
        if (*heads == 0 || !next_head(in, &got) ||
            got.kind == TD_WIRE_HEAD_NEVER)
            return false;
        --*heads;
        open += td_wire_scan_members(got);
    }
    return true;
}

static bool is_key(const cursor *after, td_wire_head got, const char *key)
{
    size_t size = strlen(key);
    return got.kind == TD_WIRE_HEAD_STR && got.number == size &&
           memcmp(after->at - size, key, size) == 0;
}

td_err td_wire_scan_find(const void *start, size_t size, const char *key,
                         uint64_t *ret_value)
{
    const uint8_t *bytes = start;
    cursor in = {bytes, bytes + size};
    td_wire_head top, name, value;
    uint32_t heads = TD_WIRE_SCAN_HEADS;
    if (!next_head(&in, &top) || top.kind != TD_WIRE_HEAD_MAP)
        return TD_ERR_EMPTY;
    for (uint64_t i = 0; i < top.number; i++) {
        if (!next_head(&in, &name) || td_wire_scan_members(name))
            return TD_ERR_EMPTY;
        if (is_key(&in, name, key)) {
            if (!next_head(&in, &value) || value.kind != TD_WIRE_HEAD_UINT)
                return TD_ERR_EMPTY;
            *ret_value = value.number;
            return TD_OK;
        }
        if (!skip(&in, &heads)) return TD_ERR_EMPTY;
    }
    return TD_ERR_EMPTY;
}
