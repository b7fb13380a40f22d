// SPDX-License-Identifier: Apache-2.0
#include "dataset/disk/disk.h"
#include "dataset/meta/path.h"
#include "dataset/table/table.h"
#include "dataset/verify/verify_internal.h"

#include <glob.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TOLERANCE_S 1e-4
#define PICTURES 32 // of a table, in memory at a time

static const char *const counted[] = {"index", "episode_index", "frame_index",
                                      "task_index", "timestamp"};
enum { INDEX, EPISODE, FRAME, TASK, TIME };

static bool is_same(td_dataset_place one, td_dataset_place other)
{
    return one.chunk == other.chunk && one.file == other.file;
}

static td_err data_name(const td_dataset_verification *check,
                        td_dataset_place at, char ret_name[TD_DATASET_MAX_PATH])
{
    return td_dataset_path_fill(check->dataset->data_path, NULL, at.chunk,
                                at.file, ret_name, NULL);
}

static bool knows_task(const td_dataset_verification *check,
                       const td_dataset_episode *episode, int64_t task)
{
    if (!check->tasks || task < 0 || (uint64_t)task >= check->tasks->count)
        return false;
    for (size_t i = 0; i < episode->task_count; i++)
        if (strcmp(episode->tasks[i], check->tasks->texts[task]) == 0)
            return true;
    return false;
}

// NULL: the row is right.
static const char *row_fault(const td_dataset_verification *check,
                             size_t number, const td_dataset_rows *rows,
                             size_t i)
{
    const td_dataset_episode *episode = &check->episodes->items[number];
    const td_dataset_column *columns = rows->columns;
    const float *times = columns[TIME].values;
    if (((const int64_t *)columns[INDEX].values)[i] !=
        (int64_t)(episode->from + i))
        return "index does not count on";
    if (((const int64_t *)columns[EPISODE].values)[i] != (int64_t)number)
        return "episode_index is another";
    if (((const int64_t *)columns[FRAME].values)[i] != (int64_t)i)
        return "frame_index does not count on";
    if (!(fabs((double)times[i] - (double)i / check->dataset->fps) <=
          TOLERANCE_S + 1e-6 * (double)times[i]))
        return "timestamp is not frame_index / fps";
    if (!knows_task(check, episode, ((const int64_t *)columns[TASK].values)[i]))
        return "task_index is not one of the episode's tasks";
    return NULL;
}

static bool are_counts(const td_dataset_rows *rows)
{
    for (size_t i = 0; i < rows->count; i++)
        if (rows->columns[i].type !=
                (i == TIME ? TD_DATASET_F32 : TD_DATASET_I64) ||
            rows->columns[i].count != rows->rows)
            return false;
    return true;
}

static td_err check_rows(td_dataset_verification *check, const char *file,
                         size_t number, const td_dataset_rows *rows)
{
    if (!are_counts(rows))
        return td_dataset_verify_fault(
            check, file, TD_DATASET_REMEDY_COPY,
            "episode %zu: the columns that every dataset has are of another "
            "type",
            number);
    for (size_t i = 0; i < rows->rows; i++) {
        const char *what = row_fault(check, number, rows, i);
        if (what)
            return td_dataset_verify_fault(
                check, file, TD_DATASET_REMEDY_RECORD,
                "episode %zu, frame %zu: %s", number, i, what);
    }
    return TD_OK;
}

// How many values a feature has in some rows; a picture is one.
static td_err count_values(const td_dataset_feature *feature,
                           const td_dataset_table *table, uint64_t first,
                           size_t length, size_t *ret_count, td_errinfo *why)
{
    bool pictures = feature->dtype == TD_DATASET_DTYPE_IMAGE;
    size_t count = 0, step = pictures ? PICTURES : length;
    for (size_t at = 0; at < length; at += step) {
        TD_AUTO(td_dataset_rows) *rows = NULL;
        size_t some = length - at < step ? length - at : step;
        TD_TRY(td_dataset_table_read(table, first + at, some, &feature->key, 1,
                                     &rows, why));
        count += rows->columns[0].count;
    }
    *ret_count = count;
    return TD_OK;
}

static td_err check_values(td_dataset_verification *check, const char *file,
                           size_t number, const td_dataset_feature *feature,
                           const td_dataset_table *table, uint64_t first)
{
    td_errinfo why = {""};
    const char *name = feature->key;
    size_t count = 0, length = check->episodes->items[number].length;
    td_err err = count_values(feature, table, first, length, &count, &why);
    if (err == TD_ERR_NOMEM) return err;
    if (err != TD_OK)
        return td_dataset_verify_fault(check, file, TD_DATASET_REMEDY_COPY,
                                       "episode %zu: %s: %s", number, name,
                                       why.text);
    size_t values = length * td_dataset_feature_size(feature);
    if (feature->dtype == TD_DATASET_DTYPE_IMAGE) values = length;
    if (count != values)
        return td_dataset_verify_fault(
            check, file, TD_DATASET_REMEDY_RECORD,
            "episode %zu: %s: %zu values, and %zu frames have %zu", number,
            name, count, length, values);
    return TD_OK;
}

