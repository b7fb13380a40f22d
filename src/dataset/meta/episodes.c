// SPDX-License-Identifier: Apache-2.0
// Reads meta/episodes/chunk-*/file-*.parquet, in the order of their names, as
// one list of episodes.
//
// Of each row only the columns listed below are read, and four for each video
// feature: the statistics, which are most of a file, stay on the disk. Files
// are read in windows of WINDOW_ROWS rows.
//
// Nothing in these files is trusted. The list must be whole: episodes are
// numbered without a gap, each begins at the row where the one before it ends,
// lengths and times are such as can be, and at the end the numbers of episodes
// and frames are those of info.json. The first file is remembered by name,
// since LeRobot takes the columns of all files from it, and so must what is
// appended (meta/episodes_append.c).
//
// Texts and spans of videos are in the list's own arena, and are freed with it.
#include "dataset/meta/episodes.h"
#include "dataset/disk/disk.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WINDOW_ROWS 1024

td_dataset_place td_dataset_place_next(td_dataset_place place,
                                       uint32_t chunks_size)
{
    if (place.file + 1 < chunks_size)
        return (td_dataset_place){place.chunk, place.file + 1};
    return (td_dataset_place){place.chunk + 1, 0};
}

void td_dataset_episodes_free(td_dataset_episodes *episodes)
{
    td_arena_done(&episodes->kept);
    free(episodes->items);
    free(episodes);
}

// The columns that are read, then four for each video.
static const char *const plain_names[] = {
    "episode_index",
    "length",
    "data/chunk_index",
    "data/file_index",
    "dataset_from_index",
    "dataset_to_index",
    "meta/episodes/chunk_index",
    "meta/episodes/file_index",
    "tasks",
};
enum {
    INDEX,
    LENGTH,
    DATA_CHUNK,
    DATA_FILE,
    FROM,
    TO,
    META_CHUNK,
    META_FILE,
    TASKS,
    VIDEOS
};
static const char *const video_names[] = {
    "chunk_index",
    "file_index",
    "from_timestamp",
    "to_timestamp",
};
enum { CHUNK, FILE_INDEX, FROM_S, TO_S, VIDEO_COLUMNS };

struct reading {
    td_dataset_episodes *episodes;
    size_t videos;
    const char **names;
    size_t count;
    uint64_t frames; // so far
    const char *path;
    td_errinfo *info;
};

static td_err no_memory(const struct reading *reading)
{
    return td_fail(reading->info, TD_ERR_NOMEM, "out of memory");
}

static td_err name_columns(struct reading *reading,
                           const td_dataset_info *dataset)
{
    td_arena *kept = &reading->episodes->kept;
    size_t most = VIDEOS + VIDEO_COLUMNS * dataset->feature_count;
    reading->names = td_arena_alloc(kept, most, sizeof(const char *));
    if (!reading->names) return no_memory(reading);
    memcpy(reading->names, plain_names, sizeof plain_names);
    reading->count = VIDEOS;
    for (size_t i = 0; i < dataset->feature_count; i++) {
        if (dataset->features[i].dtype != TD_DATASET_DTYPE_VIDEO) continue;
        reading->videos++;
        for (size_t j = 0; j < VIDEO_COLUMNS; j++) {
            char name[512];
            int size = snprintf(name, sizeof name, "videos/%s/%s",
                                dataset->features[i].key, video_names[j]);
            char *text = td_arena_copy(kept, name, (size_t)size);
            if (!text) return no_memory(reading);
            reading->names[reading->count++] = text;
        }
    }
    return TD_OK;
}

static td_err refuse(const struct reading *reading, size_t column,
                     const char *what)
{
    return td_fail(reading->info, TD_ERR_FORMAT, "%s: column %s: %s",
                   reading->path, reading->names[column], what);
}

static td_err whole(const struct reading *reading, const td_dataset_rows *rows,
                    size_t column, size_t row, uint64_t most,
                    uint64_t *ret_value)
{
    size_t count = 0;
    const td_dataset_column *from = &rows->columns[column];
    const int64_t *value = td_dataset_row(from, row, &count);
    if (from->type != TD_DATASET_I64 || count != 1)
        return refuse(reading, column, "must be whole numbers");
    if (*value < 0 || (uint64_t)*value > most)
        return refuse(reading, column, "has a number out of range");
    *ret_value = (uint64_t)*value;
    return TD_OK;
}

