// SPDX-License-Identifier: Apache-2.0
// Reads a dataset row by row.
//
// Opening reads info.json, the episodes and the tasks, which stay in memory. A
// recorder may swap the folder for another one meanwhile (see
// dataset/disk/staging.h); what was read of two folders belongs to neither, so
// the folder is held open while its meta files are read and they are read again
// if it has been swapped. Rows need no such care: a commit changes no row that
// was there before.
//
// A seek finds the episode by halving, opens the data file that the episode is
// in unless it is the one that is open, and reads up to WINDOW_ROWS rows of the
// episode from there on, all columns but pictures. Rows that ascend are
// therefore read once. Each row says which one it is (index, episode_index,
// frame_index); a row that says otherwise is an error and not data.
//
// Pictures are read when they are asked for, by read/reader_picture.c, which
// keeps one video a camera open.
//
// What is borrowed from the reader is valid until the next seek. One thread at
// a time.
#include "dataset/read/reader.h"

#include "dataset/disk/disk.h"
#include "dataset/meta/path.h"
#include "dataset/read/reader_picture.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define WINDOW_ROWS 1024
#define OPEN_ATTEMPTS 10

struct td_dataset_reader {
    char *folder;
    td_dataset_info *dataset;
    td_dataset_tasks *tasks;
    td_dataset_episodes *episodes;
    size_t count; // of the columns below
    const char **names;
    td_dataset_table *table; // of the episode; NULL: none yet
    td_dataset_place at;     // of the table
    uint64_t table_first;    // the row of the dataset that it begins with
    td_dataset_rows *window; // NULL: none yet
    uint64_t window_first;   // a row of the dataset
    bool has_row;
    uint64_t row;
    size_t episode; // of the row
    td_dataset_reader_pictures *pictures;
};

static td_err no_memory(td_errinfo *info)
{
    return td_fail(info, TD_ERR_NOMEM, "out of memory");
}

static void forget_meta(td_dataset_reader *reader)
{
    if (reader->episodes) td_dataset_episodes_free(TD_TAKE(reader->episodes));
    if (reader->tasks) td_dataset_tasks_free(TD_TAKE(reader->tasks));
    if (reader->dataset) td_dataset_info_free(TD_TAKE(reader->dataset));
    free(TD_TAKE(reader->names));
    reader->count = 0;
}

void td_dataset_reader_close(td_dataset_reader *reader)
{
    if (reader->pictures) td_dataset_reader_pictures_free(reader->pictures);
    if (reader->window) td_dataset_rows_free(reader->window);
    if (reader->table) td_dataset_table_close(reader->table);
    forget_meta(reader);
    free(reader->folder);
    free(reader);
}

// Everything but pictures and videos, which are read when they are wanted. A
// window of rows is checked by what every dataset has.
static td_err name_columns(td_dataset_reader *reader, td_errinfo *info)
{
    const td_dataset_info *dataset = reader->dataset;
    reader->names = calloc(dataset->feature_count + 1, sizeof(const char *));
    if (!reader->names) return no_memory(info);
    for (size_t i = 0; i < dataset->feature_count; i++)
        if (!td_dataset_feature_is_picture(&dataset->features[i]))
            reader->names[reader->count++] = dataset->features[i].key;
    for (size_t i = 0; i < TD_DATASET_DEFAULTS; i++) {
        const char *key = td_dataset_info_defaults[i].key;
        const td_dataset_feature *feature = td_dataset_info_find(dataset, key);
        if (!feature || td_dataset_feature_size(feature) != 1)
            return td_fail(info, TD_ERR_FORMAT,
                           "info.json: has no feature %s of one number", key);
    }
    return TD_OK;
}

