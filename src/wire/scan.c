// SPDX-License-Identifier: Apache-2.0
#include "wire/scan.h"

#include <string.h>

// So many are looked at before what is sought counts as missing: a message that
// will be refused must not cost much.
#define FIND_HEADS (16 * TD_WIRE_MAX_ITEMS)

typedef enum head_kind {
    HEAD_NEVER, // 0xc1, which MessagePack does not use
    HEAD_PLAIN, // nil, a boolean, a float or a negative integer
    HEAD_UINT,
    HEAD_INT, // as it is written; one that is not negative becomes HEAD_UINT
    HEAD_STR,
    HEAD_BIN,
    HEAD_ARRAY,
    HEAD_MAP,
    HEAD_EXT,
} head_kind;

// A header: its number is the value of an integer, the bytes that follow a
// text, binary or extension, the members of an array or map.
typedef struct head {
    head_kind kind;
    uint64_t number;
} head;

typedef struct cursor {
    const uint8_t *at, *end;
} cursor;

// The first bytes 0xc0 to 0xdf, and how many bytes of number follow each.
static const struct {
    uint8_t kind, bytes;
} wide_heads[] = {
    {HEAD_PLAIN, 0}, {HEAD_NEVER, 0}, {HEAD_PLAIN, 0}, {HEAD_PLAIN, 0},
    {HEAD_BIN, 1},   {HEAD_BIN, 2},   {HEAD_BIN, 4},   {HEAD_EXT, 1},
    {HEAD_EXT, 2},   {HEAD_EXT, 4},   {HEAD_PLAIN, 4}, {HEAD_PLAIN, 8},
    {HEAD_UINT, 1},  {HEAD_UINT, 2},  {HEAD_UINT, 4},  {HEAD_UINT, 8},
    {HEAD_INT, 1},   {HEAD_INT, 2},   {HEAD_INT, 4},   {HEAD_INT, 8},
    {HEAD_EXT, 0},   {HEAD_EXT, 0},   {HEAD_EXT, 0},   {HEAD_EXT, 0},
    {HEAD_EXT, 0},   {HEAD_STR, 1},   {HEAD_STR, 2},   {HEAD_STR, 4},
    {HEAD_ARRAY, 2}, {HEAD_ARRAY, 4}, {HEAD_MAP, 2},   {HEAD_MAP, 4},
};

static head narrow_head(uint8_t first)
{
    if (first < 0x80) return (head){HEAD_UINT, first};
    if (first < 0x90) return (head){HEAD_MAP, first & 0x0f};
    if (first < 0xa0) return (head){HEAD_ARRAY, first & 0x0f};
    if (first < 0xc0) return (head){HEAD_STR, first & 0x1f};
    return (head){HEAD_PLAIN, 0};
}

// How many bytes follow that belong to it.
static uint64_t body_of(head of)
{
    if (of.kind == HEAD_STR || of.kind == HEAD_BIN) return of.number;
    if (of.kind == HEAD_EXT) return of.number + 1; // its type
    return 0;
}

// Steps over one header and what belongs to it (a number, a text's bytes), but
// not over members. False if the bytes end first.
static bool next_head(cursor *in, head *ret_head)
{
    if (in->at == in->end) return false;
    uint8_t first = *in->at++;
    head got = narrow_head(first);
    if (first >= 0xc0 && first < 0xe0) {
        size_t bytes = wide_heads[first - 0xc0].bytes;
        got.kind = wide_heads[first - 0xc0].kind;
        if ((size_t)(in->end - in->at) < bytes) return false;
        bool negative = bytes > 0 && *in->at & 0x80;
        for (size_t i = 0; i < bytes; i++)
            got.number = got.number << 8 | *in->at++;
        if (got.kind == HEAD_INT) got.kind = negative ? HEAD_PLAIN : HEAD_UINT;
        if (first >= 0xd4 && first <= 0xd8) got.number = 1u << (first - 0xd4);
    }
    if ((size_t)(in->end - in->at) < body_of(got)) return false;
    in->at += body_of(got);
    *ret_head = got;
    return true;
}

static uint64_t members_of(head of)
{
    if (of.kind == HEAD_ARRAY) return of.number;
    if (of.kind == HEAD_MAP) return 2 * of.number;
    return 0;
}

static td_err check_head(const td_wire_at *at, head got)
{
    if (got.kind == HEAD_EXT)
        return td_wire_fail(at, TD_ERR_FORMAT, "holds an extension type");
    if (got.kind == HEAD_NEVER)
        return td_wire_fail(at, TD_ERR_FORMAT, "is not MessagePack");
    return TD_OK;
}

// Walks the members of the top map. `open[d]` is what is still to come at depth
// d. A member is at least one byte, so that a lying count ends with the bytes.
static td_err walk(const td_wire_at *at, cursor *in, head top)
{
    uint64_t items = top.number;
    uint64_t open[TD_WIRE_MAX_DEPTH] = {members_of(top)};
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
        head got;
        if (!next_head(in, &got))
            return td_wire_fail(at, TD_ERR_FORMAT, "is cut short");
        TD_TRY(check_head(at, got));
        uint64_t members = members_of(got);
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
    head top;
    if (!next_head(&in, &top))
        return td_wire_fail(at, TD_ERR_FORMAT, "is cut short");
    if (top.kind != HEAD_MAP)
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
        head got;
        if (*heads == 0 || !next_head(in, &got) || got.kind == HEAD_NEVER)
            return false;
        --*heads;
        open += members_of(got);
    }
    return true;
}

static bool is_key(const cursor *after, head got, const char *key)
{
    size_t size = strlen(key);
    return got.kind == HEAD_STR && got.number == size &&
           memcmp(after->at - size, key, size) == 0;
}

td_err td_wire_scan_find(const void *start, size_t size, const char *key,
                         uint64_t *ret_value)
{
    const uint8_t *bytes = start;
    cursor in = {bytes, bytes + size};
    head top, name, value;
    uint32_t heads = FIND_HEADS;
    if (!next_head(&in, &top) || top.kind != HEAD_MAP) return TD_ERR_EMPTY;
    for (uint64_t i = 0; i < top.number; i++) {
        if (!next_head(&in, &name) || members_of(name)) return TD_ERR_EMPTY;
        if (is_key(&in, name, key)) {
            if (!next_head(&in, &value) || value.kind != HEAD_UINT)
                return TD_ERR_EMPTY;
            *ret_value = value.number;
            return TD_OK;
        }
        if (!skip(&in, &heads)) return TD_ERR_EMPTY;
    }
    return TD_ERR_EMPTY;
}
