// SPDX-License-Identifier: Apache-2.0
// Writes a dataset as files that people open: episodes.csv, a CSV of frames for
// each episode, and a JPEG for each picture.
//
// Everything that can be refused is refused before the first file is written:
// episodes that are not there, a camera whose name cannot be that of a folder,
// an output folder with something in it. After that the export walks over the
// chosen episodes in order, one pass over the rows of each: a line of cells,
// then the pictures of that row, so that videos are decoded forwards.
//
// The columns of a frame's line are the features that are not pictures, a cell
// a channel, named after the feature and the channel. Numbers have as many
// digits as it takes to read the same number again.
//
// Every picture is decoded and compressed again at the quality that was asked
// for, whatever the dataset holds it as, so that all files are alike.
//
// `progress` is asked after each frame and may stop the export. What was
// written until then, or until an error, stays.
#include "dataset/read/export.h"

#include "dataset/disk/disk.h"
#include "dataset/read/csv.h"
#include "dataset/read/reader.h"
#include "media/jpeg.h"
#include "media/video.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct export_job {
    const td_dataset_export_config *config;
    td_dataset_reader *reader;
    const td_dataset_info *dataset;
    td_media_jpeg_encoder *jpeg;
    uint8_t *rgb; // room for the largest picture
    size_t first; // the episodes
    size_t last;
    uint64_t total; // frames of them
    td_dataset_export_sums sums;
    td_errinfo *info;
} export_job;

static td_slice text_of(const char *text)
{
    return (td_slice){text, strlen(text)};
}

// What is written as cells; the rest are pictures, or say where they stand.
static bool has_cells(const td_dataset_feature *feature)
{
    static const char *const places[] = {"timestamp", "frame_index",
                                         "episode_index", "task_index"};
    for (size_t i = 0; i < TD_COUNT_OF(places); i++)
        if (strcmp(feature->key, places[i]) == 0) return false;
    return !td_dataset_feature_is_picture(feature);
}

// A camera's name becomes that of a folder.
static td_err check_name(const td_dataset_feature *feature, td_errinfo *info)
{
    const char *key = feature->key;
    if (key[0] != '.' && key[0] != '\0' && !strchr(key, '/')) return TD_OK;
    return td_fail(info, TD_ERR_UNSUPPORTED,
                   "the camera \"%s\": no folder can have that name", key);
}

static td_err measure_pictures(export_job *job)
{
    size_t most = 0;
    for (size_t i = 0; i < job->dataset->feature_count; i++) {
        const td_dataset_feature *feature = &job->dataset->features[i];
        uint32_t height = 0, width = 0;
        if (!td_dataset_feature_is_picture(feature)) continue;
        TD_TRY(check_name(feature, job->info));
        if (feature->dtype == TD_DATASET_DTYPE_VIDEO)
            TD_TRY(td_media_video_load(job->info));
        TD_TRY(td_dataset_feature_picture(feature, &height, &width));
        size_t bytes = (size_t)height * width * 3;
        if (bytes > most) most = bytes;
    }
    job->rgb = malloc(most + 1);
    return job->rgb ? TD_OK : TD_ERR_NOMEM;
}

static td_err choose_episodes(export_job *job)
{
    const td_dataset_episodes *all = td_dataset_reader_episodes(job->reader);
    const char *wanted = job->config->episodes;
    size_t last = all->count ? all->count - 1 : 0;
    if (all->count == 0)
        return td_fail(job->info, TD_ERR_EMPTY, "%s has no episode",
                       job->config->folder);
    if (wanted) {
        char *end = NULL;
        job->first = strtoull(wanted, &end, 10);
        last = *end == ':' && end[1] ? strtoull(end + 1, &end, 10) : job->first;
        if (*wanted < '0' || *wanted > '9' || *end || last < job->first ||
            last >= all->count)
            return td_fail(job->info, TD_ERR_INVALID,
                           "episodes \"%s\": there are 0 to %zu", wanted,
                           all->count - 1);
    }
    job->last = last;
    for (size_t i = job->first; i <= last; i++)
        job->total += all->items[i].length;
    return TD_OK;
}

static td_err make_folder(const export_job *job, const char *name)
{
    td_dataset_disk_path path;
    TD_TRY(td_dataset_disk_join(job->config->out, name, &path, job->info));
    return td_dataset_disk_make_folder(path.text, job->info);
}

