// SPDX-License-Identifier: Apache-2.0
// Reads a plan file: what td_plan_write() wrote, and what else claims to be
// that.
//
// Objects are read by the tables of file/file.c, one row a member with its kind
// and its place in the struct, the same tables that the writer uses. Every
// member is checked for its type and range, every id that a stream names is
// looked up among the servers, and every index is held to the list that it
// points into, so that whoever has a plan may use its indices as they are.
// Members that the tables do not name are left alone: a newer version may have
// added them. A member marked ADDED is 0 in files that are older than it.
//
// An error names the file and the place in it ("robots[3].streams[1]: ...").
//
// Texts and lists are in the plan's own arena; when reading fails half way,
// freeing the plan frees all of it.
#include "base/json/read.h"
#include "plan/file/file.h"
#include "plan/memory.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define MOST_BYTES (64u << 20)
#define MOST_MEMBERS 1000000 // of a list
#define MOST_NUMBER 1e12

typedef struct reader {
    const char *file;
    td_errinfo *info;
    td_arena *arena; // the plan's
    td_plan *plan;
    td_plan_server **by_id; // servers in the order of their ids
} reader;

// An object of the file: "robots", 3, or in it "streams", 1.
typedef struct place {
    const reader *in;
    const json_t *object;
    const char *list; // "": the file itself
    size_t index;
    const struct place *above; // NULL: the file
} place;

static void name_place(const place *at, char *out, size_t room)
{
    size_t used = 0;
    out[0] = '\0';
    if (at->above) {
        name_place(at->above, out, room);
        used = strlen(out);
    }
    if (at->list[0])
        (void)snprintf(out + used, room - used, "%s[%zu].", at->list,
                       at->index);
}

static td_err TD_PRINTF(3, 4)
    fail(const place *at, const char *name, const char *fmt, ...)
{
    char where[64];
    char what[200];
    va_list args;
    name_place(at, where, sizeof where);
    va_start(args, fmt);
    (void)vsnprintf(what, sizeof what, fmt, args);
    va_end(args);
    return td_fail(at->in->info, TD_ERR_FORMAT, "%s: %s%s: %s", at->in->file,
                   where, name, what);
}

// A text of the plan's own; NULL where it is null.
static td_err read_text(const place *at, const char *name, bool may_be_null,
                        const char **ret_text)
{
    const json_t *value = json_object_get(at->object, name);
    *ret_text = NULL;
    if (may_be_null && json_is_null(value)) return TD_OK;
    if (!json_is_string(value))
        return fail(at, name, "must be a text%s",
                    may_be_null ? " or null" : "");
    *ret_text = td_arena_copy(at->in->arena, json_string_value(value),
                              json_string_length(value));
    return *ret_text ? TD_OK : TD_ERR_NOMEM;
}

static td_err read_whole(const place *at, const char *name, uint32_t *ret_whole)
{
    const json_t *value = json_object_get(at->object, name);
    json_int_t whole = json_integer_value(value);
    if (!json_is_integer(value) || whole < 0 || whole >= UINT32_MAX)
        return fail(at, name, "must be a whole number, 0 or more");
    *ret_whole = (uint32_t)whole;
    return TD_OK;
}

static td_err read_index(const place *at, const char *name, uint32_t *ret_index)
{
    *ret_index = TD_PLAN_NONE;
    if (json_is_null(json_object_get(at->object, name))) return TD_OK;
    return read_whole(at, name, ret_index);
}

static td_err read_number(const place *at, const char *name, double *ret_number)
{
    const json_t *value = json_object_get(at->object, name);
    double number = json_number_value(value);
    if (!json_is_number(value) || !(number >= 0 && number <= MOST_NUMBER))
        return fail(at, name, "must be a number from 0 to %g", MOST_NUMBER);
    *ret_number = number;
    return TD_OK;
}

static td_err read_bool(const place *at, const char *name, bool *ret_bool)
{
    const json_t *value = json_object_get(at->object, name);
    if (!json_is_boolean(value)) return fail(at, name, "must be true or false");
    *ret_bool = json_is_true(value);
    return TD_OK;
}

static td_err read_choice(const place *at, const td_plan_file_field *field,
                          unsigned *ret_choice)
{
    const char *text =
        json_string_value(json_object_get(at->object, field->name));
    for (unsigned i = 0; text && field->choices[i]; i++)
        if (strcmp(field->choices[i], text) == 0) {
            *ret_choice = i;
            return TD_OK;
        }
    return fail(at, field->name, "must be a name that plans use, such as %s",
                field->choices[0]);
}

