// SPDX-License-Identifier: Apache-2.0
#include "config/yaml/location.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define SHOWN_PATH 200
#define SHOWN_FIELD 160
#define SHOWN_WHERE (SHOWN_PATH + SHOWN_FIELD + 16)

static size_t print_location(const td_config_location *location, char *text,
                             size_t room)
{
    size_t used =
        location->parent ? print_location(location->parent, text, room) : 0;
    if (used >= room || !location->parent) return used;
    char *at = text + used;
    int more =
        location->name
            ? snprintf(at, room - used, "%s%s", used ? "." : "", location->name)
            : snprintf(at, room - used, "[%zu]", location->index);
    return used + (size_t)more;
}

const char *td_config_location_shown_path(const char *file)
{
    size_t size = strlen(file);
    return size > SHOWN_PATH ? file + size - SHOWN_PATH : file;
}

static void print_where(const td_config_location *location,
                        const td_config_node *node, const char *field,
                        char ret_text[SHOWN_WHERE])
{
    char where[SHOWN_FIELD] = "";
    td_config_location at = {.parent = location, .name = field};
    print_location(field ? &at : location, where, sizeof where);
    (void)snprintf(ret_text, SHOWN_WHERE, "%s:%d%s%s",
                   td_config_location_shown_path(location->file),
                   node ? node->line : location->line, where[0] ? ": " : "",
                   where);
}

td_err td_config_location_fail(const td_config_location *location,
                               const td_config_node *node, const char *field,
                               const char *fmt, ...)
{
    char where[SHOWN_WHERE], what[256];
    print_where(location, node, field, where);
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(what, sizeof what, fmt, args);
    va_end(args);
    return td_fail(location->info, TD_ERR_INVALID, "%s: %s", where, what);
}

td_err td_config_location_no_memory(const td_config_location *location)
{
    return td_fail(location->info, TD_ERR_NOMEM, "%s: out of memory",
                   td_config_location_shown_path(location->file));
}

td_err td_config_location_print(const td_config_location *location,
                                const td_config_node *node, const char *field,
                                const char **ret_where)
{
    char text[SHOWN_WHERE];
    print_where(location, node, field, text);
    const char *where = td_arena_print(location->arena, "%s", text);
    if (!where) return td_config_location_no_memory(location);
    *ret_where = where;
    return TD_OK;
}

td_err td_config_location_beside(const td_config_location *location,
                                 const char **path)
{
    const char *slash = strrchr(location->file, '/');
    if (!slash || (*path)[0] == '/' || !(*path)[0]) return TD_OK;
    const char *full =
        td_arena_print(location->arena, "%.*s/%s",
                       (int)(slash - location->file), location->file, *path);
    if (!full) return td_config_location_no_memory(location);
    *path = full;
    return TD_OK;
}
