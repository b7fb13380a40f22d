// SPDX-License-Identifier: Apache-2.0
// A YAML document as a tree of nodes that know their lines, over libyaml's
// events.
//
// Less than all of YAML is taken, so that a file means what it looks like and
// no small file becomes a large tree: one document, no anchors, aliases or
// tags, no key twice, keys that are texts, and limits of bytes, depth and nodes
// that are checked before memory is taken.
//
// The parser is recursive, as deep as the depth allowed. Each event is deleted
// whatever becomes of it; nodes and texts are the arena's, so that an error in
// the middle leaves nothing to free.
//
// td_config_yaml_load() reads a file up to the limit and no further, also one
// that grows or has no size.
#include "config/yaml/yaml.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <yaml.h>

typedef struct loader {
    yaml_parser_t parser;
    td_arena *arena;
    const char *file;
    td_errinfo *info;
    size_t nodes;
} loader;

static td_err no_memory(const loader *load)
{
    return td_fail(load->info, TD_ERR_NOMEM, "%s: out of memory", load->file);
}

static td_err parser_error(const loader *load)
{
    const yaml_parser_t *parser = &load->parser;
    if (parser->error == YAML_MEMORY_ERROR) return no_memory(load);
    return td_fail(load->info, TD_ERR_FORMAT, "%s:%zu: not YAML: %s",
                   load->file, parser->problem_mark.line + 1, parser->problem);
}

static td_err refuse(const loader *load, const yaml_event_t *event, td_err err,
                     const char *what)
{
    return td_fail(load->info, err, "%s:%zu: %s", load->file,
                   event->start_mark.line + 1, what);
}

// Anchors and tags stand on the event that they belong to.
static td_err check_event(const loader *load, const yaml_event_t *event)
{
    const yaml_char_t *anchor = NULL, *tag = NULL;
    switch (event->type) {
    case YAML_SCALAR_EVENT:
        anchor = event->data.scalar.anchor;
        tag = event->data.scalar.tag;
        break;
    case YAML_SEQUENCE_START_EVENT:
        anchor = event->data.sequence_start.anchor;
        tag = event->data.sequence_start.tag;
        break;
    case YAML_MAPPING_START_EVENT:
        anchor = event->data.mapping_start.anchor;
        tag = event->data.mapping_start.tag;
        break;
    case YAML_ALIAS_EVENT:
        return refuse(load, event, TD_ERR_FORMAT,
                      "aliases (*name) are not taken: write the value out");
    default:
        break;
    }
    if (anchor)
        return refuse(load, event, TD_ERR_FORMAT,
                      "anchors (&name) are not taken: write the value out");
    if (tag)
        return refuse(load, event, TD_ERR_FORMAT,
                      "tags (!name) are not taken: write the value alone");
    return TD_OK;
}

// The caller deletes the event, whatever is returned.
static td_err next_event(loader *load, yaml_event_t *ret_event)
{
    if (!yaml_parser_parse(&load->parser, ret_event)) return parser_error(load);
    return check_event(load, ret_event);
}

static td_err scalar_text(loader *load, const yaml_event_t *event,
                          const char **ret_text)
{
    const char *value = (const char *)event->data.scalar.value;
    size_t size = event->data.scalar.length;
    if (memchr(value, '\0', size))
        return refuse(load, event, TD_ERR_FORMAT, "a zero byte in a text");
    char *text = td_arena_copy(load->arena, value, size);
    if (!text) return no_memory(load);
    *ret_text = text;
    return TD_OK;
}

static td_err check_key(const loader *load, const yaml_event_t *event,
                        const td_config_node *map)
{
    if (event->type != YAML_SCALAR_EVENT)
        return refuse(load, event, TD_ERR_FORMAT,
                      "the name of a field must be plain text");
    const char *key = (const char *)event->data.scalar.value;
    for (const td_config_node *at = map->first; at; at = at->next) {
        if (strcmp(at->key, key) != 0) continue;
        return td_fail(load->info, TD_ERR_FORMAT,
                       "%s:%zu: %.64s: given twice, first on line %d",
                       load->file, event->start_mark.line + 1, key, at->line);
    }
    return TD_OK;
}

static td_err read_node(loader *load, const yaml_event_t *event, int depth,
                        td_config_node **ret_node);

static void append(td_config_node *parent, td_config_node **last,
                   td_config_node *node)
{
    if (*last)
        (*last)->next = node;
    else
        parent->first = node;
    *last = node;
    parent->count++;
}

static void event_done(yaml_event_t *event)
{
    yaml_event_delete(event);
}
#define AUTO_EVENT __attribute__((cleanup(event_done))) yaml_event_t

static td_err read_entry(loader *load, const yaml_event_t *name,
                         td_config_node *map, int depth,
                         td_config_node **ret_node)
{
    TD_TRY(check_key(load, name, map));
    const char *key = NULL;
    TD_TRY(scalar_text(load, name, &key));

    AUTO_EVENT value = {0};
    TD_TRY(next_event(load, &value));
    td_config_node *node = NULL;
    TD_TRY(read_node(load, &value, depth, &node));
    node->key = key;
    node->line = (int)name->start_mark.line + 1;
    *ret_node = node;
    return TD_OK;
}