static td_err place(const struct reading *reading, const td_dataset_rows *rows,
                    size_t chunk, size_t row, td_dataset_place *ret_place)
{
    uint64_t values[2] = {0};
    for (size_t i = 0; i < 2; i++)
        TD_TRY(whole(reading, rows, chunk + i, row, UINT32_MAX, &values[i]));
    *ret_place = (td_dataset_place){(uint32_t)values[0], (uint32_t)values[1]};
    return TD_OK;
}

static td_err seconds(const struct reading *reading,
                      const td_dataset_rows *rows, size_t column, size_t row,
                      double *ret_s)
{
    size_t count = 0;
    const td_dataset_column *from = &rows->columns[column];
    const void *value = td_dataset_row(from, row, &count);
    if (count == 1 && from->type == TD_DATASET_F64)
        *ret_s = *(const double *)value;
    else if (count == 1 && from->type == TD_DATASET_F32)
        *ret_s = (double)*(const float *)value;
    else
        return refuse(reading, column, "must be seconds");
    if (!isfinite(*ret_s) || *ret_s < 0)
        return refuse(reading, column, "has a number out of range");
    return TD_OK;
}

static td_err read_videos(const struct reading *reading,
                          const td_dataset_rows *rows, size_t row,
                          td_dataset_episode *episode)
{
    episode->videos = td_arena_alloc(
        &reading->episodes->kept, reading->videos + 1, sizeof *episode->videos);
    if (!episode->videos) return no_memory(reading);
    for (size_t i = 0; i < reading->videos; i++) {
        size_t first = VIDEOS + VIDEO_COLUMNS * i;
        td_dataset_span *span = &episode->videos[i];
        TD_TRY(place(reading, rows, first + CHUNK, row, &span->at));
        TD_TRY(seconds(reading, rows, first + FROM_S, row, &span->from_s));
        TD_TRY(seconds(reading, rows, first + TO_S, row, &span->to_s));
    }
    return TD_OK;
}

static td_err read_tasks(const struct reading *reading,
                         const td_dataset_rows *rows, size_t row,
                         td_dataset_episode *episode)
{
    td_arena *kept = &reading->episodes->kept;
    size_t count = 0;
    const td_slice *texts = td_dataset_row(&rows->columns[TASKS], row, &count);
    if (count > 0 && rows->columns[TASKS].type != TD_DATASET_TEXT)
        return refuse(reading, TASKS, "must be texts");
    episode->tasks = td_arena_alloc(kept, count + 1, sizeof(char *));
    if (!episode->tasks) return no_memory(reading);
    for (size_t i = 0; i < count; i++) {
        episode->tasks[i] = td_arena_copy(kept, texts[i].data, texts[i].size);
        if (!episode->tasks[i]) return no_memory(reading);
    }
    episode->task_count = count;
    return TD_OK;
}

// Episodes follow one another: their numbers, and their rows without a gap.
static td_err read_order(struct reading *reading, const td_dataset_rows *rows,
                         size_t row, td_dataset_episode *episode)
{
    const uint64_t most = (uint64_t)1 << 40;
    uint64_t index = 0, to = 0;
    TD_TRY(whole(reading, rows, INDEX, row, most, &index));
    TD_TRY(whole(reading, rows, LENGTH, row, most, &episode->length));
    TD_TRY(whole(reading, rows, FROM, row, most, &episode->from));
    TD_TRY(whole(reading, rows, TO, row, most, &to));
    if (index != reading->episodes->count)
        return refuse(reading, INDEX, "episodes are not in order");
    if (episode->from != reading->frames)
        return refuse(reading, FROM, "does not begin where the last one ends");
    if (episode->length == 0 || to - episode->from != episode->length)
        return refuse(reading, TO, "does not fit the length");
    reading->frames = to;
    return TD_OK;
}

static td_err read_row(struct reading *reading, const td_dataset_rows *rows,
                       size_t row)
{
    td_dataset_episode episode = {0};
    TD_TRY(read_order(reading, rows, row, &episode));
    TD_TRY(place(reading, rows, DATA_CHUNK, row, &episode.data));
    TD_TRY(place(reading, rows, META_CHUNK, row, &episode.meta));
    TD_TRY(read_tasks(reading, rows, row, &episode));
    TD_TRY(read_videos(reading, rows, row, &episode));
    reading->episodes->items[reading->episodes->count++] = episode;
    return TD_OK;
}

