// SPDX-License-Identifier: Apache-2.0
#include "dataset/write/append.h"
#include "base/log.h"
#include "dataset/meta/features.h"
#include "dataset/meta/stats_file.h"
#include "dataset/table/table.h"
#include "dataset/write/append_internal.h"

#include <stdlib.h>
#include <string.h>

#define SLACK_BYTES (UINT64_C(4) << 20) // tasks, statistics, folders

void td_dataset_append_close(td_dataset_append *append)
{
    for (size_t i = 0; append->totals && i < append->dataset->feature_count;
         i++)
        if (append->totals[i]) td_dataset_stats_free(append->totals[i]);
    free((void *)append->totals);
    if (append->first) td_dataset_table_close(append->first);
    if (append->before) td_dataset_episodes_free(append->before);
    if (append->tasks) td_dataset_tasks_free(append->tasks);
    if (append->dataset) td_dataset_info_free(append->dataset);
    free(append);
}

uint32_t td_dataset_append_episodes(const td_dataset_append *append)
{
    return (uint32_t)append->dataset->total_episodes;
}

uint64_t td_dataset_append_frames(const td_dataset_append *append)
{
    return append->dataset->total_frames;
}

bool td_dataset_append_had(const td_dataset_append *append, uint32_t number,
                           uint32_t frames)
{
    const td_dataset_episodes *before = append->before;
    return before && number < before->count &&
           before->items[number].length == frames;
}

uint64_t td_dataset_append_need(const td_dataset_append *append,
                                uint64_t episode_bytes)
{
    uint64_t bytes = append->data.bytes + append->meta.bytes;
    for (uint32_t i = 0; i < append->schema->camera_count; i++)
        bytes += append->videos[i].bytes;
    return bytes + episode_bytes + SLACK_BYTES;
}

// The place after all that are taken.
static void move_past(td_dataset_append_files *files, td_dataset_place taken,
                      uint32_t chunks_size)
{
    td_dataset_place next = td_dataset_place_next(taken, chunks_size);
    if (next.chunk > files->at.chunk ||
        (next.chunk == files->at.chunk && next.file > files->at.file))
        files->at = next;
}

td_err td_dataset_append_place(const td_dataset_append *append,
                               const td_dataset_append_files *files,
                               const char *pattern, const char *key,
                               char ret_name[TD_DATASET_MAX_PATH],
                               td_dataset_disk_path *ret_path, td_errinfo *info)
{
    char name[TD_DATASET_MAX_PATH];
    td_dataset_disk_path path;
    TD_TRY(td_dataset_path_fill(pattern, key, files->at.chunk, files->at.file,
                                name, info));
    TD_TRY(
        td_dataset_disk_join(append->staging->folder.text, name, &path, info));
    if (!files->begun && td_dataset_disk_exists(path.text))
        return td_fail(info, TD_ERR_EXISTS,
                       "%s: no episode is in it, and the next one would "
                       "replace it; move it out of the dataset",
                       path.text);
    memcpy(ret_name, name, strlen(name) + 1);
    *ret_path = path;
    return TD_OK;
}

// Better now than at the end of an episode.
static td_err check_places(const td_dataset_append *append, td_errinfo *info)
{
    char name[TD_DATASET_MAX_PATH];
    td_dataset_disk_path path;
    const td_dataset_info *dataset = append->dataset;
    const td_dataset_append_files *video = append->videos;
    TD_TRY(td_dataset_append_place(append, &append->data, dataset->data_path,
                                   NULL, name, &path, info));
    TD_TRY(td_dataset_append_place(append, &append->meta,
                                   TD_DATASET_EPISODES_PATH, NULL, name, &path,
                                   info));
    for (size_t i = 0; i < dataset->feature_count; i++)
        if (dataset->features[i].dtype == TD_DATASET_DTYPE_VIDEO)
            TD_TRY(td_dataset_append_place(append, video++, dataset->video_path,
                                           dataset->features[i].key, name,
                                           &path, info));
    return TD_OK;
}

