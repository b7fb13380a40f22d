// SPDX-License-Identifier: Apache-2.0
// Reads meta/info.json into a td_dataset_info.
//
// The file may come from anybody. Every member is checked for its type and its
// range before it is used, sizes before memory is taken for them, and the path
// templates are filled in once to see that no path leads out of the folder. An
// error names the member, what it is and what it must be.
//
// Three things differ between datasets and are all read: whole numbers that are
// written as 30.0, names of channels as a list or as an object that holds one,
// and depth pictures under three different names, by the age of the dataset. A
// version other than v3.0, and a dtype that no feature here has, is UNSUPPORTED
// and not FORMAT, so that a person knows that the file is fine.
//
// The JSON is kept by the info, and features borrow from it.
#include "dataset/disk/disk.h"
#include "dataset/meta/info_internal.h"
#include "dataset/meta/path.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define FILE_NAME "info.json"
#define MAX_TEXT 1024
#define MAX_NAMES 65536

static td_err refuse(td_errinfo *info, td_err err, const char *where,
                     const char *what)
{
    return td_fail(info, err, FILE_NAME ": %.200s: %s", where, what);
}

// A whole number, which may be written as 30.0.
static td_err whole(const json_t *at, const char *name, uint64_t least,
                    uint64_t most, uint64_t *ret_value, td_errinfo *info)
{
    const json_t *value = json_object_get(at, name);
    if (!json_is_number(value))
        return refuse(info, TD_ERR_FORMAT, name, "must be a whole number");
    double number = json_number_value(value);
    if (number != floor(number))
        return refuse(info, TD_ERR_FORMAT, name, "must be a whole number");
    if (number < (double)least || number > (double)most)
        return td_fail(info, TD_ERR_LIMIT,
                       FILE_NAME ": %s: must be %" PRIu64 " to %" PRIu64
                                 ", got %g",
                       name, least, most, number);
    *ret_value = (uint64_t)number;
    return TD_OK;
}

static td_err whole32(const json_t *at, const char *name, uint32_t most,
                      uint32_t *ret_value, td_errinfo *info)
{
    uint64_t value = 0;
    TD_TRY(whole(at, name, 1, most, &value, info));
    *ret_value = (uint32_t)value;
    return TD_OK;
}

// A text, or NULL where it may be missing.
static td_err text(const json_t *at, const char *name, bool may_miss,
                   const char **ret_text, td_errinfo *info)
{
    const json_t *value = json_object_get(at, name);
    if (may_miss && (!value || json_is_null(value))) {
        *ret_text = NULL;
        return TD_OK;
    }
    if (!json_is_string(value))
        return refuse(info, TD_ERR_FORMAT, name, "must be a text");
    if (json_string_length(value) > MAX_TEXT)
        return refuse(info, TD_ERR_LIMIT, name, "is too long");
    *ret_text = json_string_value(value);
    return TD_OK;
}

static td_err read_dtype(const json_t *feature, const char *key,
                         td_dataset_dtype *ret_dtype, td_errinfo *info)
{
    const char *name = json_string_value(json_object_get(feature, "dtype"));
    if (!name) return refuse(info, TD_ERR_FORMAT, key, "has no dtype");
    for (int i = 0; i < TD_DATASET_DTYPE_COUNT; i++) {
        if (strcmp(name, td_dataset_dtype_name((td_dataset_dtype)i)) != 0)
            continue;
        *ret_dtype = (td_dataset_dtype)i;
        return TD_OK;
    }
    return td_fail(info, TD_ERR_UNSUPPORTED,
                   FILE_NAME ": %.200s: dtype %.50s is not read", key, name);
}