static td_err read_field(const place *at, const td_plan_file_field *field,
                         void *out)
{
    switch (field->kind) {
    case TD_PLAN_FILE_TEXT:
        return read_text(at, field->name, false, out);
    case TD_PLAN_FILE_BOOL:
        return read_bool(at, field->name, out);
    case TD_PLAN_FILE_WHOLE:
        return read_whole(at, field->name, out);
    case TD_PLAN_FILE_INDEX:
        return read_index(at, field->name, out);
    case TD_PLAN_FILE_ADDED:
        if (!json_object_get(at->object, field->name)) return TD_OK;
        return read_number(at, field->name, out);
    case TD_PLAN_FILE_NUMBER:
        return read_number(at, field->name, out);
    default:
        return read_choice(at, field, out);
    }
}

static td_err read_fields(const place *at, const td_plan_file_field *fields,
                          void *out)
{
    for (; fields->name; fields++)
        TD_TRY(read_field(at, fields, (char *)out + fields->offset));
    return TD_OK;
}

static td_err find_list(const place *at, const char *name, size_t most,
                        const json_t **ret_list)
{
    const json_t *list = json_object_get(at->object, name);
    if (!json_is_array(list)) return fail(at, name, "must be a list");
    if (json_array_size(list) > most)
        return fail(at, name, "must have %zu members at most", most);
    *ret_list = list;
    return TD_OK;
}

static td_err open_member(const place *above, const char *list_name,
                          const json_t *list, size_t index, place *ret_at)
{
    *ret_at = (place){.in = above->in,
                      .object = json_array_get(list, index),
                      .list = list_name,
                      .index = index,
                      .above = above};
    if (!json_is_object(ret_at->object))
        return fail(above, list_name, "must have objects, and %zu is not one",
                    index);
    return TD_OK;
}

// Objects of a table, into an array of the plan's own.
static td_err read_list(const place *top, const char *name,
                        const td_plan_file_field *fields, size_t bytes,
                        void **ret_array, size_t *ret_count)
{
    const json_t *list = NULL;
    TD_TRY(find_list(top, name, MOST_MEMBERS, &list));
    size_t count = json_array_size(list);
    char *array = td_arena_alloc(top->in->arena, count + 1, bytes);
    if (!array) return TD_ERR_NOMEM;
    for (size_t i = 0; i < count; i++) {
        place at;
        TD_TRY(open_member(top, name, list, i, &at));
        TD_TRY(read_fields(&at, fields, array + i * bytes));
    }
    *ret_array = array;
    *ret_count = count;
    return TD_OK;
}

static int by_id(const void *left, const void *right)
{
    const td_plan_server *const *a = left;
    const td_plan_server *const *b = right;
    return strcmp((*a)->id, (*b)->id);
}

static td_err read_servers(reader *in, const place *top)
{
    td_plan *plan = in->plan;
    void *servers = NULL;
    TD_TRY(read_list(top, "servers", td_plan_file_server, sizeof *plan->servers,
                     &servers, &plan->server_count));
    plan->servers = servers;
    in->by_id = td_arena_alloc(in->arena, plan->server_count + 1,
                               sizeof(td_plan_server *));
    if (!in->by_id) return TD_ERR_NOMEM;
    for (size_t i = 0; i < plan->server_count; i++)
        in->by_id[i] = &plan->servers[i];
    qsort(in->by_id, plan->server_count, sizeof(td_plan_server *), by_id);
    for (size_t i = 1; i < plan->server_count; i++)
        if (by_id(&in->by_id[i - 1], &in->by_id[i]) == 0)
            return fail(top, "servers", "two are called %s", in->by_id[i]->id);
    return TD_OK;
}

// The server that a stream names. `standby`: or none.
static td_err read_server_of(const place *at, const char *name, bool standby,
                             uint32_t *ret_server)
{
    td_plan_server key = {.id = NULL};
    const td_plan_server *wanted = &key;
    const td_plan *plan = at->in->plan;
    TD_TRY(read_text(at, name, standby, &key.id));
    *ret_server = TD_PLAN_NONE;
    if (!key.id) return TD_OK;
    td_plan_server **found = bsearch(&wanted, at->in->by_id, plan->server_count,
                                     sizeof(td_plan_server *), by_id);
    if (!found || (*found)->standby != standby)
        return fail(at, name, "no %s is called %s",
                    standby ? "standby" : "server at work", key.id);
    *ret_server = (uint32_t)(*found - plan->servers);
    return TD_OK;
}

static td_err read_stream(const place *at, uint32_t robot, uint32_t component,
                          td_plan_stream *stream)
{
    TD_TRY(read_fields(at, td_plan_file_stream, stream));
    if (stream->phase > 1) return fail(at, "phase", "must be from 0 to 1");
    TD_TRY(read_server_of(at, "server", false, &stream->server));
    TD_TRY(read_server_of(at, "standby", true, &stream->standby));
    stream->robot = robot;
    stream->component = component;
    return TD_OK;
}

static td_err read_task(const place *at, uint32_t *ret_task)
{
    const td_plan *plan = at->in->plan;
    const char *name = json_string_value(json_object_get(at->object, "task"));
    for (uint32_t i = 0; name && i < plan->class_count; i++)
        if (strcmp(plan->classes[i].task, name) == 0) {
            *ret_task = i;
            return TD_OK;
        }
    return fail(at, "task", "must be one of the classes'");
}

