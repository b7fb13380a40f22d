// SPDX-License-Identifier: Apache-2.0
// What meta/info.json says of a dataset: its features in their order, its
// numbers and its paths.
//
// A td_dataset_info holds the file twice: the JSON as it stands there, and the
// typed members that the rest of the code uses. Whatever LeRobot wrote into the
// JSON that is not known here is so written back unchanged. Reading is in
// meta/info_parse.c; this file makes new datasets, adds features, and writes.
//
// From the same features come the columns of a data file
// (td_dataset_info_fields) and the note `huggingface` in its footer, which
// tells LeRobot's `datasets` what types the columns have. All three texts are
// laid out as LeRobot lays them out, since its own tools compare them.
//
// Texts are in the info's own arena, and the JSON is referenced by it; both go
// with td_dataset_info_free().
#include "dataset/meta/info.h"

#include "dataset/meta/info_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VERSION "v3.0"
#define DATA_PATH "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet"
#define VIDEO_PATH                                                             \
    "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4"

static const char *const dtype_names[] = {
#define DTYPE_NAME(name, text) text,
    TD_DATASET_DTYPES(DTYPE_NAME)
#undef DTYPE_NAME
};

const char *td_dataset_dtype_name(td_dataset_dtype dtype)
{
    return dtype_names[dtype];
}

static td_err no_memory(td_errinfo *info)
{
    return td_fail(info, TD_ERR_NOMEM, "out of memory");
}

td_err td_dataset_info_new_blank(td_dataset_info **ret_dataset)
{
    TD_AUTO(td_dataset_info) *dataset = calloc(1, sizeof *dataset);
    if (!dataset) return TD_ERR_NOMEM;
    dataset->memory = calloc(1, sizeof *dataset->memory);
    dataset->features =
        calloc(TD_DATASET_MAX_FEATURES, sizeof *dataset->features);
    if (!dataset->memory || !dataset->features) return TD_ERR_NOMEM;
    *ret_dataset = TD_TAKE(dataset);
    return TD_OK;
}

void td_dataset_info_free(td_dataset_info *dataset)
{
    if (dataset->memory) {
        json_decref(dataset->memory->json);
        td_arena_done(&dataset->memory->kept);
    }
    free(dataset->memory);
    free(dataset->features);
    free(dataset);
}

td_err td_dataset_info_new(uint32_t fps, const char *robot_type,
                           td_dataset_info **ret_dataset, td_errinfo *info)
{
    if (fps == 0) return td_fail(info, TD_ERR_INVALID, "0 frames a second");
    TD_AUTO(td_dataset_info) *dataset = NULL;
    if (td_dataset_info_new_blank(&dataset) != TD_OK) return no_memory(info);
    // In LeRobot's order; td_dataset_info_text() sets the numbers.
    json_t *json = json_pack(
        "{s:s, s:i, s:{}, s:i, s:i, s:i, s:i, s:i, s:i, s:s, s:n, s:s?, s:{}}",
        "codebase_version", VERSION, "fps", (int)fps, "features",
        "total_episodes", 0, "total_frames", 0, "total_tasks", 0, "chunks_size",
        1000, "data_files_size_in_mb", 100, "video_files_size_in_mb", 200,
        "data_path", DATA_PATH, "video_path", "robot_type", robot_type,
        "splits");
    if (!json) return no_memory(info);
    dataset->memory->json = json;
    dataset->fps = fps;
    dataset->robot_type =
        json_string_value(json_object_get(json, "robot_type"));
    dataset->chunks_size = 1000;
    dataset->data_file_mb = 100;
    dataset->video_file_mb = 200;
    dataset->data_path = DATA_PATH;
    *ret_dataset = TD_TAKE(dataset);
    return TD_OK;
}

static json_t *pack_names(const char *const *names, size_t count)
{
    if (!names) return json_null();
    json_t *packed = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(packed, json_string(names[i]));
    return packed;
}