static td_err read_shape(const json_t *feature, td_dataset_feature *read,
                         td_errinfo *info)
{
    const json_t *shape = json_object_get(feature, "shape");
    size_t dims = json_array_size(shape);
    if (dims < 1 || dims > TD_DATASET_MAX_DIMS)
        return refuse(info, TD_ERR_FORMAT, read->key,
                      "shape must have 1 to 5 dimensions");
    size_t size = 1;
    for (size_t i = 0; i < dims; i++) {
        const json_t *side = json_array_get(shape, i);
        json_int_t value = json_integer_value(side);
        if (!json_is_integer(side) || value < 1 || value > TD_DATASET_MAX_SIZE)
            return refuse(info, TD_ERR_LIMIT, read->key,
                          "shape must be of 1 to 2^24");
        read->shape[i] = (uint32_t)value;
        size *= (size_t)value;
        if (size > TD_DATASET_MAX_SIZE)
            return refuse(info, TD_ERR_LIMIT, read->key,
                          "has more than 2^24 values");
    }
    read->dims = (uint32_t)dims;
    return TD_OK;
}

// A list; or an object with one, as older datasets have it. What is neither is
// no name.
static const json_t *names_of(const json_t *feature)
{
    json_t *names = json_object_get(feature, "names");
    const char *key;
    json_t *value;
    if (json_is_array(names)) return names;
    json_object_foreach(names, key, value)
    {
        if (json_is_array(value)) return value;
    }
    return NULL;
}

static td_err read_names(const json_t *feature, td_dataset_info *dataset,
                         td_dataset_feature *read, td_errinfo *info)
{
    const json_t *names = names_of(feature);
    size_t count = json_array_size(names);
    if (count > MAX_NAMES)
        return refuse(info, TD_ERR_LIMIT, read->key, "has too many names");
    for (size_t i = 0; i < count; i++)
        if (!json_is_string(json_array_get(names, i))) return TD_OK;
    const char **texts =
        td_arena_alloc(&dataset->memory->kept, count, sizeof(const char *));
    if (!texts) return td_fail(info, TD_ERR_NOMEM, "out of memory");
    for (size_t i = 0; i < count; i++)
        texts[i] = json_string_value(json_array_get(names, i));
    read->names = texts;
    read->name_count = count;
    return TD_OK;
}

// Depth goes under one of three names, by the age of the dataset.
static void read_facts(const json_t *feature, td_dataset_feature *read)
{
    const json_t *facts = json_object_get(feature, "info");
    const json_t *older = json_object_get(feature, "video_info");
    read->codec = json_string_value(json_object_get(facts, "video.codec"));
    read->depth = json_is_true(json_object_get(facts, "is_depth_map")) ||
                  json_is_true(json_object_get(facts, "video.is_depth_map")) ||
                  json_is_true(json_object_get(older, "video.is_depth_map"));
}

td_err td_dataset_info_add_json(td_dataset_info *dataset, const char *key,
                                json_t *feature, td_errinfo *info)
{
    if (dataset->feature_count == TD_DATASET_MAX_FEATURES)
        return refuse(info, TD_ERR_LIMIT, "features", "are more than 512");
    if (key[0] == '\0' || strlen(key) > MAX_TEXT / 4)
        return refuse(info, TD_ERR_LIMIT, key, "is no name of a feature");
    td_dataset_feature read = {.key = key};
    if (!json_is_object(feature))
        return refuse(info, TD_ERR_FORMAT, key, "must be an object");
    TD_TRY(read_dtype(feature, key, &read.dtype, info));
    TD_TRY(read_shape(feature, &read, info));
    TD_TRY(read_names(feature, dataset, &read, info));
    if (td_dataset_feature_is_picture(&read) && read.dims != 3)
        return refuse(info, TD_ERR_FORMAT, key,
                      "a picture has height, width and channels");
    read_facts(feature, &read);
    read.key = td_arena_copy(&dataset->memory->kept, key, strlen(key));
    if (!read.key) return td_fail(info, TD_ERR_NOMEM, "out of memory");
    dataset->features[dataset->feature_count++] = read;
    return TD_OK;
}

static td_err read_features(td_dataset_info *dataset, json_t *json,
                            td_errinfo *info)
{
    const char *key;
    json_t *feature;
    json_t *features = json_object_get(json, "features");
    if (!json_is_object(features))
        return refuse(info, TD_ERR_FORMAT, "features", "must be an object");
    json_object_foreach(features, key, feature)
    {
        TD_TRY(td_dataset_info_add_json(dataset, key, feature, info));
    }
    return TD_OK;
}

