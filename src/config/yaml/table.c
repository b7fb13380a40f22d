// SPDX-License-Identifier: Apache-2.0
// YAML to structs by tables: walks a document along a table and fills in a
// struct.
//
// read_struct() first looks for names that no row has, so that a misspelt field
// is an error with the nearest name (by letters that differ) and never a
// default. Then each row is read in the table's order: its node, or its
// default, which is YAML text and read by the same code, so that a default
// cannot be something that the file could not say. Lists and maps become arrays
// in the document's arena. At last the table's own check runs, which sees all
// fields.
//
// A location (config/yaml/location.h) knows its parent, so that an error can
// say "file:line: models[0].engine.latency: what is wrong, what would be
// right".
//
// The struct, all that it points to and the tree of nodes are in one arena;
// td_config_table_free() finds it before the struct. The same tables print the
// help.
#include "config/yaml/table.h"

#include "config/yaml/value.h"

#include <string.h>

// What td_config_table_parse() makes: the caller sees `value`.
typedef struct root {
    td_arena *arena;
    max_align_t value[];
} root;

static td_config_location inside(const td_config_location *parent,
                                 const char *name, size_t index, int line)
{
    td_config_location location = *parent;
    location.parent = parent;
    location.name = name;
    location.index = index;
    location.line = line;
    return location;
}

static size_t least_of(size_t a, size_t b, size_t c)
{
    size_t least = a < b ? a : b;
    return least < c ? least : c;
}

// How many letters differ (Levenshtein); names longer than a row never match.
static size_t distance(const char *a, const char *b)
{
    size_t row[TD_CONFIG_VALUE_TEXT];
    size_t size = strlen(b);
    if (size >= TD_COUNT_OF(row)) return SIZE_MAX;
    for (size_t j = 0; j <= size; j++)
        row[j] = j;
    for (size_t i = 0; a[i]; i++) {
        size_t corner = row[0];
        row[0] = i + 1;
        for (size_t j = 0; j < size; j++) {
            size_t above = row[j + 1];
            row[j + 1] =
                least_of(row[j] + 1, above + 1, corner + (a[i] != b[j]));
            corner = above;
        }
    }
    return row[size];
}

static const char *nearest(const td_config_table *table, const char *name)
{
    const char *best = NULL;
    size_t least = strlen(name) / 3 + 2; // further away is no misspelling
    for (size_t i = 0; i < table->field_count; i++) {
        if (table->fields[i].kind == TD_CONFIG_REFUSED ||
            table->fields[i].shape == TD_CONFIG_REST)
            continue;
        size_t far = distance(table->fields[i].name, name);
        if (far >= least) continue;
        least = far;
        best = table->fields[i].name;
    }
    return best;
}

static bool is_named(const td_config_field *field, const char *name)
{
    return strcmp(field->name, name) == 0 ||
           (field->also && strcmp(field->also, name) == 0);
}

static const td_config_field *find(const td_config_table *table,
                                   const char *name)
{
    for (size_t i = 0; i < table->field_count; i++)
        if (table->fields[i].shape != TD_CONFIG_REST &&
            is_named(&table->fields[i], name))
            return &table->fields[i];
    return NULL;
}

// Whether a member that no row names belongs to the rest. What is no map is
// rather a field that is misspelt.
static bool takes_rest(const td_config_table *table, const td_config_node *node)
{
    if (node->kind != TD_CONFIG_MAPPING && nearest(table, node->key))
        return false;
    for (size_t i = 0; i < table->field_count; i++)
        if (table->fields[i].shape == TD_CONFIG_REST) return true;
    return false;
}

static td_err check_names(const td_config_location *location,
                          const td_config_table *table,
                          const td_config_node *node)
{
    for (const td_config_node *at = node->first; at; at = at->next) {
        const td_config_field *field = find(table, at->key);
        if (field && field->kind == TD_CONFIG_REFUSED &&
            !td_config_node_is_null(at))
            return td_config_location_fail(location, at, field->name, "%s",
                                           field->help);
        if (field || takes_rest(table, at)) continue;
        char shown[TD_CONFIG_VALUE_TEXT];
        td_config_node name = {.line = at->line, .text = at->key};
        td_config_value_shown(&name, shown);
        const char *near = nearest(table, at->key);
        if (near)
            return td_config_location_fail(
                location, at, shown, "no such field, did you mean %s?", near);
        return td_config_location_fail(location, at, shown, "no such field");
    }
    return TD_OK;
}

static td_err read_one(const td_config_location *location,
                       const td_config_field *field, const td_config_node *node,
                       void *value);

static td_err wrong_shape(const td_config_location *location, const char *rule,
                          const td_config_node *node)
{
    char shown[TD_CONFIG_VALUE_TEXT];
    td_config_value_shown(node, shown);
    return td_config_location_fail(location, node, NULL, "must be %s, got %s",
                                   rule, shown);
}

