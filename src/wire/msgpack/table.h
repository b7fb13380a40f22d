// SPDX-License-Identifier: Apache-2.0
#ifndef TD_WIRE_MSGPACK_TABLE_H
#define TD_WIRE_MSGPACK_TABLE_H

// Messages as tables: one row a field, with its name on the wire, its type and
// its place in the struct. Decoding and encoding walk the same rows, so that an
// encoder cannot make what its decoder refuses.
//
// To add a field: its member in tendon/wire.h, its row in the message's file,
// its line in docs/wire.md, its value in tests/golden/messages.py and golden.c.
// To add a message: all that attach.c has, under another name.

#include "wire/msgpack/encoder.h"
#include "wire/msgpack/fail.h"

#include <msgpack.h>

typedef struct td_wire_field td_wire_field;

// How one kind of value is read, checked and written. `value` points to the
// member in the struct.
typedef struct td_wire_type {
    // Reads `in` and does all that `check` does. Views into the message.
    td_err (*read)(const td_wire_at *at, const td_wire_field *field,
                   const msgpack_object *in, void *ret_value);

    // (optional) Refuses what cannot go out. Without it anything can.
    td_err (*check)(const td_wire_at *at, const td_wire_field *field,
                    const void *value);

    // Whether it is what a decoder assumes when the field is missing.
    bool (*is_absent)(const td_wire_field *field, const void *value);

    void (*write)(td_wire_encoder *encoder, const td_wire_field *field,
                  const void *value);
} td_wire_type;

typedef struct td_wire_table {
    const td_wire_field *fields;
    uint32_t count; // at most 64
} td_wire_table;

#define TD_WIRE_TABLE(array) {(array), TD_COUNT_OF(array)}

// The last member says more about a type that needs it.
struct td_wire_field {
    td_wire_text key;
    const td_wire_type *type;
    size_t offset;
    bool required; // must be there when reading, and is always written
    bool always;   // is always written
    size_t has;    // offset of the bool that says whether it is there; 0: none
    uint32_t preset; // of a td_wire_type_u32: what it is when it is missing
    union {
        const char *const *names;        // enumeration
        const td_wire_table *table;      // map
        const struct td_wire_list *list; // array, names
        const struct td_wire_rule *rule; // tensor
        uint32_t extent;                 // extent
    };
};

// A row: TD_WIRE_FIELD("again", u64, OBS(again), .has = OBS(has_again)).
#define TD_WIRE_FIELD(key_, type_, offset_, ...)                               \
    {.key = {(key_), sizeof(key_) - 1},                                        \
     .type = &td_wire_type_##type_,                                            \
     .offset = (offset_),                                                      \
     ##__VA_ARGS__}

// Members of one type in an array of the struct.
typedef struct td_wire_list {
    td_wire_field member; // its offset is inside the element
    size_t stride;
    uint32_t max;
    size_t count; // offset of the uint32_t that counts them, beside the array
} td_wire_list;

// What a tensor must be beyond shape x itemsize = bytes.
typedef struct td_wire_rule {
    bool finite;   // floats are
    uint32_t rank; // 0: any
} td_wire_rule;

// Plain values: uint64_t, uint32_t, int64_t, int64_t of at least 0, bool, enum.
extern const td_wire_type td_wire_type_u64;
extern const td_wire_type td_wire_type_u32;
extern const td_wire_type td_wire_type_i64;
extern const td_wire_type td_wire_type_duration;
extern const td_wire_type td_wire_type_bool;
extern const td_wire_type td_wire_type_enum;

// double; double, finite and at least 0; float likewise; float of 0 to 1.
extern const td_wire_type td_wire_type_f64;
extern const td_wire_type td_wire_type_rate;
extern const td_wire_type td_wire_type_ms;
extern const td_wire_type td_wire_type_unit;

// td_wire_text: any; a name; a chunk of a key. Absent when empty.
extern const td_wire_type td_wire_type_text;
extern const td_wire_type td_wire_type_name;
extern const td_wire_type td_wire_type_id;

// A pointer followed by a size_t, as binary; and the same, not empty, of which
// nothing is read before the encoded parts are.
extern const td_wire_type td_wire_type_bytes;
extern const td_wire_type td_wire_type_borrowed;

// `extent` times a uint32_t of at least 1; absent when all are 0.
extern const td_wire_type td_wire_type_extent;

// An array, and a map from names to members; an element of the latter starts
// with its td_wire_text name.
extern const td_wire_type td_wire_type_array;
extern const td_wire_type td_wire_type_names;

// A map with fields in the same struct. Absent by `has`, or else when its first
// field is.
extern const td_wire_type td_wire_type_map;

// td_wire_tensor; absent when its rank is 0.
extern const td_wire_type td_wire_type_tensor;

// Our TD_WIRE_SCHEMA; has no place in the struct.
extern const td_wire_type td_wire_type_schema;

// Reads and checks the fields of a map. Those missing keep what `ret_struct`
// holds.
TD_NODISCARD td_err td_wire_table_read(const td_wire_at *at,
                                       const td_wire_table *table,
                                       const msgpack_object *in,
                                       void *ret_struct);
TD_NODISCARD td_err td_wire_table_check(const td_wire_at *at,
                                        const td_wire_table *table,
                                        const void *from);
void td_wire_table_write(td_wire_encoder *encoder, const td_wire_table *table,
                         const void *from);

// How much of its array a list uses; 0 for any other field.
size_t td_wire_list_bytes(const td_wire_field *field, const void *value);

// A whole message.
typedef struct td_wire_message {
    const char *name; // "obs", for errors
    size_t size;      // of its struct
    size_t lists; // where in it the lists begin; `size` if they are not last
    td_wire_table table;

    // (optional) What holds between fields; both ways.
    td_err (*check)(const td_wire_at *at, const void *message);
} td_wire_message;

// Where the array `member` of a struct ends. What lies behind the first of the
// lists that come last is copied list by list, and must be all theirs.
#define TD_WIRE_END(struct_, member)                                           \
    (offsetof(struct_, member) + sizeof(((struct_ *)NULL)->member))

// `scratch` and `ret_struct` are the message's. Of lists that come last only
// what is used is touched: most of the struct is theirs, and mostly unused.
TD_NODISCARD td_err td_wire_decode(const td_wire_message *message,
                                   td_wire_decoder *decoder, const void *data,
                                   size_t size, void *scratch, void *ret_struct,
                                   td_errinfo *info);

// The same of an outline, whose images get their own bytes back.
TD_NODISCARD td_err
td_wire_decode_outline(const td_wire_message *message, td_wire_decoder *decoder,
                       const struct td_wire_outline *outline, void *scratch,
                       void *ret_struct, td_errinfo *info);

TD_NODISCARD td_err td_wire_encode(const td_wire_message *message,
                                   td_wire_encoder *encoder, const void *from,
                                   td_errinfo *info);

#endif
