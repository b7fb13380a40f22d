// SPDX-License-Identifier: Apache-2.0
#ifndef TD_WIRE_MSGPACK_SCAN_H
#define TD_WIRE_MSGPACK_SCAN_H

// A walk over MessagePack's headers that follows nothing and allocates nothing,
// and the headers one at a time. It comes before the real decoder, which
// allocates what a header announces.

#include "wire/msgpack/fail.h"

typedef enum td_wire_head_kind {
    TD_WIRE_HEAD_NEVER, // 0xc1, which MessagePack does not use
    TD_WIRE_HEAD_PLAIN, // nil, a boolean, a float or a negative integer
    TD_WIRE_HEAD_UINT,
    TD_WIRE_HEAD_INT, // as it is written; one that is not negative becomes UINT
    TD_WIRE_HEAD_STR,
    TD_WIRE_HEAD_BIN,
    TD_WIRE_HEAD_ARRAY,
    TD_WIRE_HEAD_MAP,
    TD_WIRE_HEAD_EXT,
} td_wire_head_kind;

// Its number is the value of an integer, the bytes that follow a text, binary
// or extension, the members of an array or map.
typedef struct td_wire_head {
    td_wire_head_kind kind;
    uint64_t number;
} td_wire_head;

#define TD_WIRE_HEAD_BYTES 9 // of the longest

// Returns how many bytes it takes, without what follows; 0 if they end first.
size_t td_wire_scan_head(const uint8_t *bytes, size_t size,
                         td_wire_head *ret_head);

// How many bytes follow that belong to it.
uint64_t td_wire_scan_body(td_wire_head head);

// How many values follow that belong to it: a map's keys are some of them.
uint64_t td_wire_scan_members(td_wire_head head);

// So many headers are looked at before what is wanted counts as missing: a
// message that will be refused must not cost much.
#define TD_WIRE_SCAN_HEADS (16 * TD_WIRE_MAX_ITEMS)

// Whether `data` is one map, whole, with nothing after it, within TD_WIRE_MAX_
// BYTES, DEPTH and ITEMS, and without extension types. FORMAT, LIMIT.
TD_NODISCARD td_err td_wire_scan(const td_wire_at *at, const void *data,
                                 size_t size);

// The unsigned integer under `key` in a map of which only the first bytes are
// here, whatever else it holds. EMPTY when it is not among them, or only after
// very many values.
TD_NODISCARD td_err td_wire_scan_find(const void *head, size_t size,
                                      const char *key, uint64_t *ret_value);

#endif