td_err td_dataset_info_add(td_dataset_info *dataset, const char *key,
                           td_dataset_dtype dtype, const uint32_t *shape,
                           uint32_t dims, const char *const *names,
                           td_errinfo *info)
{
    json_t *features = json_object_get(dataset->memory->json, "features");
    if (json_object_get(features, key))
        return td_fail(info, TD_ERR_EXISTS, "%s: is there twice", key);
    if (dims == 0 || dims > TD_DATASET_MAX_DIMS)
        return td_fail(info, TD_ERR_INVALID, "%s: %u dimensions, 1 to %d", key,
                       dims, TD_DATASET_MAX_DIMS);
    bool picture =
        dtype == TD_DATASET_DTYPE_VIDEO || dtype == TD_DATASET_DTYPE_IMAGE;
    json_t *sizes = json_array();
    for (uint32_t i = 0; i < dims; i++)
        json_array_append_new(sizes, json_integer(shape[i]));
    json_t *feature = json_pack(
        "{s:s, s:o, s:o}", "dtype", td_dataset_dtype_name(dtype), "shape",
        sizes, "names", pack_names(names, picture ? dims : shape[0]));
    if (!feature || json_object_set_new(features, key, feature) != 0)
        return no_memory(info);
    if (dtype == TD_DATASET_DTYPE_VIDEO) {
        dataset->video_path = VIDEO_PATH;
        if (json_object_set_new(dataset->memory->json, "video_path",
                                json_string(VIDEO_PATH)) != 0)
            return no_memory(info);
    }
    return td_dataset_info_add_json(dataset, key, feature, info);
}

const td_dataset_default td_dataset_info_defaults[TD_DATASET_DEFAULTS] = {
    {"timestamp", TD_DATASET_DTYPE_F32},
    {"frame_index", TD_DATASET_DTYPE_I64},
    {"episode_index", TD_DATASET_DTYPE_I64},
    {"index", TD_DATASET_DTYPE_I64},
    {"task_index", TD_DATASET_DTYPE_I64},
};

td_err td_dataset_info_add_defaults(td_dataset_info *dataset, td_errinfo *info)
{
    const uint32_t one = 1;
    const td_dataset_default *each = td_dataset_info_defaults;
    for (size_t i = 0; i < TD_DATASET_DEFAULTS; i++)
        TD_TRY(td_dataset_info_add(dataset, each[i].key, each[i].dtype, &one, 1,
                                   NULL, info));
    return TD_OK;
}

static td_dataset_feature *find(const td_dataset_info *dataset, const char *key)
{
    for (size_t i = 0; i < dataset->feature_count; i++)
        if (strcmp(dataset->features[i].key, key) == 0)
            return &dataset->features[i];
    return NULL;
}

td_err td_dataset_info_set_video(td_dataset_info *dataset, const char *key,
                                 const char *codec, td_errinfo *info)
{
    uint32_t height = 0, width = 0;
    td_dataset_feature *feature = find(dataset, key);
    if (!feature || feature->dtype != TD_DATASET_DTYPE_VIDEO)
        return td_fail(info, TD_ERR_NOTFOUND, "%s: is no video", key);
    TD_TRY(td_dataset_feature_picture(feature, &height, &width));
    json_t *features = json_object_get(dataset->memory->json, "features");
    json_t *facts = json_pack(
        "{s:i, s:i, s:s, s:s, s:i, s:i, s:b, s:b}", "video.height", (int)height,
        "video.width", (int)width, "video.codec", codec, "video.pix_fmt",
        "yuv420p", "video.fps", (int)dataset->fps, "video.channels", 3,
        "has_audio", false, "is_depth_map", false);
    if (!facts ||
        json_object_set_new(json_object_get(features, key), "info", facts) != 0)
        return no_memory(info);
    feature->codec = json_string_value(json_object_get(facts, "video.codec"));
    return TD_OK;
}

const td_dataset_feature *td_dataset_info_find(const td_dataset_info *dataset,
                                               const char *key)
{
    return find(dataset, key);
}

size_t td_dataset_feature_size(const td_dataset_feature *feature)
{
    size_t size = 1;
    for (uint32_t i = 0; i < feature->dims; i++)
        size *= feature->shape[i];
    return size;
}

bool td_dataset_feature_is_picture(const td_dataset_feature *feature)
{
    return feature->dtype == TD_DATASET_DTYPE_IMAGE ||
           feature->dtype == TD_DATASET_DTYPE_VIDEO;
}

td_err td_dataset_feature_picture(const td_dataset_feature *feature,
                                  uint32_t *ret_height, uint32_t *ret_width)
{
    if (!td_dataset_feature_is_picture(feature) || feature->dims != 3)
        return TD_ERR_MISMATCH;
    bool channels_first = feature->name_count == 3 &&
                          strncmp(feature->names[0], "channel", 7) == 0;
    *ret_height = feature->shape[channels_first ? 1 : 0];
    *ret_width = feature->shape[channels_first ? 2 : 1];
    return TD_OK;
}

