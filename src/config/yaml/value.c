// SPDX-License-Identifier: Apache-2.0
// Single values: how each kind of field is read, compared, printed and
// described.
//
// One row a kind, four functions each. Reading is strict: a number is decimal
// and finite, a whole number has no fraction, a bool is true or false, and none
// of them stands in quotes; a text is taken as it is written. Limits come from
// the field's row.
//
// The rule of a field ("1 to 1000", "one of a, b or c") is made from the same
// row that reads it, so that an error, the help and the documentation cannot
// disagree with the parser.
//
// What a file says is shown in errors cut to SHOWN_BYTES, between characters,
// without anything that could steer a terminal.
#include "config/yaml/value.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK_BYTES 64
#define SHOWN_BYTES 48

static bool read_text(const td_config_field *field, const td_config_node *node,
                      void *ret_value)
{
    size_t size = strlen(node->text);
    if ((double)size < field->min || (double)size > field->max) return false;
    *(const char **)ret_value = node->text;
    return true;
}

static bool chunk_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
}

static bool read_chunk(const td_config_field *field, const td_config_node *node,
                       void *ret_value)
{
    size_t size = strlen(node->text);
    if (size == 0 && !field->preset) return false;
    if (size > CHUNK_BYTES || node->text[0] == '.') return false;
    for (size_t i = 0; i < size; i++)
        if (!chunk_char(node->text[i])) return false;
    *(const char **)ret_value = node->text;
    return true;
}

static bool read_endpoint(const td_config_field *field,
                          const td_config_node *node, void *ret_value)
{
    (void)field;
    const char *slash = strchr(node->text, '/');
    if (!slash || slash == node->text || !slash[1]) return false;
    for (const char *at = node->text; *at; at++)
        if ((unsigned char)*at <= ' ' || *at == 0x7f) return false;
    *(const char **)ret_value = node->text;
    return true;
}

static bool read_bool(const td_config_field *field, const td_config_node *node,
                      void *ret_value)
{
    (void)field;
    bool yes = strcmp(node->text, "true") == 0;
    if (node->quoted || (!yes && strcmp(node->text, "false") != 0))
        return false;
    *(bool *)ret_value = yes;
    return true;
}

static bool is_whole(const td_config_node *node)
{
    if (node->kind != TD_CONFIG_SCALAR || node->quoted) return false;
    const char *digits = node->text + (node->text[0] == '-');
    return digits[0] && !digits[strspn(digits, "0123456789")];
}

static bool read_integer(const td_config_field *field,
                         const td_config_node *node, void *ret_value)
{
    errno = 0;
    long long value = strtoll(node->text, NULL, 10);
    if (!is_whole(node) || errno) return false;
    if ((double)value < field->min || (double)value > field->max) return false;
    *(int64_t *)ret_value = value;
    return true;
}

// Decimal only: strtod() alone would also take "inf", "nan" and "0x10".
static bool read_number(const td_config_field *field,
                        const td_config_node *node, void *ret_value)
{
    if (node->text[strspn(node->text, "+-.0123456789eE")]) return false;
    char *end = NULL;
    double value = strtod(node->text, &end);
    if (node->quoted || end == node->text || *end) return false;
    if (!(value >= field->min && value <= field->max)) return false;
    *(double *)ret_value = value;
    return true;
}

static bool read_enum(const td_config_field *field, const td_config_node *node,
                      void *ret_value)
{
    for (int i = 0; field->choices[i]; i++) {
        if (strcmp(field->choices[i], node->text) != 0) continue;
        *(int *)ret_value = i;
        return true;
    }
    return false;
}

static void text_rule(const td_config_field *field, char *ret_text)
{
    snprintf(ret_text, TD_CONFIG_VALUE_TEXT, "text of %.0f to %.0f bytes",
             field->min, field->max);
}

static void chunk_rule(const td_config_field *field, char *ret_text)
{
    (void)field;
    snprintf(ret_text, TD_CONFIG_VALUE_TEXT,
             "1 to %d of A-Z a-z 0-9 . _ -, not starting with '.'",
             CHUNK_BYTES);
}

static void endpoint_rule(const td_config_field *field, char *ret_text)
{
    (void)field;
    snprintf(ret_text, TD_CONFIG_VALUE_TEXT,
             "protocol/address such as tcp/192.168.1.50:7447");
}

static void bool_rule(const td_config_field *field, char *ret_text)
{
    (void)field;
    snprintf(ret_text, TD_CONFIG_VALUE_TEXT, "true or false");
}

static void integer_rule(const td_config_field *field, char *ret_text)
{
    snprintf(ret_text, TD_CONFIG_VALUE_TEXT, "%.0f to %.0f", field->min,
             field->max);
}

static void number_rule(const td_config_field *field, char *ret_text)
{
    snprintf(ret_text, TD_CONFIG_VALUE_TEXT, "%g to %g", field->min,
             field->max);
}

static void enum_rule(const td_config_field *field, char *ret_text)
{
    size_t used = 0;
    ret_text[0] = '\0';
    for (size_t i = 0; field->choices[i] && used < TD_CONFIG_VALUE_TEXT; i++)
        used += (size_t)snprintf(ret_text + used, TD_CONFIG_VALUE_TEXT - used,
                                 "%s%s", i ? ", " : "", field->choices[i]);
}

static void struct_rule(const td_config_field *field, char *ret_text)
{
    (void)field;
    snprintf(ret_text, TD_CONFIG_VALUE_TEXT, "a map of fields");
}