static td_err read_version(const json_t *json, td_errinfo *info)
{
    const char *version = "";
    TD_TRY(text(json, "codebase_version", false, &version, info));
    if (strcmp(version, "v3.0") == 0) return TD_OK;
    return td_fail(info, TD_ERR_UNSUPPORTED,
                   FILE_NAME ": codebase version %.20s, read is v3.0: LeRobot "
                             "converts older ones",
                   version);
}

// Whatever the numbers are, the paths stay in the folder.
static td_err check_paths(const td_dataset_info *dataset, td_errinfo *info)
{
    char path[TD_DATASET_MAX_PATH];
    TD_TRY(td_dataset_path_fill(dataset->data_path, NULL, 0, 0, path, info));
    for (size_t i = 0; i < dataset->feature_count; i++) {
        const td_dataset_feature *feature = &dataset->features[i];
        if (feature->dtype != TD_DATASET_DTYPE_VIDEO) continue;
        if (!dataset->video_path)
            return refuse(info, TD_ERR_FORMAT, "video_path",
                          "is missing, and there are videos");
        TD_TRY(td_dataset_path_fill(dataset->video_path, feature->key, 0, 0,
                                    path, info));
    }
    return TD_OK;
}

static td_err read_members(td_dataset_info *dataset, json_t *json,
                           td_errinfo *info)
{
    const uint64_t most = (uint64_t)1 << 40;
    TD_TRY(read_version(json, info));
    TD_TRY(whole32(json, "fps", 1000, &dataset->fps, info));
    TD_TRY(
        whole(json, "total_episodes", 0, most, &dataset->total_episodes, info));
    TD_TRY(whole(json, "total_frames", 0, most, &dataset->total_frames, info));
    TD_TRY(whole(json, "total_tasks", 0, most, &dataset->total_tasks, info));
    TD_TRY(whole32(json, "chunks_size", 1000000, &dataset->chunks_size, info));
    TD_TRY(whole32(json, "data_files_size_in_mb", 1u << 20,
                   &dataset->data_file_mb, info));
    TD_TRY(whole32(json, "video_files_size_in_mb", 1u << 20,
                   &dataset->video_file_mb, info));
    TD_TRY(text(json, "robot_type", true, &dataset->robot_type, info));
    TD_TRY(text(json, "data_path", false, &dataset->data_path, info));
    TD_TRY(text(json, "video_path", true, &dataset->video_path, info));
    TD_TRY(read_features(dataset, json, info));
    return check_paths(dataset, info);
}

// Consumes the JSON.
static td_err read_json(json_t *json, td_dataset_info **ret_dataset,
                        td_errinfo *info)
{
    TD_AUTO(td_dataset_info) *dataset = NULL;
    if (td_dataset_info_new_blank(&dataset) != TD_OK) {
        json_decref(json);
        return td_fail(info, TD_ERR_NOMEM, "out of memory");
    }
    dataset->memory->json = json;
    TD_TRY(read_members(dataset, json, info));
    *ret_dataset = TD_TAKE(dataset);
    return TD_OK;
}

td_err td_dataset_info_parse(td_slice bytes, td_dataset_info **ret_dataset,
                             td_errinfo *info)
{
    json_t *json = NULL;
    TD_TRY(td_json_read_bytes(bytes, TD_DATASET_INFO_MAX_BYTES, FILE_NAME,
                              &json, info));
    return read_json(json, ret_dataset, info);
}

td_err td_dataset_info_read(const char *folder, td_dataset_info **ret_dataset,
                            td_errinfo *info)
{
    json_t *json = NULL;
    td_dataset_disk_path path;
    TD_TRY(td_dataset_disk_join(folder, "meta/" FILE_NAME, &path, info));
    TD_TRY(
        td_json_read_file(path.text, TD_DATASET_INFO_MAX_BYTES, &json, info));
    return read_json(json, ret_dataset, info);
}