td_err td_dataset_info_fields(const td_dataset_info *dataset,
                              td_dataset_field **ret_fields, size_t *ret_count,
                              td_errinfo *info)
{
    static const struct {
        td_dataset_dtype dtype;
        td_dataset_type type;
    } written[] = {
        {TD_DATASET_DTYPE_BOOL, TD_DATASET_BOOL},
        {TD_DATASET_DTYPE_I64, TD_DATASET_I64},
        {TD_DATASET_DTYPE_F32, TD_DATASET_F32},
        {TD_DATASET_DTYPE_F64, TD_DATASET_F64},
        {TD_DATASET_DTYPE_STRING, TD_DATASET_TEXT},
    };
    td_dataset_field *fields =
        calloc(dataset->feature_count + 1, sizeof *fields);
    if (!fields) return no_memory(info);
    size_t count = 0;
    for (size_t i = 0; i < dataset->feature_count; i++) {
        const td_dataset_feature *feature = &dataset->features[i];
        if (feature->dtype == TD_DATASET_DTYPE_VIDEO) continue;
        size_t at = 0;
        while (at < TD_COUNT_OF(written) && written[at].dtype != feature->dtype)
            at++;
        if (at == TD_COUNT_OF(written) || feature->dims != 1) {
            free(fields);
            return td_fail(info, TD_ERR_UNSUPPORTED,
                           "%s: %s of %u dimensions is read, but not written",
                           feature->key, td_dataset_dtype_name(feature->dtype),
                           feature->dims);
        }
        uint32_t width = feature->shape[0];
        fields[count++] = (td_dataset_field){feature->key, written[at].type,
                                             width, width > 1, width > 1};
    }
    *ret_fields = fields;
    *ret_count = count;
    return TD_OK;
}

// {"dtype": …, "_type": "Value"}, or a list or array of them.
static json_t *pack_feature(const td_dataset_feature *feature)
{
    const char *dtype = td_dataset_dtype_name(feature->dtype);
    if (feature->dtype == TD_DATASET_DTYPE_IMAGE)
        return json_pack("{s:s}", "_type", "Image");
    if (feature->dims == 1 && feature->shape[0] == 1)
        return json_pack("{s:s, s:s}", "dtype", dtype, "_type", "Value");
    if (feature->dims == 1)
        return json_pack("{s:{s:s, s:s}, s:i, s:s}", "feature", "dtype", dtype,
                         "_type", "Value", "length", (int)feature->shape[0],
                         "_type", "List");
    json_t *shape = json_array();
    for (uint32_t i = 0; i < feature->dims; i++)
        json_array_append_new(shape, json_integer(feature->shape[i]));
    char type[] = "Array2D";
    type[5] = (char)('0' + feature->dims);
    return json_pack("{s:o, s:s, s:s}", "shape", shape, "dtype", dtype, "_type",
                     type);
}

td_err td_dataset_info_note(const td_dataset_info *dataset, char **ret_text)
{
    TD_AUTO(json_t) *note = json_pack("{s:{s:{}}}", "info", "features");
    if (!note) return TD_ERR_NOMEM;
    json_t *features =
        json_object_get(json_object_get(note, "info"), "features");
    for (size_t i = 0; i < dataset->feature_count; i++) {
        if (dataset->features[i].dtype == TD_DATASET_DTYPE_VIDEO) continue;
        if (json_object_set_new(features, dataset->features[i].key,
                                pack_feature(&dataset->features[i])) != 0)
            return TD_ERR_NOMEM;
    }
    char *text = json_dumps(note, 0);
    if (!text) return TD_ERR_NOMEM;
    *ret_text = text;
    return TD_OK;
}

td_err td_dataset_info_text(const td_dataset_info *dataset, char **ret_text)
{
    TD_AUTO(json_t) *json = json_deep_copy(dataset->memory->json);
    if (!json) return TD_ERR_NOMEM;
    char split[32];
    (void)snprintf(split, sizeof split, "0:%" PRIu64, dataset->total_episodes);
    const struct {
        const char *key;
        json_t *value;
    } present[] = {
        {"total_episodes", json_integer((json_int_t)dataset->total_episodes)},
        {"total_frames", json_integer((json_int_t)dataset->total_frames)},
        {"total_tasks", json_integer((json_int_t)dataset->total_tasks)},
        {"data_files_size_in_mb", json_integer(dataset->data_file_mb)},
        {"video_files_size_in_mb", json_integer(dataset->video_file_mb)},
        {"splits", json_pack("{s:s}", "train", split)},
    };
    bool all = true;
    for (size_t i = 0; i < TD_COUNT_OF(present); i++)
        all &= json_object_set_new(json, present[i].key, present[i].value) == 0;
    char *text = all ? json_dumps(json, JSON_INDENT(4)) : NULL;
    if (!text) return TD_ERR_NOMEM;
    *ret_text = text;
    return TD_OK;
}
