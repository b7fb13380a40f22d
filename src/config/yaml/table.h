// SPDX-License-Identifier: Apache-2.0
#ifndef TD_CONFIG_YAML_TABLE_H
#define TD_CONFIG_YAML_TABLE_H

// YAML to structs by tables: one row a field. The same table makes the parser,
// the defaults and the help.
//
// A default is YAML text and is read like the file itself. Errors read
// "file:line: field: what is wrong, what would be right".
//
// To add a setting: add its member to the struct and its row to the table.

#include "config/yaml/location.h"

#include <stdio.h>

typedef enum td_config_kind {
    TD_CONFIG_TEXT,  // const char *; min to max bytes
    TD_CONFIG_CHUNK, // const char *; can stand in a key, or empty if optional
    TD_CONFIG_ENDPOINT, // const char *; "tcp/192.168.1.50:7447"
    TD_CONFIG_BOOL,     // bool
    TD_CONFIG_INTEGER,  // int64_t; min to max
    TD_CONFIG_NUMBER,   // double, finite; min to max
    TD_CONFIG_ENUM,     // an enum from 0 on; one of `choices`
    TD_CONFIG_STRUCT,   // what `table` says
    TD_CONFIG_REFUSED,  // nothing: `help` says why the field is not taken
} td_config_kind;

typedef enum td_config_shape {
    TD_CONFIG_ONE,
    TD_CONFIG_LIST, // a pointer and, at `count_offset`, a size_t
    // As LIST, from "name: {...}" in order. The name goes into the struct's
    // first member, a const char *. A list of names takes all else by default.
    TD_CONFIG_MAP,
    // As MAP, from the members of the struct's own map that no row names. Its
    // name is for people only.
    TD_CONFIG_REST,
} td_config_shape;

typedef struct td_config_table td_config_table;

typedef struct td_config_field {
    const char *name;
    const char *also; // (optional) another name, of a required field
    td_config_kind kind;
    td_config_shape shape;
    size_t offset, count_offset;
    const char *preset;         // the default; NULL: required
    double min, max;            // of each value
    size_t least, most;         // members, of all shapes but ONE
    const char *const *choices; // of an ENUM; ends with NULL
    const td_config_table *table;
    const char *help;
    bool live; // may change while it is used, with all that is in it

    // (optional) Whether two structs of a LIST speak of the same thing, for
    // td_config_diff(). Without it the list is compared as a whole.
    bool (*same)(const void *a, const void *b);
} td_config_field;

struct td_config_table {
    const td_config_field *fields;
    size_t field_count;
    size_t bytes; // of the struct

    // (optional) What no single row can say; also fills in what depends on
    // other fields. Runs after all fields of the struct were read.
    td_err (*check)(const td_config_location *location,
                    const td_config_node *node, void *value);
};

// Rows, each checked against the type of its member. `preset` is the default,
// NULL when the field is required; what follows the help is written as
// `.live = true`.
#define TD_CONFIG_ROW(type, member, ctype, row_kind, text, words)              \
    .name = #member, .kind = (row_kind), .preset = (text), .help = (words),    \
    .offset = offsetof(type, member) +                                         \
              0 * sizeof(_Generic(((type *)NULL)->member, ctype: 0))
#define TD_CONFIG_ROW_MANY(type, count, from, to)                              \
    .count_offset = offsetof(type, count), .least = (from), .most = (to)

#define TD_ROW_TEXT(type, member, preset, min_bytes, max_bytes, help, ...)     \
    {TD_CONFIG_ROW(type, member, const char *, TD_CONFIG_TEXT, preset, help),  \
     .min = (min_bytes), .max = (max_bytes), ##__VA_ARGS__}
#define TD_ROW_CHUNK(type, member, preset, help)                               \
    {TD_CONFIG_ROW(type, member, const char *, TD_CONFIG_CHUNK, preset, help)}
#define TD_ROW_ENDPOINT(type, member, preset, help)                            \
    {TD_CONFIG_ROW(type, member, const char *, TD_CONFIG_ENDPOINT, preset,     \
                   help)}
#define TD_ROW_ENDPOINTS(type, member, count, from, to, help)                  \
    {TD_CONFIG_ROW(type, member, const char **, TD_CONFIG_ENDPOINT, "[]",      \
                   help),                                                      \
     .shape = TD_CONFIG_LIST, TD_CONFIG_ROW_MANY(type, count, from, to)}
#define TD_ROW_TEXTS(type, member, count, min_bytes, max_bytes, from, to,      \
                     help)                                                     \
    {TD_CONFIG_ROW(type, member, const char **, TD_CONFIG_TEXT, "[]", help),   \
     .shape = TD_CONFIG_LIST, .min = (min_bytes), .max = (max_bytes),          \
     TD_CONFIG_ROW_MANY(type, count, from, to)}
