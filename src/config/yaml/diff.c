// SPDX-License-Identifier: Apache-2.0
#include "config/yaml/diff.h"

#include "config/yaml/value.h"

#include <string.h>

#define PATH_BYTES 160

// Where the walk is, and who gets the differences.
typedef struct walk {
    td_config_on_change on_change;
    void *user;
    const char *path;
    bool live;
} walk;

static const void *first_of(const td_config_field *field, const void *owner)
{
    return *(void *const *)((const char *)owner + field->offset);
}

static size_t count_of(const td_config_field *field, const void *owner)
{
    return *(const size_t *)((const char *)owner + field->count_offset);
}

static const void *member_of(const td_config_field *field, const void *owner,
                             size_t index)
{
    return (const char *)first_of(field, owner) +
           index * td_config_value_bytes(field);
}

static bool same_field(const td_config_field *field, const void *a,
                       const void *b);

static bool same_one(const td_config_field *field, const void *a, const void *b)
{
    if (field->kind != TD_CONFIG_STRUCT)
        return td_config_value_same(field, a, b);
    for (size_t i = 0; i < field->table->field_count; i++)
        if (!same_field(&field->table->fields[i], a, b)) return false;
    return true;
}

static bool same_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b) == 0;
}

static bool same_many(const td_config_field *field, const void *a,
                      const void *b)
{
    if (count_of(field, a) != count_of(field, b)) return false;
    for (size_t i = 0; i < count_of(field, a); i++) {
        const void *one = member_of(field, a, i);
        const void *other = member_of(field, b, i);
        bool named = field->shape != TD_CONFIG_LIST;
        if (named && !same_name(one, other)) return false;
        if (!same_one(field, one, other)) return false;
    }
    return true;
}

static bool same_field(const td_config_field *field, const void *a,
                       const void *b)
{
    if (field->kind == TD_CONFIG_REFUSED) return true;
    if (field->shape != TD_CONFIG_ONE) return same_many(field, a, b);
    return same_one(field, (const char *)a + field->offset,
                    (const char *)b + field->offset);
}

static void add_change(const walk *at, td_config_change_kind kind,
                       const char *was, const char *now)
{
    const td_config_change change = {
        .kind = kind,
        .field = at->path,
        .was = was,
        .now = now,
        .live = at->live && kind == TD_CONFIG_CHANGED,
    };
    at->on_change(at->user, &change);
}

static void walk_struct(const walk *at, const td_config_table *table,
                        const void *was, const void *now);

static const void *like(const td_config_field *field, const void *owner,
                        const void *member)
{
    for (size_t i = 0; i < count_of(field, owner); i++)
        if (field->same(member_of(field, owner, i), member))
            return member_of(field, owner, i);
    return NULL;
}

// Tells of the members that `other` lacks; in the newer list also looks into
// the rest.
static void walk_members(const walk *at, const td_config_field *field,
                         const void *owner, const void *other,
                         td_config_change_kind kind)
{
    for (size_t i = 0; i < count_of(field, owner); i++) {
        char path[PATH_BYTES];
        (void)snprintf(path, sizeof path, "%.128s[%zu]", at->path, i);
        walk inside = *at;
        inside.path = path;
        const void *member = member_of(field, owner, i);
        const void *namesake = like(field, other, member);
        if (!namesake)
            add_change(&inside, kind, "", "");
        else if (kind == TD_CONFIG_ADDED)
            walk_struct(&inside, field->table, namesake, member);
    }
}

static void add_value_change(const walk *at, const td_config_field *field,
                             const void *was, const void *now)
{
    char before[TD_CONFIG_VALUE_TEXT] = "", after[TD_CONFIG_VALUE_TEXT] = "";
    if (field->shape == TD_CONFIG_ONE) {
        td_config_value_print(field, (const char *)was + field->offset, before);
        td_config_value_print(field, (const char *)now + field->offset, after);
    }
    add_change(at, TD_CONFIG_CHANGED, before, after);
}

static void walk_field(const walk *at, const td_config_field *field,
                       const void *was, const void *now)
{
    if (same_field(field, was, now)) return;
    if (field->same) {
        walk_members(at, field, now, was, TD_CONFIG_ADDED);
        walk_members(at, field, was, now, TD_CONFIG_REMOVED);
    } else if (field->shape == TD_CONFIG_ONE &&
               field->kind == TD_CONFIG_STRUCT) {
        walk_struct(at, field->table, (const char *)was + field->offset,
                    (const char *)now + field->offset);
    } else {
        add_value_change(at, field, was, now);
    }
}

static void walk_struct(const walk *at, const td_config_table *table,
                        const void *was, const void *now)
{
    for (size_t i = 0; i < table->field_count; i++) {
        const td_config_field *field = &table->fields[i];
        char path[PATH_BYTES];
        (void)snprintf(path, sizeof path, "%s%s%s", at->path,
                       at->path[0] ? "." : "", field->name);
        walk inside = *at;
        inside.path = path;
        inside.live = at->live || field->live;
        walk_field(&inside, field, was, now);
    }
}

void td_config_diff(const td_config_table *table, const void *was,
                    const void *now, td_config_on_change on_change, void *user)
{
    const walk at = {.on_change = on_change, .user = user, .path = ""};
    walk_struct(&at, table, was, now);
}
