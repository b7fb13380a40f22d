// SPDX-License-Identifier: Apache-2.0
// What a recorder records: checked, copied, written as JSON and read back.
//
// td_dataset_schema_check() is the one place that says what may be recorded:
// how many channels and cameras, which names, which sizes of pictures. Names
// become columns of a table, folders of videos and words in info.json, so that
// only such are allowed as all three can have.
//
// The JSON form is the head of an episode's journal
// (dataset/journal/journal.c). It is read by later versions of this program
// too: members may be added, none may change its meaning. What is read is
// checked like a schema that a program hands in.
//
// A copy owns all its texts, each by itself, and is freed by
// td_dataset_schema_free() even when it is only half made.
#include "dataset/meta/schema.h"

#include <stdlib.h>
#include <string.h>

#define MAX_FPS 1000
#define MAX_SIDE 16384

// A name is a column's, a folder's and a word in info.json.
static bool is_name(const char *name)
{
    size_t size = name ? strnlen(name, TD_DATASET_MAX_NAME) : 0;
    if (size == 0 || size == TD_DATASET_MAX_NAME || name[0] == '.')
        return false;
    for (const char *at = name; *at; at++)
        if ((unsigned char)*at < ' ' || *at == '/' || *at == 0x7f) return false;
    return true;
}

static td_err check_names(const char *what, const char *const *names,
                          uint32_t count, td_errinfo *info)
{
    if (count == 0 || count > TD_DATASET_MAX_CHANNELS)
        return td_fail(info, TD_ERR_INVALID, "%s: 1 to %d channels, got %u",
                       what, TD_DATASET_MAX_CHANNELS, count);
    for (uint32_t i = 0; i < count; i++)
        if (!is_name(names[i]))
            return td_fail(info, TD_ERR_INVALID,
                           "%s: channel %u: a name of 1 to %d characters "
                           "without '/', not beginning with '.'",
                           what, i, TD_DATASET_MAX_NAME - 1);
    return TD_OK;
}

static td_err check_camera(const td_dataset_schema *schema, uint32_t index,
                           td_errinfo *info)
{
    const td_dataset_camera *camera = &schema->cameras[index];
    if (!is_name(camera->name))
        return td_fail(info, TD_ERR_INVALID,
                       "camera %u: a name of 1 to %d characters without '/', "
                       "not beginning with '.'",
                       index, TD_DATASET_MAX_NAME - 1);
    // yuv420p has one colour for two by two pixels.
    if (camera->height == 0 || camera->height > MAX_SIDE ||
        camera->width == 0 || camera->width > MAX_SIDE || camera->height % 2 ||
        camera->width % 2)
        return td_fail(info, TD_ERR_INVALID,
                       "camera %s: %ux%u: sides are even and at most %d",
                       camera->name, camera->width, camera->height, MAX_SIDE);
    for (uint32_t i = 0; i < index; i++)
        if (strcmp(schema->cameras[i].name, camera->name) == 0)
            return td_fail(info, TD_ERR_INVALID, "camera %s: twice",
                           camera->name);
    return TD_OK;
}

td_err td_dataset_schema_check(const td_dataset_schema *schema,
                               td_errinfo *info)
{
    if (schema->fps == 0 || schema->fps > MAX_FPS)
        return td_fail(info, TD_ERR_INVALID, "fps: 1 to %d, got %u", MAX_FPS,
                       schema->fps);
    if (schema->codec >= TD_MEDIA_CODEC_COUNT)
        return td_fail(info, TD_ERR_INVALID, "codec: not one of ours");
    TD_TRY(check_names("state", schema->state, schema->state_count, info));
    TD_TRY(check_names("action", schema->action, schema->action_count, info));
    if (schema->camera_count > TD_DATASET_MAX_CAMERAS)
        return td_fail(info, TD_ERR_INVALID, "cameras: at most %d, got %u",
                       TD_DATASET_MAX_CAMERAS, schema->camera_count);
    for (uint32_t i = 0; i < schema->camera_count; i++)
        TD_TRY(check_camera(schema, i, info));
    return TD_OK;
}

static void free_names(const char *const *names, uint32_t count)
{
    if (!names) return;
    char **owned = (char **)(uintptr_t)names;
    for (uint32_t i = 0; i < count; i++)
        free(owned[i]);
    free(owned);
}

void td_dataset_schema_free(td_dataset_schema *schema)
{
    free_names(schema->state, schema->state_count);
    free_names(schema->action, schema->action_count);
    td_dataset_camera *cameras =
        (td_dataset_camera *)(uintptr_t)schema->cameras;
    for (uint32_t i = 0; cameras && i < schema->camera_count; i++)
        free((char *)(uintptr_t)cameras[i].name);
    free(cameras);
    free((char *)(uintptr_t)schema->robot_type);
    free(schema);
}

// A copy of a text that may be NULL. False: no memory.
static bool copy_text(const char *text, const char **ret_copy)
{
    *ret_copy = text ? strdup(text) : NULL;
    return !text || *ret_copy;
}

static bool copy_names(const char *const *names, uint32_t count,
                       const char *const **ret_names)
{
    const char **copy = calloc(count ? count : 1, sizeof *copy);
    if (!copy) return false;
    *ret_names = copy;
    for (uint32_t i = 0; i < count; i++)
        if (!copy_text(names[i], &copy[i])) return false;
    return true;
}

