// SPDX-License-Identifier: Apache-2.0
#ifndef TD_WIRE_MSGPACK_LITERAL_H
#define TD_WIRE_MSGPACK_LITERAL_H

// For tests: MessagePack from text that a person can read.
//
//   {'seq_id': 1, 'state': {'dtype': '<f4', 'shape': [2], 'data': <8*00>}}
//
// JSON with ' for ", and binary as <bytes*hex>. A number with a '.' is a float,
// one after an '@' is that many bytes of an extension type.

#include <msgpack.h>

// Appends the value that `text` is. Fails the test if it is not one.
void td_wire_literal(msgpack_sbuffer *into, const char *text);

#endif