static td_err begin(export_job *job)
{
    const td_dataset_export_config *config = job->config;
    TD_TRY(td_dataset_reader_open(config->folder, &job->reader, job->info));
    job->dataset = td_dataset_reader_info(job->reader);
    TD_TRY(choose_episodes(job));
    if (!config->no_pictures) TD_TRY(measure_pictures(job));
    TD_TRY(td_media_jpeg_encoder_new(config->quality, TD_MEDIA_CHROMA_420,
                                     &job->jpeg));
    if (td_dataset_disk_exists(config->out) &&
        !td_dataset_disk_is_empty(config->out))
        return td_fail(job->info, TD_ERR_EXISTS,
                       "%s: is not an empty folder; nothing was written",
                       config->out);
    return td_dataset_disk_make_folder(config->out, job->info);
}

static void write_episode_line(const export_job *job, td_dataset_csv *csv,
                               size_t number)
{
    const td_dataset_episode *episode =
        &td_dataset_reader_episodes(job->reader)->items[number];
    td_dataset_csv_whole(csv, (int64_t)number);
    td_dataset_csv_whole(csv, (int64_t)episode->length);
    td_dataset_csv_double(csv, (double)episode->length / job->dataset->fps);
    for (size_t i = 0; i < episode->task_count; i++)
        td_dataset_csv_text(csv, text_of(episode->tasks[i]));
    td_dataset_csv_end_line(csv);
}

static td_err write_episodes(const export_job *job)
{
    static const char *const heads[] = {"episode", "frames", "seconds",
                                        "tasks"};
    td_dataset_disk_path path;
    td_dataset_csv csv;
    TD_TRY(td_dataset_disk_join(job->config->out, "episodes.csv", &path,
                                job->info));
    TD_TRY(td_dataset_csv_open(path.text, &csv, job->info));
    for (size_t i = 0; i < TD_COUNT_OF(heads); i++)
        td_dataset_csv_text(&csv, text_of(heads[i]));
    td_dataset_csv_end_line(&csv);
    for (size_t i = job->first; i <= job->last; i++)
        write_episode_line(job, &csv, i);
    return td_dataset_csv_close(&csv, path.text, job->info);
}

// "action/shoulder_pan.pos", "action/3" where channels have no names, "action"
// where there is one.
static void write_channel(td_dataset_csv *csv,
                          const td_dataset_feature *feature, size_t i)
{
    char text[512];
    size_t size = td_dataset_feature_size(feature);
    if (size == 1)
        (void)snprintf(text, sizeof text, "%s", feature->key);
    else if (feature->name_count == size)
        (void)snprintf(text, sizeof text, "%s/%s", feature->key,
                       feature->names[i]);
    else
        (void)snprintf(text, sizeof text, "%s/%zu", feature->key, i);
    td_dataset_csv_text(csv, text_of(text));
}

static void write_heads(const export_job *job, td_dataset_csv *csv)
{
    static const char *const heads[] = {"frame", "timestamp_s", "task"};
    for (size_t i = 0; i < TD_COUNT_OF(heads); i++)
        td_dataset_csv_text(csv, text_of(heads[i]));
    for (size_t i = 0; i < job->dataset->feature_count; i++) {
        const td_dataset_feature *feature = &job->dataset->features[i];
        for (size_t k = 0;
             has_cells(feature) && k < td_dataset_feature_size(feature); k++)
            write_channel(csv, feature, k);
    }
    td_dataset_csv_end_line(csv);
}

static td_err write_cells(const export_job *job, td_dataset_csv *csv,
                          const td_dataset_feature *feature)
{
    td_dataset_type type = TD_DATASET_F32;
    const void *values = NULL;
    size_t count = 0;
    TD_TRY(td_dataset_reader_values(job->reader, feature->key, &type, &values,
                                    &count));
    for (size_t i = 0; i < count; i++)
        td_dataset_csv_value(csv, type, values, i);
    return TD_OK;
}

static td_err write_row(const export_job *job, td_dataset_csv *csv,
                        const td_dataset_reading *row)
{
    td_dataset_csv_whole(csv, (int64_t)row->frame);
    td_dataset_csv_single(csv, row->timestamp_s);
    td_dataset_csv_text(csv, text_of(row->task));
    for (size_t i = 0; i < job->dataset->feature_count; i++)
        if (has_cells(&job->dataset->features[i]))
            TD_TRY(write_cells(job, csv, &job->dataset->features[i]));
    td_dataset_csv_end_line(csv);
    return TD_OK;
}