static td_err find_places(td_dataset_append *append, td_errinfo *info)
{
    uint32_t chunks_size = append->dataset->chunks_size;
    TD_TRY(td_dataset_episodes_read(append->staging->folder.text,
                                    append->dataset, &append->before, info));
    for (size_t i = 0; i < append->before->count; i++) {
        const td_dataset_episode *episode = &append->before->items[i];
        move_past(&append->data, episode->data, chunks_size);
        move_past(&append->meta, episode->meta, chunks_size);
        for (uint32_t k = 0; k < append->schema->camera_count; k++)
            move_past(&append->videos[k], episode->videos[k].at, chunks_size);
    }
    return TD_OK;
}

// LeRobot says what a video is with the first episode.
static td_err describe(td_dataset_append *append, td_errinfo *info)
{
    const char *codec = td_media_codec_name(append->schema->codec);
    for (size_t i = 0; i < append->dataset->feature_count; i++) {
        const td_dataset_feature *feature = &append->dataset->features[i];
        if (feature->dtype == TD_DATASET_DTYPE_VIDEO)
            TD_TRY(td_dataset_info_set_video(append->dataset, feature->key,
                                             codec, info));
    }
    return TD_OK;
}

static td_err read_present(td_dataset_append *append, td_errinfo *info)
{
    const char *folder = append->staging->folder.text;
    TD_TRY(td_dataset_info_read(folder, &append->dataset, info));
    TD_TRY(td_dataset_features_check(append->schema, append->dataset, info));
    append->totals =
        calloc(append->dataset->feature_count, sizeof *append->totals);
    if (!append->totals) return TD_ERR_NOMEM;
    if (append->dataset->total_tasks > 0)
        TD_TRY(td_dataset_tasks_read(folder, &append->tasks, info));
    if (!td_dataset_features_say_what_was_done(append->dataset))
        td_log_text(TD_LOG_WARN,
                    "dataset: %s has no columns for what was really done: "
                    "held, clamped or missing frames are recorded unmarked",
                    folder);
    if (append->dataset->total_episodes == 0) return describe(append, info);
    TD_TRY(find_places(append, info));
    TD_TRY(td_dataset_table_open(append->before->first, &append->first, info));
    td_err err = td_dataset_stats_file_read(folder, append->dataset,
                                            append->totals, info);
    return err == TD_ERR_NOTFOUND ? TD_OK : err;
}

static td_err begin_new(td_dataset_append *append,
                        const td_dataset_append_config *config,
                        td_errinfo *info)
{
    TD_TRY(td_dataset_features_new(append->schema, &append->dataset, info));
    if (config->data_file_mb)
        append->dataset->data_file_mb = config->data_file_mb;
    if (config->video_file_mb)
        append->dataset->video_file_mb = config->video_file_mb;
    append->totals =
        calloc(append->dataset->feature_count, sizeof *append->totals);
    return append->totals ? TD_OK : TD_ERR_NOMEM;
}

td_err td_dataset_append_open(const td_dataset_append_config *config,
                              td_dataset_append **ret_append, td_errinfo *info)
{
    // Before anything is begun that could not be brought to an end.
    TD_TRY(td_dataset_table_load(info));
    if (config->schema->camera_count > 0) TD_TRY(td_media_video_load(info));
    TD_AUTO(td_dataset_append) *append = calloc(1, sizeof *append);
    if (!append) return TD_ERR_NOMEM;
    append->staging = config->staging;
    append->schema = config->schema;
    const char *folder = append->staging->folder.text;
    bool is_new =
        !td_dataset_disk_exists(folder) || td_dataset_disk_is_empty(folder);
    TD_TRY(is_new ? begin_new(append, config, info)
                  : read_present(append, info));
    TD_TRY(check_places(append, info));
    if (!append->tasks) append->tasks = calloc(1, sizeof *append->tasks);
    if (!append->tasks) return TD_ERR_NOMEM;
    *ret_append = TD_TAKE(append);
    return TD_OK;
}