static td_err make_members(const td_config_location *location,
                           const td_config_field *field,
                           const td_config_node *node, void *owner,
                           char **ret_members)
{
    if (node->count < field->least || node->count > field->most)
        return td_config_location_fail(location, node, NULL,
                                       "must have %zu to %zu members, got %zu",
                                       field->least, field->most, node->count);
    char *members = td_arena_alloc(location->arena, node->count,
                                   td_config_value_bytes(field));
    if (!members) return td_config_location_no_memory(location);
    *(void **)((char *)owner + field->offset) = members;
    *(size_t *)((char *)owner + field->count_offset) = node->count;
    *ret_members = members;
    return TD_OK;
}

static td_err read_list(const td_config_location *location,
                        const td_config_field *field,
                        const td_config_node *node, void *owner)
{
    if (node->kind != TD_CONFIG_SEQUENCE)
        return wrong_shape(location, "a list", node);
    char *members = NULL;
    TD_TRY(make_members(location, field, node, owner, &members));
    size_t index = 0;
    for (const td_config_node *at = node->first; at; at = at->next, index++) {
        td_config_location member = inside(location, NULL, index, at->line);
        TD_TRY(read_one(&member, field, at,
                        members + index * td_config_value_bytes(field)));
    }
    return TD_OK;
}

static td_err check_unique(const td_config_location *location,
                           const td_config_node *list,
                           const td_config_node *node)
{
    for (const td_config_node *at = list->first; at != node; at = at->next)
        if (!node->key && strcmp(at->text, node->text) == 0)
            return td_config_location_fail(location, node, NULL,
                                           "%.64s is given twice", node->text);
    return TD_OK;
}

// A name alone, in a list or before nothing, takes every field by default.
static td_err read_named(const td_config_location *location,
                         const td_config_field *field,
                         const td_config_node *node, const char *name,
                         void *value)
{
    static const td_config_field rule = {.min = 1, .max = 64};
    td_config_node text = {.line = node->line, .text = name, .quoted = true};
    td_config_node bare = {.kind = TD_CONFIG_MAPPING, .line = node->line};
    TD_TRY(td_config_value_read(location, &rule, &text, value));
    bool alone = !node->key || td_config_node_is_null(node);
    return read_one(location, field, alone ? &bare : node, value);
}

static td_err read_map(const td_config_location *location,
                       const td_config_field *field, const td_config_node *node,
                       void *owner)
{
    if (node->kind == TD_CONFIG_SCALAR)
        return wrong_shape(location, "a map or a list of names", node);
    char *members = NULL;
    TD_TRY(make_members(location, field, node, owner, &members));
    size_t index = 0;
    for (const td_config_node *at = node->first; at; at = at->next, index++) {
        td_config_location member = inside(location, at->key, index, at->line);
        if (!at->key && at->kind != TD_CONFIG_SCALAR)
            return wrong_shape(&member, "a name", at);
        TD_TRY(check_unique(&member, node, at));
        TD_TRY(read_named(&member, field, at, at->key ? at->key : at->text,
                          members + index * td_config_value_bytes(field)));
    }
    return TD_OK;
}

static bool is_rest(const td_config_table *table, const td_config_node *node)
{
    return !find(table, node->key) && !td_config_node_is_null(node);
}

static td_err read_rest(const td_config_location *owner,
                        const td_config_table *table,
                        const td_config_field *field, const td_config_node *map,
                        void *value)
{
    td_config_location location = inside(owner, field->name, 0, map->line);
    td_config_node rest = {.line = map->line};
    for (const td_config_node *at = map->first; at; at = at->next)
        rest.count += is_rest(table, at);
    char *member = NULL;
    TD_TRY(make_members(&location, field, &rest, value, &member));
    for (const td_config_node *at = map->first; at; at = at->next) {
        if (!is_rest(table, at)) continue;
        td_config_location named = inside(owner, at->key, 0, at->line);
        TD_TRY(read_named(&named, field, at, at->key, member));
        member += td_config_value_bytes(field);
    }
    return TD_OK;
}

static td_err read_preset(const td_config_location *location,
                          const td_config_field *field,
                          const td_config_node **ret_node)
{
    td_config_node *node = NULL;
    TD_TRY(td_config_yaml_parse(location->arena, field->name, field->preset,
                                strlen(field->preset), &node, location->info));
    *ret_node = node;
    return TD_OK;
}

static td_err missing(const td_config_location *location,
                      const td_config_field *field)
{
    static const char *const shapes[] = {
        [TD_CONFIG_LIST] = "a list", [TD_CONFIG_MAP] = "a map"};
    char rule[TD_CONFIG_VALUE_TEXT];
    td_config_value_rule(field, rule);
    return td_config_location_fail(location, NULL, field->name,
                                   "is missing, must be %s",
                                   field->shape ? shapes[field->shape] : rule);
}

// What the map says of a field, under one of its names; NULL when it is not
// there.
static td_err find_node(const td_config_location *owner,
                        const td_config_field *field, const td_config_node *map,
                        const td_config_node **ret_node)
{
    const td_config_node *node = td_config_node_get(map, field->name);
    const td_config_node *also =
        field->also ? td_config_node_get(map, field->also) : NULL;
    if (node && also)
        return td_config_location_fail(
            owner, also, field->also,
            "is another name of %s, which is given too: move "
            "its members there",
            field->name);
    *ret_node = node ? node : also;
    return TD_OK;
}