#define TD_ROW_BOOL(type, member, preset, help, ...)                           \
    {TD_CONFIG_ROW(type, member, bool, TD_CONFIG_BOOL, preset, help),          \
     ##__VA_ARGS__}
#define TD_ROW_INTEGER(type, member, preset, least, most, help, ...)           \
    {TD_CONFIG_ROW(type, member, int64_t, TD_CONFIG_INTEGER, preset, help),    \
     .min = (least), .max = (most), ##__VA_ARGS__}
#define TD_ROW_NUMBER(type, member, preset, least, most, help, ...)            \
    {TD_CONFIG_ROW(type, member, double, TD_CONFIG_NUMBER, preset, help),      \
     .min = (least), .max = (most), ##__VA_ARGS__}
#define TD_ROW_NUMBERS(type, member, count, preset, low, high, from, to, help) \
    {TD_CONFIG_ROW(type, member, double *, TD_CONFIG_NUMBER, preset, help),    \
     .shape = TD_CONFIG_LIST, .min = (low), .max = (high),                     \
     TD_CONFIG_ROW_MANY(type, count, from, to)}
#define TD_ROW_ENUM(type, member, preset, names, help, ...)                    \
    {TD_CONFIG_ROW(type, member, unsigned, TD_CONFIG_ENUM, preset, help),      \
     .choices = (names), ##__VA_ARGS__}
#define TD_ROW_STRUCT(type, member, ctype, preset, rows, help, ...)            \
    {TD_CONFIG_ROW(type, member, ctype, TD_CONFIG_STRUCT, preset, help),       \
     .table = &(rows), ##__VA_ARGS__}
#define TD_ROW_STRUCTS(type, member, count, ctype, preset, rows, from, to,     \
                       help, ...)                                              \
    {TD_CONFIG_ROW(type, member, ctype *, TD_CONFIG_STRUCT, preset, help),     \
     .shape = TD_CONFIG_LIST, .table = &(rows),                                \
     TD_CONFIG_ROW_MANY(type, count, from, to), ##__VA_ARGS__}
#define TD_ROW_MAP(type, member, count, ctype, preset, rows, from, to, help)   \
    {TD_CONFIG_ROW(type, member, ctype *, TD_CONFIG_STRUCT, preset, help),     \
     .shape = TD_CONFIG_MAP, .table = &(rows),                                 \
     TD_CONFIG_ROW_MANY(type, count, from, to)}
#define TD_ROW_REST(type, member, count, ctype, rows, from, to, help)          \
    {TD_CONFIG_ROW(type, member, ctype *, TD_CONFIG_STRUCT, NULL, help),       \
     .shape = TD_CONFIG_REST, .table = &(rows),                                \
     TD_CONFIG_ROW_MANY(type, count, from, to)}
#define TD_ROW_REFUSED(field, why)                                             \
    {.name = (field), .kind = TD_CONFIG_REFUSED, .help = (why)}

// Reads a document into a new struct. Owned by the caller, with everything it
// points to; free with td_config_table_free(). IO, FORMAT, LIMIT, INVALID,
// NOMEM.
TD_NODISCARD td_err td_config_table_load(const td_config_table *table,
                                         const char *path, void **ret_value,
                                         td_errinfo *info);
TD_NODISCARD td_err td_config_table_parse(const td_config_table *table,
                                          const char *path, const void *data,
                                          size_t size, void **ret_value,
                                          td_errinfo *info);
void td_config_table_free(void *value);

// Prints a line or two for each field, structs below their fields.
void td_config_table_help(const td_config_table *table, FILE *out);

// A page of Markdown made from a table: one row a field, by its path in the
// file. NAME stands for whatever name the file gives, [] for each of a list;
// "reloads" marks what may change while it is used.
void td_config_page_write(const td_config_table *table, FILE *out);

// A JSON Schema made from a table, for editors and checkers that do not know
// us. It says of each field what the table says; what only a check() knows is
// not in it.
void td_config_schema_write(const td_config_table *table, const char *title,
                            FILE *out);

#endif
