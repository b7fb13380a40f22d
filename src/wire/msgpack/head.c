// SPDX-License-Identifier: Apache-2.0
#include "wire/msgpack/head.h"

#include <stdbool.h>

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

size_t td_wire_head_read(const uint8_t *bytes, size_t size,
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

uint64_t td_wire_head_body(td_wire_head head)
{
    if (head.kind == STR || head.kind == BIN) return head.number;
    if (head.kind == EXT) return head.number + 1; // its type
    return 0;
}

uint64_t td_wire_head_members(td_wire_head head)
{
    if (head.kind == ARRAY) return head.number;
    if (head.kind == MAP) return 2 * head.number;
    return 0;
}