static void clean(const char *text, char ret_text[SHOWN_BYTES + 4]);

static void print_text(const td_config_field *field, const void *value,
                       char *ret_text)
{
    (void)field;
    char text[SHOWN_BYTES + 4];
    clean(*(char *const *)value, text);
    snprintf(ret_text, TD_CONFIG_VALUE_TEXT, "%s", text[0] ? text : "\"\"");
}

static void print_bool(const td_config_field *field, const void *value,
                       char *ret_text)
{
    (void)field;
    snprintf(ret_text, TD_CONFIG_VALUE_TEXT, "%s",
             *(const bool *)value ? "true" : "false");
}

static void print_integer(const td_config_field *field, const void *value,
                          char *ret_text)
{
    (void)field;
    snprintf(ret_text, TD_CONFIG_VALUE_TEXT, "%lld",
             (long long)*(const int64_t *)value);
}

static void print_number(const td_config_field *field, const void *value,
                         char *ret_text)
{
    (void)field;
    snprintf(ret_text, TD_CONFIG_VALUE_TEXT, "%g", *(const double *)value);
}

static void print_enum(const td_config_field *field, const void *value,
                       char *ret_text)
{
    snprintf(ret_text, TD_CONFIG_VALUE_TEXT, "%s",
             field->choices[*(const int *)value]);
}

static const struct {
    size_t bytes;
    bool (*read)(const td_config_field *field, const td_config_node *node,
                 void *ret_value);
    void (*rule)(const td_config_field *field, char *ret_text);
    void (*print)(const td_config_field *field, const void *value,
                  char *ret_text);
} kinds[] = {
    [TD_CONFIG_TEXT] = {sizeof(char *), read_text, text_rule, print_text},
    [TD_CONFIG_CHUNK] = {sizeof(char *), read_chunk, chunk_rule, print_text},
    [TD_CONFIG_ENDPOINT] = {sizeof(char *), read_endpoint, endpoint_rule,
                            print_text},
    [TD_CONFIG_BOOL] = {sizeof(bool), read_bool, bool_rule, print_bool},
    [TD_CONFIG_INTEGER] = {sizeof(int64_t), read_integer, integer_rule,
                           print_integer},
    [TD_CONFIG_NUMBER] = {sizeof(double), read_number, number_rule,
                          print_number},
    [TD_CONFIG_ENUM] = {sizeof(int), read_enum, enum_rule, print_enum},
    [TD_CONFIG_STRUCT] = {0, NULL, struct_rule, NULL},
};

size_t td_config_value_bytes(const td_config_field *field)
{
    return field->table ? field->table->bytes : kinds[field->kind].bytes;
}

td_err td_config_value_read(const td_config_location *location,
                            const td_config_field *field,
                            const td_config_node *node, void *ret_value)
{
    if (node->kind == TD_CONFIG_SCALAR &&
        kinds[field->kind].read(field, node, ret_value))
        return TD_OK;
    char rule[TD_CONFIG_VALUE_TEXT], shown[TD_CONFIG_VALUE_TEXT];
    td_config_value_rule(field, rule);
    td_config_value_shown(node, shown);
    bool whole = field->kind != TD_CONFIG_INTEGER || is_whole(node);
    return td_config_location_fail(location, node, NULL, "must be %s%s, got %s",
                                   whole ? "" : "a whole number, ", rule,
                                   shown);
}

bool td_config_value_same(const td_config_field *field, const void *a,
                          const void *b)
{
    if (kinds[field->kind].print == print_text)
        return strcmp(*(char *const *)a, *(char *const *)b) == 0;
    return memcmp(a, b, kinds[field->kind].bytes) == 0;
}

void td_config_value_print(const td_config_field *field, const void *value,
                           char ret_text[TD_CONFIG_VALUE_TEXT])
{
    kinds[field->kind].print(field, value, ret_text);
}

void td_config_value_rule(const td_config_field *field,
                          char ret_text[TD_CONFIG_VALUE_TEXT])
{
    kinds[field->kind].rule(field, ret_text);
}

// Cut between characters, and nothing that could steer a terminal.
static void clean(const char *text, char ret_text[SHOWN_BYTES + 4])
{
    size_t size = strnlen(text, SHOWN_BYTES);
    bool cut = text[size] != '\0';
    while (cut && size && ((unsigned char)text[size] & 0xc0) == 0x80)
        size--;
    snprintf(ret_text, SHOWN_BYTES + 4, "%.*s%s", (int)size, text,
             cut ? "..." : "");
    for (char *at = ret_text; *at; at++)
        if ((unsigned char)*at < ' ' || *at == 0x7f) *at = '?';
}

void td_config_value_shown(const td_config_node *node,
                           char ret_text[TD_CONFIG_VALUE_TEXT])
{
    static const char *const shapes[] = {
        [TD_CONFIG_SEQUENCE] = "a list", [TD_CONFIG_MAPPING] = "a map"};
    char text[SHOWN_BYTES + 4];
    if (node->kind != TD_CONFIG_SCALAR) {
        snprintf(ret_text, TD_CONFIG_VALUE_TEXT, "%s", shapes[node->kind]);
        return;
    }
    clean(node->text, text);
    const char *quote = node->quoted ? "\"" : "";
    snprintf(ret_text, TD_CONFIG_VALUE_TEXT, "%s%s%s", quote,
             text[0] || node->quoted ? text : "nothing", quote);
}