static td_err check_features(td_dataset_verification *check, const char *file,
                             size_t number, const td_dataset_table *table,
                             uint64_t first)
{
    for (size_t i = 0; i < check->dataset->feature_count; i++)
        if (check->dataset->features[i].dtype != TD_DATASET_DTYPE_VIDEO)
            TD_TRY(check_values(check, file, number,
                                &check->dataset->features[i], table, first));
    return TD_OK;
}

static td_err check_episode(td_dataset_verification *check, const char *file,
                            size_t number, const td_dataset_table *table,
                            uint64_t first)
{
    td_errinfo why = {""};
    TD_AUTO(td_dataset_rows) *rows = NULL;
    size_t length = check->episodes->items[number].length;
    td_err err = td_dataset_table_read(table, first, length, counted,
                                       TD_COUNT_OF(counted), &rows, &why);
    if (err == TD_ERR_NOMEM) return err;
    if (err != TD_OK)
        return td_dataset_verify_fault(check, file, TD_DATASET_REMEDY_COPY,
                                       "episode %zu: %s", number, why.text);
    TD_TRY(check_rows(check, file, number, rows));
    return check_features(check, file, number, table, first);
}

// The episodes of one data file: [begin, end).
static td_err check_file(td_dataset_verification *check, size_t begin,
                         size_t end)
{
    td_errinfo why = {""};
    td_dataset_disk_path path;
    char name[TD_DATASET_MAX_PATH];
    TD_AUTO(td_dataset_table) *table = NULL;
    const td_dataset_episode *items = check->episodes->items;
    TD_TRY(data_name(check, items[begin].data, name));
    TD_TRY(td_dataset_disk_join(check->folder, name, &path, NULL));
    td_err err = td_dataset_table_open(path.text, &table, &why);
    if (err == TD_ERR_NOMEM) return err;
    if (err != TD_OK)
        return td_dataset_verify_fault(check, name, TD_DATASET_REMEDY_COPY,
                                       "%s", why.text);
    uint64_t first = 0;
    for (size_t i = begin; i < end; i++) {
        TD_TRY(check_episode(check, name, i, table, first));
        TD_TRY(td_dataset_verify_step(check));
        first += items[i].length;
    }
    if (td_dataset_table_rows(table) == first) return TD_OK;
    return td_dataset_verify_fault(check, name, TD_DATASET_REMEDY_COPY,
                                   "%" PRIu64
                                   " rows, and its episodes have %" PRIu64,
                                   td_dataset_table_rows(table), first);
}

// LeRobot reads every file of that pattern, named by an episode or not.
static td_err check_strays(td_dataset_verification *check, const char *pattern,
                           const char *names, bool is_data)
{
    glob_t found;
    td_dataset_disk_path path;
    td_err err = TD_OK;
    TD_TRY(td_dataset_disk_join(check->folder, pattern, &path, NULL));
    if (glob(path.text, GLOB_NOSORT, NULL, &found) != 0) return TD_OK;
    size_t prefix = strlen(check->folder) + 1;
    for (size_t i = 0; i < found.gl_pathc && err == TD_OK; i++) {
        bool named = false;
        char name[TD_DATASET_MAX_PATH];
        for (size_t k = 0; k < check->episodes->count && !named; k++) {
            const td_dataset_episode *episode = &check->episodes->items[k];
            td_dataset_place at = is_data ? episode->data : episode->meta;
            named = td_dataset_path_fill(names, NULL, at.chunk, at.file, name,
                                         NULL) == TD_OK &&
                    strcmp(found.gl_pathv[i] + prefix, name) == 0;
        }
        if (!named)
            err = td_dataset_verify_fault(
                check, found.gl_pathv[i] + prefix, "move it out of the dataset",
                "no episode is in it, but LeRobot reads it too");
    }
    globfree(&found);
    return err;
}

td_err td_dataset_verify_rows(td_dataset_verification *check)
{
    const td_dataset_episode *items = check->episodes->items;
    size_t count = check->episodes->count;
    for (size_t begin = 0, end = 0; begin < count; begin = end) {
        while (end < count && is_same(items[end].data, items[begin].data))
            end++;
        TD_TRY(check_file(check, begin, end));
    }
    TD_TRY(check_strays(check, "data/*/*.parquet", check->dataset->data_path,
                        true));
    return check_strays(check, "meta/episodes/*/*.parquet",
                        TD_DATASET_EPISODES_PATH, false);
}