static td_err read_field(const td_config_location *owner,
                         const td_config_table *table,
                         const td_config_field *field,
                         const td_config_node *map, void *value)
{
    if (field->kind == TD_CONFIG_REFUSED) return TD_OK;
    if (field->shape == TD_CONFIG_REST)
        return read_rest(owner, table, field, map, value);
    const td_config_node *node = NULL;
    TD_TRY(find_node(owner, field, map, &node));
    td_config_location location = inside(owner, node ? node->key : field->name,
                                         0, node ? node->line : owner->line);
    if (!node && !field->preset) return missing(owner, field);
    if (!node) TD_TRY(read_preset(&location, field, &node));

    switch (field->shape) {
    case TD_CONFIG_LIST:
        return read_list(&location, field, node, value);
    case TD_CONFIG_MAP:
        return read_map(&location, field, node, value);
    case TD_CONFIG_REST:
    case TD_CONFIG_ONE:
        break;
    }
    return read_one(&location, field, node, (char *)value + field->offset);
}

static td_err read_struct(const td_config_location *location,
                          const td_config_table *table,
                          const td_config_node *node, void *value)
{
    if (node->kind != TD_CONFIG_MAPPING)
        return wrong_shape(location, "a map of fields", node);
    TD_TRY(check_names(location, table, node));
    for (size_t i = 0; i < table->field_count; i++)
        TD_TRY(read_field(location, table, &table->fields[i], node, value));
    return table->check ? table->check(location, node, value) : TD_OK;
}

static td_err read_one(const td_config_location *location,
                       const td_config_field *field, const td_config_node *node,
                       void *value)
{
    if (field->kind == TD_CONFIG_STRUCT)
        return read_struct(location, field->table, node, value);
    return td_config_value_read(location, field, node, value);
}

static td_err parse_into(td_arena *arena, const td_config_table *table,
                         const char *path, td_slice data, root **ret_root,
                         td_errinfo *info)
{
    td_config_node *node = NULL;
    TD_TRY(td_config_yaml_parse(arena, td_config_location_shown_path(path),
                                data.data, data.size, &node, info));
    td_config_location location = {
        .line = node->line, .file = path, .arena = arena, .info = info};
    root *made = td_arena_alloc(arena, 1, sizeof *made + table->bytes);
    if (!made) return td_config_location_no_memory(&location);
    TD_TRY(read_struct(&location, table, node, made->value));
    made->arena = arena;
    *ret_root = made;
    return TD_OK;
}

td_err td_config_table_parse(const td_config_table *table, const char *path,
                             const void *data, size_t size, void **ret_value,
                             td_errinfo *info)
{
    TD_AUTO(td_arena) *arena = NULL;
    TD_TRY(td_arena_new(&arena));
    root *made = NULL;
    TD_TRY(parse_into(arena, table, path, (td_slice){data, size}, &made, info));
    *ret_value = made->value;
    arena = NULL; // now the root's
    return TD_OK;
}

td_err td_config_table_load(const td_config_table *table, const char *path,
                            void **ret_value, td_errinfo *info)
{
    TD_AUTO(td_arena) *bytes = NULL;
    TD_TRY(td_arena_new(&bytes));
    td_slice data = {0};
    TD_TRY(td_config_yaml_load(bytes, path, &data, info));
    return td_config_table_parse(table, path, data.data, data.size, ret_value,
                                 info);
}

void td_config_table_free(void *value)
{
    root *made = (root *)((char *)value - offsetof(root, value));
    td_arena_free(made->arena);
}

static void help_field(const td_config_field *field, int indent, bool live,
                       FILE *out)
{
    static const char *const many[] = {[TD_CONFIG_ONE] = "",
                                       [TD_CONFIG_LIST] = "a list, each ",
                                       [TD_CONFIG_MAP] = "names, each ",
                                       [TD_CONFIG_REST] = "each "};
    const char *name = field->shape == TD_CONFIG_REST ? "NAME" : field->name;
    char rule[TD_CONFIG_VALUE_TEXT];
    td_config_value_rule(field, rule);
    fprintf(out, "%*s%s: %s%s", indent, "", name, many[field->shape], rule);
    if (field->preset)
        fprintf(out, " (default %s)", field->preset);
    else
        fprintf(out, " (required)");
    fprintf(out, "\n%*s%s", indent + 4, "", field->help);
    if (field->also) fprintf(out, "; also read as %s", field->also);
    fprintf(out, "%s\n", live ? "; reloads" : "");
}

static void help_table(const td_config_table *table, int indent, bool live,
                       FILE *out)
{
    for (size_t i = 0; i < table->field_count; i++) {
        const td_config_field *field = &table->fields[i];
        if (field->kind == TD_CONFIG_REFUSED) continue;
        bool reloads = live || field->live;
        help_field(field, indent, reloads, out);
        if (field->table) help_table(field->table, indent + 2, reloads, out);
    }
}

void td_config_table_help(const td_config_table *table, FILE *out)
{
    help_table(table, 0, false, out);
}