static td_err read_robot(const reader *in, const place *at, uint32_t index)
{
    td_plan *plan = in->plan;
    td_plan_robot *robot = &plan->robots[index];
    const json_t *list = NULL;
    TD_TRY(read_fields(at, td_plan_file_robot, robot));
    TD_TRY(read_task(at, &robot->task));
    TD_TRY(find_list(at, "streams", TD_PLAN_MOST_COMPONENTS, &list));
    robot->first_stream = (uint32_t)plan->stream_count;
    robot->stream_count = (uint32_t)json_array_size(list);
    for (uint32_t i = 0; i < robot->stream_count; i++) {
        place inner;
        TD_TRY(open_member(at, "streams", list, i, &inner));
        TD_TRY(read_stream(&inner, index, i,
                           &plan->streams[plan->stream_count++]));
    }
    return TD_OK;
}

static td_err read_robots(const reader *in, const place *top)
{
    td_plan *plan = in->plan;
    const json_t *list = NULL;
    size_t streams = 0;
    TD_TRY(find_list(top, "robots", MOST_MEMBERS, &list));
    plan->robot_count = json_array_size(list);
    for (size_t i = 0; i < plan->robot_count; i++)
        streams += json_array_size(
            json_object_get(json_array_get(list, i), "streams"));
    plan->robots =
        td_arena_alloc(in->arena, plan->robot_count + 1, sizeof *plan->robots);
    plan->streams =
        td_arena_alloc(in->arena, streams + 1, sizeof *plan->streams);
    if (!plan->robots || !plan->streams) return TD_ERR_NOMEM;
    for (size_t i = 0; i < plan->robot_count; i++) {
        place at;
        TD_TRY(open_member(top, "robots", list, i, &at));
        TD_TRY(read_robot(in, &at, (uint32_t)i));
    }
    return TD_OK;
}

static td_err read_plan(reader *in, const json_t *root)
{
    const place top = {.in = in, .object = root, .list = ""};
    uint32_t version = 0;
    void *classes = NULL;
    TD_TRY(read_whole(&top, "plan", &version));
    if (version != TD_PLAN_FILE_VERSION)
        return td_fail(in->info, TD_ERR_MISMATCH,
                       "%s: plan: is of version %u, and this program reads "
                       "version %d",
                       in->file, version, TD_PLAN_FILE_VERSION);
    TD_TRY(read_fields(&top, td_plan_file_plan, in->plan));
    TD_TRY(read_servers(in, &top));
    TD_TRY(read_list(&top, "classes", td_plan_file_class,
                     sizeof *in->plan->classes, &classes,
                     &in->plan->class_count));
    in->plan->classes = classes;
    return read_robots(in, &top);
}

td_err td_plan_parse(const char *file, const void *data, size_t size,
                     td_plan **ret_plan, td_errinfo *info)
{
    TD_AUTO(td_plan) *plan = NULL;
    reader in = {.file = file, .info = info};
    TD_AUTO(json_t) *root = NULL;
    TD_TRY(td_json_read_bytes((td_slice){data, size}, MOST_BYTES, file, &root,
                              info));
    TD_TRY(td_plan_new(&plan, &in.arena));
    in.plan = plan;
    TD_TRY(read_plan(&in, root));
    *ret_plan = TD_TAKE(plan);
    return TD_OK;
}

static td_err read_all(const char *path, FILE *in, char **ret_text,
                       size_t *ret_size, td_errinfo *info)
{
    size_t room = 0;
    size_t size = 0;
    char *text = NULL;
    while (size == room && room <= MOST_BYTES) {
        room = room ? 2 * room : 1u << 16;
        char *grown = realloc(text, room);
        if (!grown) break;
        text = grown;
        size += fread(text + size, 1, room - size, in);
    }
    if (size < room && !ferror(in)) {
        *ret_text = text;
        *ret_size = size;
        return TD_OK;
    }
    free(text);
    if (ferror(in))
        return td_fail(info, TD_ERR_IO, "%s: %s", path, strerror(errno));
    return td_fail(info, TD_ERR_LIMIT, "%s: is too large", path);
}

td_err td_plan_load(const char *path, td_plan **ret_plan, td_errinfo *info)
{
    char *text = NULL;
    size_t size = 0;
    FILE *in = fopen(path, "rbe");
    if (!in)
        return td_fail(info, errno == ENOENT ? TD_ERR_NOTFOUND : TD_ERR_IO,
                       "%s: %s", path, strerror(errno));
    td_err err = read_all(path, in, &text, &size, info);
    (void)fclose(in);
    if (err == TD_OK) err = td_plan_parse(path, text, size, ret_plan, info);
    free(text);
    return err;
}