static td_err make_room(struct reading *reading, uint64_t rows)
{
    td_dataset_episodes *episodes = reading->episodes;
    if (rows > TD_DATASET_MAX_EPISODES - episodes->count)
        return td_fail(reading->info, TD_ERR_LIMIT, "%s: more than %u episodes",
                       reading->path, TD_DATASET_MAX_EPISODES);
    td_dataset_episode *items = reallocarray(
        episodes->items, episodes->count + (size_t)rows + 1, sizeof *items);
    if (!items) return no_memory(reading);
    episodes->items = items;
    return TD_OK;
}

static td_err keep_first(struct reading *reading, const char *path)
{
    td_dataset_episodes *episodes = reading->episodes;
    if (episodes->first) return TD_OK;
    episodes->first = td_arena_copy(&episodes->kept, path, strlen(path));
    return episodes->first ? TD_OK : no_memory(reading);
}

static td_err read_file(struct reading *reading, const char *path)
{
    reading->path = path;
    TD_AUTO(td_dataset_table) *table = NULL;
    TD_TRY(td_dataset_table_open(path, &table, reading->info));
    uint64_t rows = td_dataset_table_rows(table);
    TD_TRY(keep_first(reading, path));
    TD_TRY(make_room(reading, rows));
    for (uint64_t first = 0; first < rows; first += WINDOW_ROWS) {
        TD_AUTO(td_dataset_rows) *some = NULL;
        uint64_t left = rows - first;
        size_t count = left < WINDOW_ROWS ? (size_t)left : WINDOW_ROWS;
        TD_TRY(td_dataset_table_read(table, first, count, reading->names,
                                     reading->count, &some, reading->info));
        for (size_t i = 0; i < count; i++)
            TD_TRY(read_row(reading, some, i));
    }
    return TD_OK;
}

static int by_name(const struct dirent **left, const struct dirent **right)
{
    return strcmp((*left)->d_name, (*right)->d_name);
}

static int is_shown(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static int is_table(const struct dirent *entry)
{
    const char *end = strrchr(entry->d_name, '.');
    return is_shown(entry) && end && strcmp(end, ".parquet") == 0;
}

// Calls `each` with every entry of a folder that is wanted, in order.
static td_err for_each(struct reading *reading, const char *folder,
                       int (*wanted)(const struct dirent *),
                       td_err (*each)(struct reading *, const char *))
{
    struct dirent **entries = NULL;
    int count = scandir(folder, &entries, wanted, by_name);
    if (count < 0 && errno == ENOTDIR) return TD_OK;
    if (count < 0)
        return td_fail(reading->info,
                       errno == ENOENT ? TD_ERR_NOTFOUND : TD_ERR_IO, "%s: %s",
                       folder, strerror(errno));
    td_err err = TD_OK;
    for (int i = 0; i < count; i++) {
        td_dataset_disk_path path;
        if (err == TD_OK)
            err = td_dataset_disk_join(folder, entries[i]->d_name, &path,
                                       reading->info);
        if (err == TD_OK) err = each(reading, path.text);
        free(entries[i]);
    }
    free(entries);
    return err;
}

static td_err read_chunk(struct reading *reading, const char *folder)
{
    return for_each(reading, folder, is_table, read_file);
}

static td_err check_totals(const struct reading *reading,
                           const td_dataset_info *dataset)
{
    size_t count = reading->episodes->count;
    if (count == dataset->total_episodes &&
        reading->frames == dataset->total_frames)
        return TD_OK;
    return td_fail(reading->info, TD_ERR_MISMATCH,
                   "info.json: %" PRIu64 " episodes of %" PRIu64
                   " frames, but meta/episodes has %zu of %" PRIu64,
                   dataset->total_episodes, dataset->total_frames, count,
                   reading->frames);
}

td_err td_dataset_episodes_read(const char *folder,
                                const td_dataset_info *dataset,
                                td_dataset_episodes **ret_episodes,
                                td_errinfo *info)
{
    TD_AUTO(td_dataset_episodes) *episodes = calloc(1, sizeof *episodes);
    struct reading reading = {.episodes = episodes, .info = info};
    if (!episodes) return no_memory(&reading);
    TD_TRY(name_columns(&reading, dataset));
    td_dataset_disk_path path;
    TD_TRY(td_dataset_disk_join(folder, "meta/episodes", &path, info));
    if (dataset->total_episodes > 0)
        TD_TRY(for_each(&reading, path.text, is_shown, read_chunk));
    TD_TRY(check_totals(&reading, dataset));
    *ret_episodes = TD_TAKE(episodes);
    return TD_OK;
}