static td_err read_meta(td_dataset_reader *reader, td_errinfo *info)
{
    TD_TRY(td_dataset_info_read(reader->folder, &reader->dataset, info));
    TD_TRY(name_columns(reader, info));
    TD_TRY(td_dataset_episodes_read(reader->folder, reader->dataset,
                                    &reader->episodes, info));
    if (reader->dataset->total_tasks > 0)
        return td_dataset_tasks_read(reader->folder, &reader->tasks, info);
    reader->tasks = calloc(1, sizeof *reader->tasks);
    return reader->tasks ? TD_OK : no_memory(info);
}

static bool is_still(const char *folder, int fd)
{
    struct stat held, there;
    return fstat(fd, &held) == 0 && stat(folder, &there) == 0 &&
           held.st_ino == there.st_ino && held.st_dev == there.st_dev;
}

// A recorder puts another folder in the place of this one with each episode
// (dataset/disk/staging.h). What was read of two of them is neither's; what is
// read later is in both, since a commit changes no row that was there. A folder
// that is held open keeps its number to itself.
static td_err read_one(td_dataset_reader *reader, td_errinfo *info)
{
    td_err err = TD_OK;
    bool still = false;
    for (int i = 0; i < OPEN_ATTEMPTS && !still; i++) {
        forget_meta(reader);
        int fd = open(reader->folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
        err = read_meta(reader, info);
        still = fd < 0 || is_still(reader->folder, fd);
        if (fd >= 0) (void)close(fd);
    }
    if (still) return err;
    return td_fail(info, TD_ERR_BUSY,
                   "%s: a recorder changes it faster than it can be read; try "
                   "again",
                   reader->folder);
}

td_err td_dataset_reader_open(const char *folder,
                              td_dataset_reader **ret_reader, td_errinfo *info)
{
    TD_AUTO(td_dataset_reader) *reader = calloc(1, sizeof *reader);
    if (!reader) return no_memory(info);
    reader->folder = strdup(folder);
    if (!reader->folder) return no_memory(info);
    TD_TRY(read_one(reader, info));
    TD_TRY(td_dataset_reader_pictures_new(reader->folder, reader->dataset,
                                          &reader->pictures, info));
    *ret_reader = TD_TAKE(reader);
    return TD_OK;
}

const td_dataset_info *td_dataset_reader_info(const td_dataset_reader *reader)
{
    return reader->dataset;
}

const td_dataset_tasks *td_dataset_reader_tasks(const td_dataset_reader *reader)
{
    return reader->tasks;
}

const td_dataset_episodes *
td_dataset_reader_episodes(const td_dataset_reader *reader)
{
    return reader->episodes;
}

// The episode that a row is in; there is one.
static size_t find_episode(const td_dataset_episodes *episodes, uint64_t row)
{
    size_t low = 0, high = episodes->count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (episodes->items[middle].from <= row)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static bool same_place(td_dataset_place left, td_dataset_place right)
{
    return left.chunk == right.chunk && left.file == right.file;
}

static td_err open_table(td_dataset_reader *reader, size_t episode,
                         td_errinfo *info)
{
    const td_dataset_episode *items = reader->episodes->items;
    td_dataset_place at = items[episode].data;
    if (reader->table && same_place(at, reader->at)) return TD_OK;
    char name[TD_DATASET_MAX_PATH];
    td_dataset_disk_path path;
    TD_TRY(td_dataset_path_fill(reader->dataset->data_path, NULL, at.chunk,
                                at.file, name, info));
    TD_TRY(td_dataset_disk_join(reader->folder, name, &path, info));
    td_dataset_table *table = NULL;
    TD_TRY(td_dataset_table_open(path.text, &table, info));
    if (reader->table) td_dataset_table_close(reader->table);
    reader->table = table;
    reader->at = at;
    size_t first = episode;
    while (first > 0 && same_place(items[first - 1].data, at))
        first--;
    reader->table_first = items[first].from;
    return TD_OK;
}

static bool in_window(const td_dataset_reader *reader, uint64_t row)
{
    return reader->window && row >= reader->window_first &&
           row - reader->window_first < reader->window->rows;
}

static td_err check_columns(const td_dataset_reader *reader,
                            const td_dataset_rows *rows, td_errinfo *info)
{
    for (size_t i = 0; i < rows->count; i++) {
        const td_dataset_feature *feature =
            td_dataset_info_find(reader->dataset, reader->names[i]);
        size_t size = td_dataset_feature_size(feature);
        for (size_t row = 0; row < rows->rows; row++) {
            size_t count = 0;
            (void)td_dataset_row(&rows->columns[i], row, &count);
            if (count != size)
                return td_fail(info, TD_ERR_MISMATCH,
                               "column %s: has rows of %zu values, info.json "
                               "says %zu",
                               feature->key, count, size);
        }
    }
    return TD_OK;
}

// The rows of the episode from `row` on, as many as a window has.
static td_err load_window(td_dataset_reader *reader, size_t episode,
                          uint64_t row, td_errinfo *info)
{
    const td_dataset_episode *of = &reader->episodes->items[episode];
    uint64_t left = of->from + of->length - row;
    size_t rows = left < WINDOW_ROWS ? (size_t)left : WINDOW_ROWS;
    td_dataset_rows *window = NULL;
    TD_TRY(td_dataset_table_read(reader->table, row - reader->table_first, rows,
                                 reader->names, reader->count, &window, info));
    td_err err = check_columns(reader, window, info);
    if (err != TD_OK) {
        td_dataset_rows_free(window);
        return err;
    }
    if (reader->window) td_dataset_rows_free(reader->window);
    reader->window = window;
    reader->window_first = row;
    return TD_OK;
}

static td_err value_of(const td_dataset_reader *reader, const char *key,
                       uint64_t row, double *ret_value, td_errinfo *info)
{
    for (size_t i = 0; i < reader->count; i++) {
        if (strcmp(reader->names[i], key) != 0) continue;
        size_t count;
        const td_dataset_column *column = &reader->window->columns[i];
        const void *value = td_dataset_row(
            column, (size_t)(row - reader->window_first), &count);
        if (column->type == TD_DATASET_I64)
            *ret_value = (double)*(const int64_t *)value;
        else if (column->type == TD_DATASET_F32)
            *ret_value = (double)*(const float *)value;
        else if (column->type == TD_DATASET_F64)
            *ret_value = *(const double *)value;
        else
            break;
        return TD_OK;
    }
    return td_fail(info, TD_ERR_FORMAT, "column %s: must be numbers", key);
}

// A row says which one it is; it must be the one that was asked for.
static td_err check_row(const td_dataset_reader *reader, uint64_t row,
                        size_t episode, td_errinfo *info)
{
    const struct {
        const char *key;
        uint64_t value;
    } expected[] = {
        {"index", row},
        {"episode_index", episode},
        {"frame_index", row - reader->episodes->items[episode].from},
    };
    for (size_t i = 0; i < TD_COUNT_OF(expected); i++) {
        double value = 0;
        TD_TRY(value_of(reader, expected[i].key, row, &value, info));
        if (value != (double)expected[i].value)
            return td_fail(info, TD_ERR_MISMATCH,
                           "row %" PRIu64 ": %s is %.0f, must be %" PRIu64, row,
                           expected[i].key, value, expected[i].value);
    }
    return TD_OK;
}

static td_err describe(const td_dataset_reader *reader, uint64_t row,
                       size_t episode, td_dataset_reading *ret_reading,
                       td_errinfo *info)
{
    double timestamp = 0, task = 0;
    TD_TRY(check_row(reader, row, episode, info));
    TD_TRY(value_of(reader, "timestamp", row, &timestamp, info));
    TD_TRY(value_of(reader, "task_index", row, &task, info));
    if (!(task >= 0 && task < (double)reader->tasks->count))
        return td_fail(info, TD_ERR_FORMAT,
                       "row %" PRIu64 ": task %.0f, and there are %zu", row,
                       task, reader->tasks->count);
    *ret_reading = (td_dataset_reading){
        .episode = episode,
        .frame = row - reader->episodes->items[episode].from,
        .timestamp_s = (float)timestamp,
        .task = reader->tasks->texts[(size_t)task],
    };
    return TD_OK;
}

td_err td_dataset_reader_seek(td_dataset_reader *reader, uint64_t row,
                              td_dataset_reading *ret_reading, td_errinfo *info)
{
    if (row >= reader->dataset->total_frames)
        return td_fail(info, TD_ERR_INVALID,
                       "row %" PRIu64 ", and there are %" PRIu64, row,
                       reader->dataset->total_frames);
    size_t episode = find_episode(reader->episodes, row);
    reader->has_row = false;
    TD_TRY(open_table(reader, episode, info));
    if (!in_window(reader, row))
        TD_TRY(load_window(reader, episode, row, info));
    TD_TRY(describe(reader, row, episode, ret_reading, info));
    reader->has_row = true;
    reader->row = row;
    reader->episode = episode;
    return TD_OK;
}

td_err td_dataset_reader_values(td_dataset_reader *reader, const char *key,
                                td_dataset_type *ret_type,
                                const void **ret_values, size_t *ret_count)
{
    if (!reader->has_row) return TD_ERR_INVALID;
    for (size_t i = 0; i < reader->count; i++) {
        if (strcmp(reader->names[i], key) != 0) continue;
        const td_dataset_column *column = &reader->window->columns[i];
        *ret_values = td_dataset_row(
            column, (size_t)(reader->row - reader->window_first), ret_count);
        *ret_type = column->type;
        return TD_OK;
    }
    return TD_ERR_NOTFOUND;
}

static float as_float(td_dataset_type type, const void *values, size_t i)
{
    switch (type) {
    case TD_DATASET_BOOL:
        return (float)((const uint8_t *)values)[i];
    case TD_DATASET_I64:
        return (float)((const int64_t *)values)[i];
    case TD_DATASET_F32:
        return ((const float *)values)[i];
    default:
        return (float)((const double *)values)[i];
    }
}

td_err td_dataset_reader_floats(td_dataset_reader *reader, const char *key,
                                size_t count, float *ret_values)
{
    td_dataset_type type;
    const void *values;
    size_t have;
    TD_TRY(td_dataset_reader_values(reader, key, &type, &values, &have));
    if (have != count || type == TD_DATASET_TEXT || type == TD_DATASET_BYTES)
        return TD_ERR_MISMATCH;
    for (size_t i = 0; i < count; i++)
        ret_values[i] = as_float(type, values, i);
    return TD_OK;
}

static td_err read_picture(td_dataset_reader *reader, const char *key,
                           td_dataset_reader_frame *frame, td_errinfo *info)
{
    if (!reader->has_row)
        return td_fail(info, TD_ERR_INVALID, "no row is read");
    double timestamp = 0;
    TD_TRY(value_of(reader, "timestamp", reader->row, &timestamp, info));
    const td_dataset_reader_picture_of of = {
        .table = reader->table,
        .table_row = reader->row - reader->table_first,
        .episode = &reader->episodes->items[reader->episode],
        .timestamp_s = timestamp,
    };
    return td_dataset_reader_pictures_read(reader->pictures, key, &of, frame,
                                           info);
}

td_err td_dataset_reader_picture(td_dataset_reader *reader, const char *key,
                                 uint8_t *ret_rgb, td_errinfo *info)
{
    td_dataset_reader_frame frame = {.bytes = ret_rgb};
    return read_picture(reader, key, &frame, info);
}

td_err td_dataset_reader_stored(td_dataset_reader *reader, const char *key,
                                uint8_t *ret_bytes, size_t room,
                                size_t *ret_jpeg, td_errinfo *info)
{
    td_dataset_reader_frame frame = {.bytes = ret_bytes, .room = room};
    TD_TRY(read_picture(reader, key, &frame, info));
    *ret_jpeg = frame.jpeg;
    return TD_OK;
}
