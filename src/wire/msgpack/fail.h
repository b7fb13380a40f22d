// SPDX-License-Identifier: Apache-2.0
#ifndef TD_WIRE_MSGPACK_FAIL_H
#define TD_WIRE_MSGPACK_FAIL_H

// Where in a message something is wrong: a chain of names up the stack, which
// costs nothing until td_wire_fail() walks it.

#include "base/err.h"
#include "tendon/wire.h"

#include <msgpack.h>

typedef struct td_wire_at {
    const struct td_wire_at *up; // NULL: the message itself
    td_wire_text name;
    td_errinfo *info;                      // of the message; may be NULL
    const struct td_wire_outline *outline; // of the message; may be NULL
} td_wire_at;

static inline td_wire_at td_wire_at_in(const td_wire_at *up, td_wire_text name)
{
    return (td_wire_at){up, name, up->info, up->outline};
}

// "obs: state: " and the text go into the errinfo. Returns `err`.
td_err td_wire_fail(const td_wire_at *at, td_err err, const char *fmt, ...)
    TD_PRINTF(3, 4);

// "must be a map, got text": what was wanted, and what `in` is. FORMAT.
td_err td_wire_fail_type(const td_wire_at *at, const char *wanted,
                         const msgpack_object *in);

#endif
