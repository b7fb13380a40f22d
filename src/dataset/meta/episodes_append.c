// SPDX-License-Identifier: Apache-2.0
// A file of episodes is rewritten with each episode: its 130 columns make a
// row group's part of the footer larger than its row.
#include "dataset/meta/episodes.h"

#include <stdio.h>
#include <string.h>

#define STATS (TD_DATASET_STAT_COUNT + 1)

// The columns as they come; each with the values of one row.
struct sheet {
    td_arena scratch;
    const td_dataset_table *like;
    size_t count;
    td_dataset_field *fields;
    td_dataset_column *columns;
    size_t *ends; // one each, where the number of values is free
};

static td_err no_memory(td_errinfo *info)
{
    return td_fail(info, TD_ERR_NOMEM, "out of memory");
}

static td_err sheet_init(struct sheet *sheet, const td_dataset_info *dataset,
                         td_errinfo *info)
{
    size_t most = 16 + dataset->feature_count * (STATS + 4);
    td_arena *scratch = &sheet->scratch;
    sheet->fields = td_arena_alloc(scratch, most, sizeof *sheet->fields);
    sheet->columns = td_arena_alloc(scratch, most, sizeof *sheet->columns);
    sheet->ends = td_arena_alloc(scratch, most, sizeof *sheet->ends);
    if (sheet->fields && sheet->columns && sheet->ends) return TD_OK;
    return no_memory(info);
}

// `depth` as in td_dataset_field; the values are copied.
static td_err add(struct sheet *sheet, const char *name, td_dataset_type type,
                  uint32_t depth, const void *values, size_t count,
                  td_errinfo *info)
{
    size_t size = td_dataset_type_size(type);
    size_t at = sheet->count;
    char *kept = td_arena_copy(&sheet->scratch, name, strlen(name));
    void *copy = td_arena_alloc(&sheet->scratch, count + 1, size);
    if (!kept || !copy) return no_memory(info);
    if (count > 0) memcpy(copy, values, count * size);
    sheet->ends[at] = count;
    sheet->fields[at] =
        (td_dataset_field){kept, type, depth == 0 ? 1 : 0, depth, false};
    sheet->columns[at] = (td_dataset_column){
        type, count, copy, depth == 0 ? NULL : &sheet->ends[at]};
    sheet->count++;
    return TD_OK;
}

static td_err add_whole(struct sheet *sheet, const char *name, uint64_t value,
                        td_errinfo *info)
{
    int64_t number = (int64_t)value;
    return add(sheet, name, TD_DATASET_I64, 0, &number, 1, info);
}

static td_err add_place(struct sheet *sheet, const char *prefix,
                        td_dataset_place place, td_errinfo *info)
{
    char name[512];
    (void)snprintf(name, sizeof name, "%s/chunk_index", prefix);
    TD_TRY(add_whole(sheet, name, place.chunk, info));
    (void)snprintf(name, sizeof name, "%s/file_index", prefix);
    return add_whole(sheet, name, place.file, info);
}

static td_err add_tasks(struct sheet *sheet, const td_dataset_episode *episode,
                        td_errinfo *info)
{
    td_slice *texts =
        td_arena_alloc(&sheet->scratch, episode->task_count + 1, sizeof *texts);
    if (!texts) return no_memory(info);
    for (size_t i = 0; i < episode->task_count; i++)
        texts[i] = (td_slice){episode->tasks[i], strlen(episode->tasks[i])};
    return add(sheet, "tasks", TD_DATASET_TEXT, 1, texts, episode->task_count,
               info);
}

static td_err add_video(struct sheet *sheet, const char *key,
                        const td_dataset_span *span, td_errinfo *info)
{
    char name[512];
    (void)snprintf(name, sizeof name, "videos/%s", key);
    TD_TRY(add_place(sheet, name, span->at, info));
    (void)snprintf(name, sizeof name, "videos/%s/from_timestamp", key);
    TD_TRY(add(sheet, name, TD_DATASET_F64, 0, &span->from_s, 1, info));
    (void)snprintf(name, sizeof name, "videos/%s/to_timestamp", key);
    return add(sheet, name, TD_DATASET_F64, 0, &span->to_s, 1, info);
}

static td_err add_stat(struct sheet *sheet, const char *name,
                       td_dataset_type type, uint32_t depth, const void *values,
                       size_t count, td_errinfo *info)
{
    size_t column = 0;
    if (sheet->like &&
        td_dataset_table_find(sheet->like, name, &column) != TD_OK)
        return TD_OK;
    return add(sheet, name, type, depth, values, count, info);
}

