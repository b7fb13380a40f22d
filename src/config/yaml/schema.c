// SPDX-License-Identifier: Apache-2.0
#include "config/yaml/table.h"

#include "base/json/json.h"
#include "config/yaml/value.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static void write_struct(td_json *json, const td_config_table *table);

static void write_text(td_json *json, const td_config_field *field)
{
    td_json_text(json, "type", "string");
    td_json_whole(json, "minLength", field->min > 0); // bytes, not letters
    td_json_whole(json, "maxLength", (uint64_t)field->max);
}

// Keys are read as they stand, so that `007` is a name; a schema's reader may
// see a number there.
static void write_chunk(td_json *json, const td_config_field *field)
{
    td_json_array(json, "type");
    td_json_text(json, NULL, "string");
    td_json_text(json, NULL, "number");
    td_json_end_array(json);
    td_json_text(json, "pattern",
                 field->preset ? "^([A-Za-z0-9_-][A-Za-z0-9._-]{0,63})?$"
                               : "^[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}$");
}

static void write_endpoint(td_json *json, const td_config_field *field)
{
    (void)field;
    td_json_text(json, "type", "string");
    td_json_text(json, "pattern", "^[^/]+/.");
}

static void write_bool(td_json *json, const td_config_field *field)
{
    (void)field;
    td_json_text(json, "type", "boolean");
}

static void write_range(td_json *json, const td_config_field *field)
{
    bool whole = field->kind == TD_CONFIG_INTEGER;
    td_json_text(json, "type", whole ? "integer" : "number");
    td_json_number(json, "minimum", field->min);
    td_json_number(json, "maximum", field->max);
}

static void write_enum(td_json *json, const td_config_field *field)
{
    td_json_array(json, "enum");
    for (size_t i = 0; field->choices[i]; i++)
        td_json_text(json, NULL, field->choices[i]);
    td_json_end_array(json);
}

static void write_inside(td_json *json, const td_config_field *field)
{
    write_struct(json, field->table);
}

static void (*const kinds[])(td_json *json, const td_config_field *field) = {
    [TD_CONFIG_TEXT] = write_text,         [TD_CONFIG_CHUNK] = write_chunk,
    [TD_CONFIG_ENDPOINT] = write_endpoint, [TD_CONFIG_BOOL] = write_bool,
    [TD_CONFIG_INTEGER] = write_range,     [TD_CONFIG_NUMBER] = write_range,
    [TD_CONFIG_ENUM] = write_enum,         [TD_CONFIG_STRUCT] = write_inside,
};

static void write_each(td_json *json, const char *name,
                       const td_config_field *field)
{
    assert(field->kind < TD_COUNT_OF(kinds)); // REFUSED is never shown
    td_json_object(json, name);
    kinds[field->kind](json, field);
    td_json_end_object(json);
}

static void write_list(td_json *json, const td_config_field *field)
{
    td_json_text(json, "type", "array");
    td_json_whole(json, "minItems", field->least);
    td_json_whole(json, "maxItems", field->most);
    write_each(json, "items", field);
}

static bool may_be_bare(const td_config_table *table)
{
    for (size_t i = 0; i < table->field_count; i++)
        if (!table->fields[i].preset &&
            table->fields[i].kind != TD_CONFIG_REFUSED)
            return false;
    return true;
}

static void write_named(td_json *json, const td_config_field *field)
{
    td_json_object(json, NULL);
    td_json_text(json, "type", "object");
    td_json_whole(json, "minProperties", field->least);
    td_json_whole(json, "maxProperties", field->most);
    write_each(json, "additionalProperties", field);
    td_json_end_object(json);
}

static void write_names(td_json *json, const td_config_field *field)
{
    static const td_config_field name = {.min = 1, .max = 64};
    td_json_object(json, NULL);
    td_json_text(json, "type", "array");
    td_json_whole(json, "minItems", field->least);
    td_json_whole(json, "maxItems", field->most);
    td_json_bool(json, "uniqueItems", true);
    write_each(json, "items", &name);
    td_json_end_object(json);
}

static void write_map(td_json *json, const td_config_field *field)
{
    td_json_array(json, "anyOf");
    write_named(json, field);
    if (may_be_bare(field->table)) write_names(json, field);
    td_json_end_array(json);
}

// Of one value; those of lists and structs are words for people.
static void write_preset(td_json *json, const td_config_field *field)
{
    if (!field->preset || field->shape || field->kind == TD_CONFIG_STRUCT)
        return;
    if (field->kind == TD_CONFIG_INTEGER || field->kind == TD_CONFIG_NUMBER)
        td_json_number(json, "default", strtod(field->preset, NULL));
    else if (field->kind == TD_CONFIG_BOOL)
        td_json_bool(json, "default", strcmp(field->preset, "true") == 0);
    else
        td_json_text(json, "default",
                     strcmp(field->preset, "\"\"") == 0 ? "" : field->preset);
}

static void write_field(td_json *json, const char *name,
                        const td_config_field *field)
{
    if (field->kind == TD_CONFIG_REFUSED) {
        td_json_bool(json, name, false);
        return;
    }
    td_json_object(json, name);
    td_json_text(json, "description", field->help);
    write_preset(json, field);
    if (field->shape == TD_CONFIG_LIST)
        write_list(json, field);
    else if (field->shape == TD_CONFIG_MAP)
        write_map(json, field);
    else
        kinds[field->kind](json, field);
    td_json_end_object(json);
}

static bool is_required(const td_config_field *field)
{
    return !field->preset && field->kind != TD_CONFIG_REFUSED &&
           field->shape != TD_CONFIG_REST;
}

static void write_requires(td_json *json, const char *name)
{
    td_json_object(json, NULL);
    td_json_array(json, "required");
    td_json_text(json, NULL, name);
    td_json_end_array(json);
    td_json_end_object(json);
}

// A field of two names is required under exactly one of them. A table has at
// most one such field, because `oneOf` stands once.
static void write_required(td_json *json, const td_config_table *table)
{
    const td_config_field *either = NULL;
    td_json_array(json, "required");
    for (size_t i = 0; i < table->field_count; i++) {
        const td_config_field *field = &table->fields[i];
        if (!is_required(field)) continue;
        if (field->also)
            either = field;
        else
            td_json_text(json, NULL, field->name);
    }
    td_json_end_array(json);
    if (!either) return;
    td_json_array(json, "oneOf");
    write_requires(json, either->name);
    write_requires(json, either->also);
    td_json_end_array(json);
}

static void write_struct(td_json *json, const td_config_table *table)
{
    const td_config_field *rest = NULL;
    td_json_text(json, "type", "object");
    td_json_object(json, "properties");
    for (size_t i = 0; i < table->field_count; i++) {
        const td_config_field *field = &table->fields[i];
        if (field->shape == TD_CONFIG_REST)
            rest = field;
        else
            write_field(json, field->name, field);
        if (field->also) write_field(json, field->also, field);
    }
    td_json_end_object(json);
    write_required(json, table);
    if (rest)
        write_each(json, "additionalProperties", rest);
    else
        td_json_bool(json, "additionalProperties", false);
}

void td_config_schema_write(const td_config_table *table, const char *title,
                            FILE *out)
{
    td_json json;
    td_json_init(&json, out);
    td_json_object(&json, NULL);
    td_json_text(&json, "$schema",
                 "https://json-schema.org/draft/2020-12/schema");
    td_json_text(&json, "title", title);
    write_struct(&json, table);
    td_json_end_object(&json);
    (void)fputc('\n', out);
}
