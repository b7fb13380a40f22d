// SPDX-License-Identifier: Apache-2.0
// Adds one unsaved episode to a dataset, as one commit.
//
// The next dataset is built in the staging folder beside the present one
// (dataset/disk/staging.h). In order: the columns and statistics of the episode
// are computed (write/columns.c); the staging folder becomes a mirror of the
// dataset; the data file, the video of each camera and the file of episodes are
// written; then tasks, statistics and info.json. At last the folders are
// swapped. Until that instant nothing of the present dataset has changed, so
// that any error on the way leaves it as it was.
//
// Each of the three rows of files has one that grows (td_dataset_append_files).
// A file that grows is rewritten with all that it had: row groups are copied
// byte for byte and packets of videos are not encoded again. Where the next
// episode would make it larger than info.json allows, a new file is begun
// instead. Files of earlier sessions are never touched.
//
// The episode's own row names the file that it stands in, so where the file of
// episodes goes is decided before its row is written.
//
// The sums in memory (totals, tasks, info) change before the commit. After an
// error they may be ahead of the disk, which is why nothing more can be added
// then.
#include "base/log.h"
#include "dataset/disk/staging.h"
#include "dataset/meta/features.h"
#include "dataset/meta/stats_file.h"
#include "dataset/write/append_internal.h"
#include "dataset/write/columns.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MB (UINT64_C(1) << 20)

// One episode on its way into the dataset.
typedef struct job {
    td_dataset_append *append;
    const td_dataset_unsaved *unsaved;
    td_dataset_columns *columns;
    td_dataset_episode row;
    td_dataset_span videos[TD_DATASET_MAX_CAMERAS];
    uint32_t camera;            // whose video is being written
    td_dataset_disk_path grown; // the file that is appended to,
    const char *old;            // or NULL: none
    uint64_t rows_before;       // in it
} job;

typedef td_err write_fn(const job *of, int fd, td_errinfo *info);

static td_err write_file(const job *of, const char *name, write_fn *write_it,
                         uint64_t *ret_bytes, td_errinfo *info)
{
    struct stat written;
    td_dataset_disk_path path;
    TD_TRY(td_dataset_staging_file(of->append->staging, name, &path, info));
    int fd = open(path.text, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0) return td_dataset_disk_fail(path.text, info);
    td_err err = write_it(of, fd, info);
    if (err == TD_OK && fstat(fd, &written) != 0)
        err = td_dataset_disk_fail(path.text, info);
    if (close(fd) != 0 && err == TD_OK)
        err = td_dataset_disk_fail(path.text, info);
    if (err == TD_OK) *ret_bytes = (uint64_t)written.st_size;
    return err;
}

static bool is_room(const td_dataset_append_files *files, uint64_t more_bytes,
                    uint32_t most_mb)
{
    return files->begun && files->bytes + more_bytes < most_mb * MB;
}

// Writes the growing file of `files` again with more in it, or the next one
// where it has grown enough.
static td_err grow(job *of, td_dataset_append_files *files, const char *pattern,
                   const char *key, bool fits, write_fn *write_it,
                   td_errinfo *info)
{
    char name[TD_DATASET_MAX_PATH];
    uint32_t chunks_size = of->append->dataset->chunks_size;
    if (files->begun && !fits)
        *files = (td_dataset_append_files){
            .at = td_dataset_place_next(files->at, chunks_size)};
    TD_TRY(td_dataset_append_place(of->append, files, pattern, key, name,
                                   &of->grown, info));
    of->old = files->begun ? of->grown.text : NULL;
    of->rows_before = files->rows;
    TD_TRY(write_file(of, name, write_it, &files->bytes, info));
    files->begun = true;
    return TD_OK;
}

static td_err copy_old(const job *of, td_dataset_table_writer *table,
                       td_errinfo *info)
{
    TD_AUTO(td_dataset_table) *old = NULL;
    if (!of->old) return TD_OK;
    TD_TRY(td_dataset_table_open(of->old, &old, info));
    return td_dataset_table_copy(table, old, info);
}

static td_err write_rows(const job *of, const td_dataset_field *fields,
                         size_t count, const char *note, int fd,
                         td_errinfo *info)
{
    TD_AUTO(td_dataset_table_writer) *table = NULL;
    const td_dataset_note notes[] = {{"huggingface", note}};
    TD_TRY(td_dataset_table_create(fd, fields, count, notes, 1, &table, info));
    TD_TRY(copy_old(of, table, info));
    TD_TRY(td_dataset_table_append(table, td_dataset_columns_rows(of->columns),
                                   of->unsaved->frames, info));
    return td_dataset_table_finish(table, info);
}

