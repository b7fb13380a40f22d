// SPDX-License-Identifier: Apache-2.0
#include "dataset/meta/stats_file.h"

#include "base/json/read.h"
#include "dataset/disk/disk.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define NAME "meta/stats.json"
#define PICTURE_CHANNELS 3
#define PICTURE_DEPTH 3 // [[[r]], [[g]], [[b]]]

static uint32_t channels_of(const td_dataset_feature *feature)
{
    return td_dataset_feature_is_picture(feature)
               ? PICTURE_CHANNELS
               : (uint32_t)td_dataset_feature_size(feature);
}

// The numbers in arrays of any depth, in order.
typedef struct flat_numbers {
    double *values;
    size_t room;
    size_t count;
} flat_numbers;

// Whether all of it is numbers; counts those beyond the room, too.
static bool flatten(const json_t *json, flat_numbers *to)
{
    if (json_is_number(json)) {
        if (to->count < to->room)
            to->values[to->count] = json_number_value(json);
        to->count++;
        return true;
    }
    if (!json_is_array(json)) return false;
    for (size_t i = 0; i < json_array_size(json); i++)
        if (!flatten(json_array_get(json, i), to)) return false;
    return true;
}

static td_err read_stat(const json_t *json, const char *key, const char *name,
                        double *ret_values, size_t channels, td_errinfo *info)
{
    flat_numbers numbers = {ret_values, channels, 0};
    if (!flatten(json, &numbers))
        return td_fail(info, TD_ERR_FORMAT, NAME ": %s: %s: not numbers", key,
                       name);
    if (numbers.count != channels)
        return td_fail(info, TD_ERR_MISMATCH,
                       NAME ": %s: %s: %zu numbers, the feature has %zu", key,
                       name, numbers.count, channels);
    return TD_OK;
}

static bool may_be_missing(int stat)
{
    return stat >= TD_DATASET_STAT_Q01;
}

static void fill_nan(double *values, uint32_t channels)
{
    for (uint32_t i = 0; i < channels; i++)
        values[i] = NAN;
}

static td_err read_feature(const json_t *json, const char *key,
                           td_dataset_stats *stats, td_errinfo *info)
{
    double count = 0;
    for (int i = 0; i < TD_DATASET_STAT_COUNT; i++) {
        const char *name = td_dataset_stat_name((td_dataset_stat)i);
        double *values = td_dataset_stats_of(stats, (td_dataset_stat)i);
        const json_t *member = json_object_get(json, name);
        if (!member && may_be_missing(i))
            fill_nan(values, stats->channels);
        else
            TD_TRY(read_stat(member, key, name, values, stats->channels, info));
    }
    TD_TRY(read_stat(json_object_get(json, "count"), key, "count", &count, 1,
                     info));
    if (!(count >= 0 && count <= 9e15))
        return td_fail(info, TD_ERR_LIMIT, NAME ": %s: count: %g", key, count);
    stats->count = (uint64_t)count;
    return TD_OK;
}

static td_err read_all(const json_t *json, const td_dataset_info *dataset,
                       td_dataset_stats **ret_stats, td_errinfo *info)
{
    for (size_t i = 0; i < dataset->feature_count; i++) {
        const td_dataset_feature *feature = &dataset->features[i];
        const json_t *member = json_object_get(json, feature->key);
        if (!member || feature->dtype == TD_DATASET_DTYPE_STRING) continue;
        TD_TRY(td_dataset_stats_new(channels_of(feature), &ret_stats[i]));
        TD_TRY(read_feature(member, feature->key, ret_stats[i], info));
    }
    return TD_OK;
}

td_err td_dataset_stats_file_parse(td_slice bytes,
                                   const td_dataset_info *dataset,
                                   td_dataset_stats **ret_stats,
                                   td_errinfo *info)
{
    TD_AUTO(json_t) *json = NULL;
    TD_TRY(td_json_read_bytes(bytes, TD_DATASET_STATS_FILE_MAX_BYTES, NAME,
                              &json, info));
    return read_all(json, dataset, ret_stats, info);
}

td_err td_dataset_stats_file_read(const char *folder,
                                  const td_dataset_info *dataset,
                                  td_dataset_stats **ret_stats,
                                  td_errinfo *info)
{
    TD_AUTO(json_t) *json = NULL;
    td_dataset_disk_path path;
    TD_TRY(td_dataset_disk_join(folder, NAME, &path, info));
    TD_TRY(td_json_read_file(path.text, TD_DATASET_STATS_FILE_MAX_BYTES, &json,
                             info));
    return read_all(json, dataset, ret_stats, info);
}

// A number inside of `depth` arrays.
static json_t *nest(json_t *json, int depth)
{
    for (; json && depth > 0; depth--) {
        json_t *array = json_array();
        if (json_array_append_new(array, json) != 0) {
            json_decref(array);
            return NULL;
        }
        json = array;
    }
    return json;
}

static td_err write_stat(json_t *object, const char *name, const double *values,
                         uint32_t channels, int depth)
{
    json_t *array = json_array();
    if (json_object_set_new(object, name, array) != 0) return TD_ERR_NOMEM;
    for (uint32_t i = 0; i < channels; i++)
        if (json_array_append_new(array,
                                  nest(json_real(values[i]), depth - 1)) != 0)
            return TD_ERR_NOMEM;
    return TD_OK;
}

static td_err write_feature(json_t *top, const td_dataset_feature *feature,
                            const td_dataset_stats *stats)
{
    int depth = td_dataset_feature_is_picture(feature) ? PICTURE_DEPTH : 1;
    json_t *object = json_object();
    if (json_object_set_new(top, feature->key, object) != 0)
        return TD_ERR_NOMEM;
    for (int i = 0; i < TD_DATASET_STAT_COUNT; i++) {
        const double *values =
            stats->values + (size_t)i * (size_t)stats->channels;
        if (may_be_missing(i) && isnan(values[0])) continue;
        TD_TRY(write_stat(object, td_dataset_stat_name((td_dataset_stat)i),
                          values, stats->channels, depth));
    }
    json_t *count = nest(json_integer((json_int_t)stats->count), 1);
    return json_object_set_new(object, "count", count) == 0 ? TD_OK
                                                            : TD_ERR_NOMEM;
}

td_err td_dataset_stats_file_write(const td_dataset_info *dataset,
                                   const td_dataset_stats *const *stats, int fd,
                                   td_errinfo *info)
{
    TD_AUTO(json_t) *top = json_object();
    if (!top) return TD_ERR_NOMEM;
    for (size_t i = 0; i < dataset->feature_count; i++)
        if (stats[i])
            TD_TRY(write_feature(top, &dataset->features[i], stats[i]));
    char *text = json_dumps(top, JSON_INDENT(4) | JSON_REAL_PRECISION(17));
    if (!text) return TD_ERR_NOMEM;
    td_err err = td_dataset_disk_write(fd, (td_slice){text, strlen(text)}, 0);
    free(text);
    if (err != TD_OK) return td_fail(info, err, NAME ": %s", td_err_text(err));
    return TD_OK;
}
