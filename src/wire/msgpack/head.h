// SPDX-License-Identifier: Apache-2.0
#ifndef TD_WIRE_MSGPACK_HEAD_H
#define TD_WIRE_MSGPACK_HEAD_H

// MessagePack's headers, one at a time.

#include <stddef.h>
#include <stdint.h>

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
size_t td_wire_head_read(const uint8_t *bytes, size_t size,
                         td_wire_head *ret_head);

// How many bytes follow that belong to it.
uint64_t td_wire_head_body(td_wire_head head);

// How many values follow that belong to it: a map's keys are some of them.
uint64_t td_wire_head_members(td_wire_head head);

#endif