static td_err write_data(const job *of, int fd, td_errinfo *info)
{
    char *note = NULL;
    size_t count = 0;
    td_dataset_field *fields = NULL;
    td_err err =
        td_dataset_info_fields(of->append->dataset, &fields, &count, info);
    if (err == TD_OK) err = td_dataset_info_note(of->append->dataset, &note);
    if (err == TD_OK) err = write_rows(of, fields, count, note, fd, info);
    free(fields);
    free(note);
    return err;
}

static td_err add_data(job *of, td_errinfo *info)
{
    td_dataset_append_files *data = &of->append->data;
    uint64_t more =
        data->rows ? data->bytes / data->rows * of->unsaved->frames : 0;
    TD_TRY(grow(of, data, of->append->dataset->data_path, NULL,
                is_room(data, more, of->append->dataset->data_file_mb),
                write_data, info));
    data->rows += of->unsaved->frames;
    of->row.data = data->at;
    return TD_OK;
}

static td_err write_video(const job *of, int fd, td_errinfo *info)
{
    uint64_t frames = 0;
    TD_AUTO(td_dataset_unsaved_camera) *camera = NULL;
    TD_TRY(
        td_dataset_unsaved_camera_open(of->unsaved, of->camera, &camera, info));
    TD_TRY(td_media_video_join(
        of->old, td_dataset_unsaved_camera_params(camera),
        td_dataset_unsaved_packet, camera, fd, &frames, info));
    uint64_t rows = of->rows_before + of->unsaved->frames;
    if (frames == rows) return TD_OK;
    return td_fail(info, TD_ERR_FORMAT,
                   "camera %s: %" PRIu64 " pictures of %" PRIu64 " are whole",
                   of->unsaved->schema->cameras[of->camera].name, frames, rows);
}

static td_err add_video(job *of, td_dataset_append_files *video,
                        const char *key, td_dataset_span *ret_span,
                        td_errinfo *info)
{
    uint64_t more = 0;
    double fps = of->unsaved->schema->fps;
    of->camera = td_dataset_features_camera(of->unsaved->schema, key);
    TD_TRY(
        td_dataset_unsaved_video_bytes(of->unsaved, of->camera, &more, info));
    TD_TRY(grow(of, video, of->append->dataset->video_path, key,
                is_room(video, more, of->append->dataset->video_file_mb),
                write_video, info));
    ret_span->at = video->at;
    ret_span->from_s = (double)video->rows / fps;
    video->rows += of->unsaved->frames;
    ret_span->to_s = (double)video->rows / fps;
    return TD_OK;
}

static td_err add_videos(job *of, td_errinfo *info)
{
    const td_dataset_info *dataset = of->append->dataset;
    uint32_t count = 0;
    of->row.videos = of->videos;
    for (size_t i = 0; i < dataset->feature_count; i++)
        if (dataset->features[i].dtype == TD_DATASET_DTYPE_VIDEO) {
            TD_TRY(add_video(of, &of->append->videos[count],
                             dataset->features[i].key, &of->videos[count],
                             info));
            count++;
        }
    return TD_OK;
}

static td_err write_episodes(const job *of, int fd, td_errinfo *info)
{
    const td_dataset_append *append = of->append;
    return td_dataset_episodes_append(of->old, append->first, append->dataset,
                                      append->dataset->total_episodes, &of->row,
                                      td_dataset_columns_stats(of->columns), fd,
                                      info);
}

static td_err add_meta(job *of, td_errinfo *info)
{
    td_dataset_append_files *meta = &of->append->meta;
    uint64_t more = meta->rows ? meta->bytes / meta->rows : 0;
    bool fits = is_room(meta, more, of->append->dataset->data_file_mb);
    // The row names the file that it stands in.
    of->row.meta =
        meta->begun && !fits
            ? td_dataset_place_next(meta->at, of->append->dataset->chunks_size)
            : meta->at;
    TD_TRY(grow(of, meta, TD_DATASET_EPISODES_PATH, NULL, fits, write_episodes,
                info));
    meta->rows++;
    return TD_OK;
}

static td_err find_task(td_dataset_tasks *tasks, const char *text,
                        uint32_t *ret_index)
{
    for (size_t i = 0; i < tasks->count; i++)
        if (strcmp(tasks->texts[i], text) == 0) {
            *ret_index = (uint32_t)i;
            return TD_OK;
        }
    char **texts =
        realloc((void *)tasks->texts, (tasks->count + 1) * sizeof *texts);
    if (!texts) return TD_ERR_NOMEM;
    tasks->texts = texts;
    texts[tasks->count] = strdup(text);
    if (!texts[tasks->count]) return TD_ERR_NOMEM;
    *ret_index = (uint32_t)tasks->count++;
    return TD_OK;
}

