// SPDX-License-Identifier: Apache-2.0
#ifndef TD_WIRE_MSGPACK_SCAN_H
#define TD_WIRE_MSGPACK_SCAN_H

// A walk over MessagePack's headers that follows nothing and allocates nothing.
// It comes before the real decoder, which allocates what a header announces.

#include "wire/msgpack/fail.h"
#include "wire/msgpack/head.h"

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