static td_err write_file(const char *path, td_slice bytes, td_errinfo *info)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0) return td_dataset_disk_fail(path, info);
    td_err err = td_dataset_disk_write(fd, bytes, 0);
    if (close(fd) != 0 && err == TD_OK) err = TD_ERR_IO;
    if (err != TD_OK)
        return td_fail(info, err, "%s: %s", path, td_err_text(err));
    return TD_OK;
}

static td_err write_picture(export_job *job, const td_dataset_feature *feature,
                            const td_dataset_reading *row)
{
    td_dataset_disk_path path;
    td_slice jpeg = {NULL, 0};
    uint32_t height = 0, width = 0;
    char name[512];
    TD_TRY(td_dataset_feature_picture(feature, &height, &width));
    TD_TRY(td_dataset_reader_picture(job->reader, feature->key, job->rgb,
                                     job->info));
    TD_TRY(td_media_jpeg_encode(job->jpeg, job->rgb, height, width, &jpeg,
                                job->info));
    (void)snprintf(name, sizeof name,
                   "%s/episode-%06" PRIu64 "/frame-%06" PRIu64 ".jpg",
                   feature->key, row->episode, row->frame);
    TD_TRY(td_dataset_disk_join(job->config->out, name, &path, job->info));
    TD_TRY(write_file(path.text, jpeg, job->info));
    job->sums.pictures++;
    return TD_OK;
}

static td_err write_pictures(export_job *job, const td_dataset_reading *row)
{
    for (size_t i = 0; i < job->dataset->feature_count; i++) {
        const td_dataset_feature *feature = &job->dataset->features[i];
        if (td_dataset_feature_is_picture(feature) && !job->config->no_pictures)
            TD_TRY(write_picture(job, feature, row));
    }
    return TD_OK;
}

static td_err write_rows(export_job *job, td_dataset_csv *csv, size_t number)
{
    const td_dataset_export_config *config = job->config;
    const td_dataset_episode *episode =
        &td_dataset_reader_episodes(job->reader)->items[number];
    write_heads(job, csv);
    for (uint64_t i = 0; i < episode->length; i++) {
        td_dataset_reading row;
        if (config->progress &&
            !config->progress(config->user, job->sums.frames, job->total))
            return td_fail(job->info, TD_ERR_CANCELLED,
                           "stopped after %" PRIu64 " of %" PRIu64 " frames",
                           job->sums.frames, job->total);
        TD_TRY(td_dataset_reader_seek(job->reader, episode->from + i, &row,
                                      job->info));
        TD_TRY(write_row(job, csv, &row));
        TD_TRY(write_pictures(job, &row));
        job->sums.frames++;
    }
    return TD_OK;
}

static td_err make_folders(const export_job *job, size_t number)
{
    char name[512];
    for (size_t i = 0; i < job->dataset->feature_count; i++) {
        const td_dataset_feature *feature = &job->dataset->features[i];
        if (!td_dataset_feature_is_picture(feature) || job->config->no_pictures)
            continue;
        (void)snprintf(name, sizeof name, "%s/episode-%06zu", feature->key,
                       number);
        TD_TRY(make_folder(job, name));
    }
    return TD_OK;
}

static td_err write_episode(export_job *job, size_t number)
{
    td_dataset_disk_path path;
    td_dataset_csv csv;
    char name[64];
    (void)snprintf(name, sizeof name, "episode-%06zu.csv", number);
    TD_TRY(td_dataset_disk_join(job->config->out, name, &path, job->info));
    TD_TRY(make_folders(job, number));
    TD_TRY(td_dataset_csv_open(path.text, &csv, job->info));
    td_err err = write_rows(job, &csv, number);
    td_err closed =
        td_dataset_csv_close(&csv, path.text, err == TD_OK ? job->info : NULL);
    if (err == TD_OK) err = closed;
    if (err == TD_OK) job->sums.episodes++;
    return err;
}

static td_err export_all(export_job *job)
{
    TD_TRY(begin(job));
    TD_TRY(write_episodes(job));
    for (size_t i = job->first; i <= job->last; i++)
        TD_TRY(write_episode(job, i));
    return TD_OK;
}

td_err td_dataset_export(const td_dataset_export_config *config,
                         td_dataset_export_sums *ret_sums, td_errinfo *info)
{
    export_job job = {.config = config, .info = info};
    td_err err = export_all(&job);
    if (err == TD_OK) *ret_sums = job.sums;
    if (job.reader) td_dataset_reader_close(job.reader);
    if (job.jpeg) td_media_jpeg_encoder_free(job.jpeg);
    free(job.rgb);
    return err;
}