static td_err find_tasks(td_dataset_append *append,
                         const td_dataset_unsaved *unsaved, uint32_t *indices)
{
    for (uint32_t i = 0; i < unsaved->task_count; i++)
        TD_TRY(find_task(append->tasks, unsaved->tasks[i], &indices[i]));
    return TD_OK;
}

static td_err make_columns(job *of, td_errinfo *info)
{
    uint32_t *tasks = calloc(of->unsaved->task_count, sizeof *tasks);
    if (!tasks) return TD_ERR_NOMEM;
    const td_dataset_columns_place place = {
        .number = of->append->dataset->total_episodes,
        .first = of->append->dataset->total_frames,
        .tasks = tasks,
    };
    td_err err = find_tasks(of->append, of->unsaved, tasks);
    if (err == TD_OK)
        err = td_dataset_columns_new(of->append->dataset, of->unsaved, &place,
                                     &of->columns, info);
    free(tasks);
    return err;
}

static td_err merge_stats(job *of)
{
    td_dataset_stats **totals = of->append->totals;
    const td_dataset_stats *const *added =
        td_dataset_columns_stats(of->columns);
    for (size_t i = 0; i < of->append->dataset->feature_count; i++) {
        if (totals[i]) {
            TD_TRY(td_dataset_stats_merge(totals[i], added[i]));
            continue;
        }
        TD_TRY(td_dataset_stats_new(added[i]->channels, &totals[i]));
        totals[i]->count = added[i]->count;
        memcpy(totals[i]->values, added[i]->values,
               sizeof(double) * TD_DATASET_STAT_COUNT * added[i]->channels);
    }
    return TD_OK;
}

static td_err write_tasks(const job *of, int fd, td_errinfo *info)
{
    return td_dataset_tasks_write(of->append->tasks, fd, info);
}

static td_err write_stats(const job *of, int fd, td_errinfo *info)
{
    return td_dataset_stats_file_write(
        of->append->dataset,
        (const td_dataset_stats *const *)of->append->totals, fd, info);
}

static td_err write_info(const job *of, int fd, td_errinfo *info)
{
    (void)info;
    char *text = NULL;
    TD_TRY(td_dataset_info_text(of->append->dataset, &text));
    td_err err = td_dataset_disk_write(fd, (td_slice){text, strlen(text)}, 0);
    free(text);
    return err;
}

static td_err add_sums(job *of, td_errinfo *info)
{
    uint64_t bytes = 0;
    td_dataset_info *dataset = of->append->dataset;
    TD_TRY(merge_stats(of));
    dataset->total_episodes++;
    dataset->total_frames += of->unsaved->frames;
    dataset->total_tasks = of->append->tasks->count;
    TD_TRY(write_file(of, "meta/tasks.parquet", write_tasks, &bytes, info));
    TD_TRY(write_file(of, "meta/stats.json", write_stats, &bytes, info));
    return write_file(of, "meta/info.json", write_info, &bytes, info);
}

static td_err build(job *of, td_errinfo *info)
{
    of->row.length = of->unsaved->frames;
    of->row.from = of->append->dataset->total_frames;
    of->row.task_count = of->unsaved->task_count;
    of->row.tasks = of->unsaved->tasks;
    TD_TRY(make_columns(of, info));
    TD_TRY(td_dataset_staging_begin(of->append->staging, info));
    TD_TRY(add_data(of, info));
    TD_TRY(add_videos(of, info));
    TD_TRY(add_meta(of, info));
    return add_sums(of, info);
}

td_err td_dataset_append_episode(td_dataset_append *append,
                                 const td_dataset_unsaved *unsaved,
                                 td_errinfo *info)
{
    job of = {.append = append, .unsaved = unsaved};
    td_err err = build(&of, info);
    if (of.columns) td_dataset_columns_free(of.columns);
    TD_TRY(err);
    TD_TRY(td_dataset_staging_commit(append->staging, info));
    // The dataset as it was; what is not removed now goes with the next commit.
    td_errinfo left = {""};
    if (td_dataset_disk_remove(append->staging->next.text, &left) != TD_OK)
        td_log_text(TD_LOG_WARN, "dataset: %s", left.text);
    return TD_OK;
}