// As LeRobot has them: of a picture each number stands as [[[x]], …].
static td_err add_stats(struct sheet *sheet, const td_dataset_feature *feature,
                        const td_dataset_stats *stats, td_errinfo *info)
{
    char name[512];
    uint32_t depth = td_dataset_feature_is_picture(feature) ? 3 : 1;
    for (int i = 0; i < TD_DATASET_STAT_COUNT; i++) {
        (void)snprintf(name, sizeof name, "stats/%s/%s", feature->key,
                       td_dataset_stat_name((td_dataset_stat)i));
        TD_TRY(add_stat(sheet, name, TD_DATASET_F64, depth,
                        stats->values + (size_t)i * stats->channels,
                        stats->channels, info));
    }
    int64_t count = (int64_t)stats->count;
    (void)snprintf(name, sizeof name, "stats/%s/count", feature->key);
    return add_stat(sheet, name, TD_DATASET_I64, 1, &count, 1, info);
}

static td_err fill(struct sheet *sheet, const td_dataset_info *dataset,
                   uint64_t index, const td_dataset_episode *episode,
                   const td_dataset_stats *const *stats, td_errinfo *info)
{
    TD_TRY(add_whole(sheet, "episode_index", index, info));
    TD_TRY(add_tasks(sheet, episode, info));
    TD_TRY(add_whole(sheet, "length", episode->length, info));
    TD_TRY(add_place(sheet, "data", episode->data, info));
    TD_TRY(add_whole(sheet, "dataset_from_index", episode->from, info));
    TD_TRY(add_whole(sheet, "dataset_to_index", episode->from + episode->length,
                     info));
    const td_dataset_span *video = episode->videos;
    for (size_t i = 0; i < dataset->feature_count; i++)
        if (dataset->features[i].dtype == TD_DATASET_DTYPE_VIDEO)
            TD_TRY(add_video(sheet, dataset->features[i].key, video++, info));
    for (size_t i = 0; i < dataset->feature_count; i++)
        if (stats[i])
            TD_TRY(add_stats(sheet, &dataset->features[i], stats[i], info));
    return add_place(sheet, "meta/episodes", episode->meta, info);
}

static td_err copy_old(const struct sheet *sheet, const char *old,
                       td_dataset_table_writer *writer, td_errinfo *info)
{
    TD_AUTO(td_dataset_table) *table = NULL;
    TD_AUTO(td_dataset_rows) *rows = NULL;
    TD_TRY(td_dataset_table_open(old, &table, info));
    if (td_dataset_table_columns(table) != sheet->count)
        return td_fail(info, TD_ERR_MISMATCH, "%s: has other columns", old);
    const char *names[TD_DATASET_MAX_COLUMNS];
    for (size_t i = 0; i < sheet->count; i++) {
        names[i] = td_dataset_table_name(table, i);
        if (strcmp(names[i], sheet->fields[i].name) != 0)
            return td_fail(info, TD_ERR_MISMATCH,
                           "%s: has column %s in place of %s", old, names[i],
                           sheet->fields[i].name);
    }
    TD_TRY(td_dataset_table_read(table, 0, (size_t)td_dataset_table_rows(table),
                                 names, sheet->count, &rows, info));
    return td_dataset_table_append(writer, rows->columns, rows->rows, info);
}

static td_err write_sheet(const struct sheet *sheet, const char *old, int fd,
                          td_errinfo *info)
{
    TD_AUTO(td_dataset_table_writer) *writer = NULL;
    TD_TRY(td_dataset_table_create(fd, sheet->fields, sheet->count, NULL, 0,
                                   &writer, info));
    if (old) TD_TRY(copy_old(sheet, old, writer, info));
    TD_TRY(td_dataset_table_append(writer, sheet->columns, 1, info));
    return td_dataset_table_finish(writer, info);
}

td_err td_dataset_episodes_append(const char *old, const td_dataset_table *like,
                                  const td_dataset_info *dataset,
                                  uint64_t index,
                                  const td_dataset_episode *episode,
                                  const td_dataset_stats *const *stats, int fd,
                                  td_errinfo *info)
{
    struct sheet sheet = {.like = like};
    td_err err = sheet_init(&sheet, dataset, info);
    if (err == TD_OK) err = fill(&sheet, dataset, index, episode, stats, info);
    if (err == TD_OK) err = write_sheet(&sheet, old, fd, info);
    td_arena_done(&sheet.scratch);
    return err;
}