static td_err read_members(loader *load, td_config_node *parent, int depth)
{
    bool map = parent->kind == TD_CONFIG_MAPPING;
    td_config_node *last = NULL;
    for (;;) {
        AUTO_EVENT event = {0};
        TD_TRY(next_event(load, &event));
        if (event.type == YAML_SEQUENCE_END_EVENT ||
            event.type == YAML_MAPPING_END_EVENT)
            return TD_OK;
        td_config_node *node = NULL;
        TD_TRY(map ? read_entry(load, &event, parent, depth, &node)
                   : read_node(load, &event, depth, &node));
        append(parent, &last, node);
    }
}

static td_err read_node(loader *load, const yaml_event_t *event, int depth,
                        td_config_node **ret_node)
{
    if (depth > TD_CONFIG_YAML_MAX_DEPTH)
        return refuse(load, event, TD_ERR_LIMIT, "nested too deeply");
    if (++load->nodes > TD_CONFIG_YAML_MAX_NODES)
        return refuse(load, event, TD_ERR_LIMIT, "too many values");

    td_config_node *node = td_arena_alloc(load->arena, 1, sizeof *node);
    if (!node) return no_memory(load);
    node->line = (int)event->start_mark.line + 1;
    *ret_node = node;
    if (event->type == YAML_SCALAR_EVENT) {
        node->quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
        return scalar_text(load, event, &node->text);
    }
    node->kind = event->type == YAML_MAPPING_START_EVENT ? TD_CONFIG_MAPPING
                                                         : TD_CONFIG_SEQUENCE;
    return read_members(load, node, depth + 1);
}

static td_err expect_end(loader *load)
{
    AUTO_EVENT document = {0}, end = {0};
    TD_TRY(next_event(load, &document));
    TD_TRY(next_event(load, &end));
    if (end.type == YAML_STREAM_END_EVENT) return TD_OK;
    return refuse(load, &end, TD_ERR_FORMAT, "a second document: one is taken");
}

static td_err read_document(loader *load, td_config_node **ret_root)
{
    AUTO_EVENT stream = {0}, document = {0}, event = {0};
    TD_TRY(next_event(load, &stream));
    TD_TRY(next_event(load, &document));
    if (document.type == YAML_STREAM_END_EVENT)
        return refuse(load, &document, TD_ERR_FORMAT, "the file is empty");
    TD_TRY(next_event(load, &event));
    td_config_node *root = NULL;
    TD_TRY(read_node(load, &event, 1, &root));
    TD_TRY(expect_end(load));
    *ret_root = root;
    return TD_OK;
}

td_err td_config_yaml_parse(td_arena *arena, const char *file, const void *data,
                            size_t size, td_config_node **ret_root,
                            td_errinfo *info)
{
    if (size > TD_CONFIG_YAML_MAX_BYTES)
        return td_fail(info, TD_ERR_LIMIT, "%s: larger than %u bytes", file,
                       TD_CONFIG_YAML_MAX_BYTES);
    loader load = {.arena = arena, .file = file, .info = info};
    if (!yaml_parser_initialize(&load.parser)) return no_memory(&load);
    yaml_parser_set_encoding(&load.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&load.parser, size ? data : "", size);
    td_err err = read_document(&load, ret_root);
    yaml_parser_delete(&load.parser);
    return err;
}

td_err td_config_yaml_load(td_arena *arena, const char *path,
                           td_slice *ret_data, td_errinfo *info)
{
    FILE *file = fopen(path, "re");
    if (!file) return td_fail(info, TD_ERR_IO, "%s: %s", path, strerror(errno));
    size_t room = TD_CONFIG_YAML_MAX_BYTES + 1;
    char *data = td_arena_alloc(arena, room, 1);
    size_t size = data ? fread(data, 1, room, file) : 0;
    int error = ferror(file) ? errno : 0;
    fclose(file);

    if (!data) return td_fail(info, TD_ERR_NOMEM, "%s: out of memory", path);
    if (error) return td_fail(info, TD_ERR_IO, "%s: %s", path, strerror(error));
    *ret_data = (td_slice){data, size};
    return TD_OK;
}

bool td_config_node_is_null(const td_config_node *node)
{
    if (node->kind != TD_CONFIG_SCALAR || node->quoted) return false;
    return !node->text[0] || strcmp(node->text, "~") == 0 ||
           strcmp(node->text, "null") == 0;
}

const td_config_node *td_config_node_get(const td_config_node *node,
                                         const char *key)
{
    if (node->kind != TD_CONFIG_MAPPING) return NULL;
    for (const td_config_node *at = node->first; at; at = at->next)
        if (strcmp(at->key, key) == 0)
            return td_config_node_is_null(at) ? NULL : at;
    return NULL;
}