static bool copy_cameras(const td_dataset_schema *from, td_dataset_schema *to)
{
    td_dataset_camera *copy =
        calloc(from->camera_count ? from->camera_count : 1, sizeof *copy);
    if (!copy) return false;
    to->cameras = copy;
    for (uint32_t i = 0; i < from->camera_count; i++) {
        copy[i] = from->cameras[i];
        if (!copy_text(from->cameras[i].name, &copy[i].name)) return false;
    }
    return true;
}

td_err td_dataset_schema_copy(const td_dataset_schema *schema,
                              td_dataset_schema **ret_schema)
{
    TD_AUTO(td_dataset_schema) *copy = calloc(1, sizeof *copy);
    if (!copy) return TD_ERR_NOMEM;
    copy->fps = schema->fps;
    copy->codec = schema->codec;
    copy->state_count = schema->state_count;
    copy->action_count = schema->action_count;
    copy->camera_count = schema->camera_count;
    if (!copy_text(schema->robot_type, &copy->robot_type) ||
        !copy_names(schema->state, schema->state_count, &copy->state) ||
        !copy_names(schema->action, schema->action_count, &copy->action) ||
        !copy_cameras(schema, copy))
        return TD_ERR_NOMEM;
    *ret_schema = TD_TAKE(copy);
    return TD_OK;
}

static json_t *write_names(const char *const *names, uint32_t count)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < count; i++)
        (void)json_array_append_new(list, json_string(names[i]));
    return list;
}

static json_t *write_cameras(const td_dataset_schema *schema)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < schema->camera_count; i++) {
        const td_dataset_camera *camera = &schema->cameras[i];
        (void)json_array_append_new(
            list, json_pack("{s:s, s:i, s:i}", "name", camera->name, "height",
                            (int)camera->height, "width", (int)camera->width));
    }
    return list;
}

td_err td_dataset_schema_write(const td_dataset_schema *schema,
                               json_t **ret_json)
{
    json_t *json =
        json_pack("{s:i, s:s?, s:s, s:o, s:o, s:o}", "fps", (int)schema->fps,
                  "robot_type", schema->robot_type, "codec",
                  td_media_codec_name(schema->codec), "state",
                  write_names(schema->state, schema->state_count), "action",
                  write_names(schema->action, schema->action_count), "cameras",
                  write_cameras(schema));
    if (!json) return TD_ERR_NOMEM;
    *ret_json = json;
    return TD_OK;
}

// Room for what a list names, filled by the caller. NULL: not such a list.
static const char **list_room(const json_t *list, size_t most)
{
    size_t count = json_array_size(list);
    if (!json_is_array(list) || count > most) return NULL;
    return calloc(count ? count : 1, sizeof(const char *));
}

static bool read_names(const json_t *list, const char **names)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        names[i] = json_string_value(json_array_get(list, i));
        if (!names[i]) return false;
    }
    return true;
}

static bool read_cameras(const json_t *list, td_dataset_camera *cameras)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        int height = 0;
        int width = 0;
        if (json_unpack(json_array_get(list, i), "{s:s, s:i, s:i}", "name",
                        &cameras[i].name, "height", &height, "width",
                        &width) != 0)
            return false;
        cameras[i].height = (uint32_t)height;
        cameras[i].width = (uint32_t)width;
    }
    return true;
}

// The lists of a schema while it is read; its texts are the JSON's.
typedef struct draft {
    json_t *state;
    json_t *action;
    json_t *cameras;
    const char **state_names;
    const char **action_names;
    td_dataset_camera camera[TD_DATASET_MAX_CAMERAS];
} draft;

static bool read_draft(const json_t *json, draft *to, td_dataset_schema *schema)
{
    int fps = 0;
    const char *codec = NULL;
    if (json_unpack((json_t *)(uintptr_t)json, "{s:i, s:s, s:o, s:o, s:o}",
                    "fps", &fps, "codec", &codec, "state", &to->state, "action",
                    &to->action, "cameras", &to->cameras) != 0)
        return false;
    schema->robot_type = json_string_value(json_object_get(json, "robot_type"));
    to->state_names = list_room(to->state, TD_DATASET_MAX_CHANNELS);
    to->action_names = list_room(to->action, TD_DATASET_MAX_CHANNELS);
    if (!to->state_names || !to->action_names || !json_is_array(to->cameras) ||
        json_array_size(to->cameras) > TD_DATASET_MAX_CAMERAS ||
        !read_names(to->state, to->state_names) ||
        !read_names(to->action, to->action_names) ||
        !read_cameras(to->cameras, to->camera) ||
        td_media_codec_find(codec, &schema->codec) != TD_OK)
        return false;
    schema->fps = (uint32_t)fps;
    schema->state = to->state_names;
    schema->state_count = (uint32_t)json_array_size(to->state);
    schema->action = to->action_names;
    schema->action_count = (uint32_t)json_array_size(to->action);
    schema->cameras = to->camera;
    schema->camera_count = (uint32_t)json_array_size(to->cameras);
    return true;
}

td_err td_dataset_schema_read(const json_t *json,
                              td_dataset_schema **ret_schema, td_errinfo *info)
{
    draft read = {0};
    td_dataset_schema schema = {0};
    td_err err = TD_OK;
    if (!read_draft(json, &read, &schema))
        err = td_fail(info, TD_ERR_FORMAT, "not a schema of ours");
    if (err == TD_OK) err = td_dataset_schema_check(&schema, info);
    if (err == TD_OK) err = td_dataset_schema_copy(&schema, ret_schema);
    free(read.state_names);
    free(read.action_names);
    return err;
}
