// SPDX-License-Identifier: Apache-2.0
#include "wire/msgpack/fail.h"

#include <stdio.h>

// Returns how much of `text` is used; names are short, so that all of them fit.
static size_t write_path(const td_wire_at *at, char *text, size_t room)
{
    size_t used = at->up ? write_path(at->up, text, room) : 0;
    int more = snprintf(text + used, room - used, "%.*s: ", (int)at->name.size,
                        at->name.data);
    used += more > 0 ? (size_t)more : 0;
    return used < room ? used : room - 1;
}

td_err td_wire_fail(const td_wire_at *at, td_err err, const char *fmt, ...)
{
    if (!at->info) return err;

    char text[sizeof at->info->text];
    size_t used = write_path(at, text, sizeof text);
    va_list args;
    va_start(args, fmt);
    vsnprintf(text + used, sizeof text - used, fmt, args);
    va_end(args);
    return td_fail(at->info, err, "%s", text);
}

static const char *type_name(const msgpack_object *in)
{
    switch (in->type) {
    case MSGPACK_OBJECT_NIL:
        return "nil";
    case MSGPACK_OBJECT_BOOLEAN:
        return "a boolean";
    case MSGPACK_OBJECT_POSITIVE_INTEGER:
        return "an integer";
    case MSGPACK_OBJECT_NEGATIVE_INTEGER:
        return "a negative integer";
    case MSGPACK_OBJECT_FLOAT32:
    case MSGPACK_OBJECT_FLOAT64:
        return "a float";
    case MSGPACK_OBJECT_STR:
        return "text";
    case MSGPACK_OBJECT_ARRAY:
        return "an array";
    case MSGPACK_OBJECT_MAP:
        return "a map";
    case MSGPACK_OBJECT_BIN:
        return "binary";
    default:
        return "an extension";
    }
}

td_err td_wire_fail_type(const td_wire_at *at, const char *wanted,
                         const msgpack_object *in)
{
    return td_wire_fail(at, TD_ERR_FORMAT, "%s, got %s", wanted, type_name(in));
}
