// SPDX-License-Identifier: Apache-2.0
// Reads an episode back from its journal: the end of every recording, and what
// repair does with the journal of a recorder that died.
//
// The rows come first and all at once, into one array a column, each as large
// as the file could fill: journals are small beside memory, and a row is some
// hundred bytes. Reading stops at the first entry that is not whole or that no
// row can be (td_dataset_entries_next), so what a crash cut off is not seen at
// all. The END entry, where it stands, says that the recorder had begun to save
// the episode, and as which number.
//
// Pictures stay on the disk. A camera is opened as often as it is needed and
// hands out its packets and its pixels one after the other: first to count how
// many are whole, then for the size of the video, then to be copied into it. An
// episode has as many frames as its rows and both files of every camera have
// whole. A journal that this process has just completed is trusted, and its
// pictures are not counted.
//
// What is damaged is told apart from what cannot be read: EMPTY and FORMAT
// shorten the episode, IO and NOMEM end the reading, since the same file may be
// whole when it is read again.
//
// Nothing here changes a file. td_dataset_unsaved_free() frees the columns; a
// camera that is open borrows nothing from the episode and is closed by itself.
#include "dataset/journal/unsaved.h"
#include "dataset/disk/disk.h"
#include "dataset/journal/entries.h"
#include "dataset/journal/journal.h"
#include "dataset/meta/schema.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define READINGS 3    // of each picture
#define TELL_EVERY 16 // pictures

struct td_dataset_unsaved_camera {
    uint32_t frames;
    uint32_t packets;     // handed out
    uint64_t pixel_bytes; // of an entry
    td_dataset_progress *progress;
    td_media_video_params params;
    uint8_t head[TD_MEDIA_VIDEO_MAX_HEAD];
    td_dataset_entries_reader video_file;
    td_dataset_entries_reader pixels_file;
};

static td_err open_file(const char *folder, const char *name,
                        td_dataset_entries_reader *ret_reader, td_errinfo *info)
{
    td_dataset_disk_path path;
    TD_TRY(td_dataset_disk_join(folder, name, &path, info));
    return td_dataset_entries_open(path.text, ret_reader, info);
}

static td_err read_params(const td_dataset_unsaved *unsaved, uint32_t index,
                          td_dataset_unsaved_camera *camera)
{
    td_slice entry;
    td_dataset_journal_packet packet;
    TD_TRY(td_dataset_entries_next(&camera->video_file, &entry));
    if (entry.size < sizeof packet ||
        entry.size - sizeof packet > sizeof camera->head)
        return TD_ERR_EMPTY;
    memcpy(&packet, entry.data, sizeof packet);
    if (packet.frame != -1) return TD_ERR_EMPTY;
    size_t size = entry.size - sizeof packet;
    memcpy(camera->head, (const uint8_t *)entry.data + sizeof packet, size);
    camera->params = (td_media_video_params){
        .codec = unsaved->schema->codec,
        .height = unsaved->schema->cameras[index].height,
        .width = unsaved->schema->cameras[index].width,
        .fps = unsaved->schema->fps,
        .head = {camera->head, size},
    };
    camera->pixel_bytes =
        TD_DATASET_ENTRIES_FRAME_BYTES +
        td_dataset_journal_pixel_bytes(&unsaved->schema->cameras[index]);
    return TD_OK;
}

td_err td_dataset_unsaved_camera_open(const td_dataset_unsaved *unsaved,
                                      uint32_t camera,
                                      td_dataset_unsaved_camera **ret_camera,
                                      td_errinfo *info)
{
    char name[32];
    TD_AUTO(td_dataset_unsaved_camera) *opened = calloc(1, sizeof *opened);
    if (!opened) return TD_ERR_NOMEM;
    opened->frames = unsaved->frames;
    opened->progress = unsaved->progress;
    opened->video_file.fd = opened->pixels_file.fd = -1;
    (void)snprintf(name, sizeof name, "%u.video", camera);
    TD_TRY(open_file(unsaved->folder, name, &opened->video_file, info));
    (void)snprintf(name, sizeof name, "%u.pixels", camera);
    TD_TRY(open_file(unsaved->folder, name, &opened->pixels_file, info));
    td_err err = read_params(unsaved, camera, opened);
    if (err == TD_ERR_EMPTY)
        return td_fail(info, TD_ERR_FORMAT, "camera %s: its video is damaged",
                       unsaved->schema->cameras[camera].name);
    TD_TRY(err);
    *ret_camera = TD_TAKE(opened);
    return TD_OK;
}

void td_dataset_unsaved_camera_close(td_dataset_unsaved_camera *camera)
{
    td_dataset_entries_close(&camera->video_file);
    td_dataset_entries_close(&camera->pixels_file);
    free(camera);
}

const td_media_video_params *
td_dataset_unsaved_camera_params(const td_dataset_unsaved_camera *camera)
{
    return &camera->params;
}

static void note_read(td_dataset_progress *progress)
{
    if (!progress) return;
    progress->done++;
    if (progress->done % TELL_EVERY == 0 || progress->done == progress->total)
        progress->report(progress->user, progress->done, progress->total);
}

td_err td_dataset_unsaved_packet(void *user, td_media_video_packet *ret_packet,
                                 td_errinfo *info)
{
    (void)info;
    td_dataset_unsaved_camera *camera = user;
    td_slice entry;
    td_dataset_journal_packet head;
    if (camera->packets == camera->frames) return TD_ERR_EMPTY;
    TD_TRY(td_dataset_entries_next(&camera->video_file, &entry));
    if (entry.size <= sizeof head) return TD_ERR_EMPTY;
    memcpy(&head, entry.data, sizeof head);
    if (head.frame != camera->packets) return TD_ERR_EMPTY;
    camera->packets++;
    note_read(camera->progress);
    *ret_packet = (td_media_video_packet){
        .data = {(const uint8_t *)entry.data + sizeof head,
                 entry.size - sizeof head},
        .frame = head.frame,
        .key = head.key != 0,
    };
    return TD_OK;
}

td_err td_dataset_unsaved_pixels(td_dataset_unsaved_camera *camera,
                                 uint32_t frame, td_slice *ret_pixels,
                                 td_errinfo *info)
{
    td_slice pixels;
    camera->pixels_file.at = frame * camera->pixel_bytes;
    td_err err = TD_ERR_EMPTY;
    if (frame < camera->frames &&
        camera->pixels_file.at < camera->pixels_file.size)
        err = td_dataset_entries_next(&camera->pixels_file, &pixels);
    if (err == TD_ERR_NOMEM || err == TD_ERR_IO) return err;
    if (err != TD_OK ||
        pixels.size + TD_DATASET_ENTRIES_FRAME_BYTES != camera->pixel_bytes)
        return td_fail(info, TD_ERR_FORMAT, "frame %u: its pixels are damaged",
                       frame);
    *ret_pixels = pixels;
    return TD_OK;
}

// What the first entry says is each version's own.
static td_err read_schema(td_dataset_unsaved *unsaved, const json_t *head,
                          td_errinfo *info)
{
    const json_t *version = json_object_get(head, "version");
    if (!json_is_integer(version))
        return td_fail(info, TD_ERR_VERSION, "%s: not a journal of ours",
                       unsaved->folder);
    if (json_integer_value(version) != TD_DATASET_JOURNAL_VERSION)
        return td_fail(info, TD_ERR_VERSION,
                       "%s: a journal of version %lld, this tendon reads %d; "
                       "repair it with the tendon that recorded it",
                       unsaved->folder, (long long)json_integer_value(version),
                       TD_DATASET_JOURNAL_VERSION);
    td_err err = td_dataset_schema_read(json_object_get(head, "schema"),
                                        &unsaved->schema, info);
    if (err == TD_OK || err == TD_ERR_NOMEM) return err;
    return td_fail(info, TD_ERR_VERSION,
                   "%s: a journal whose schema is not one of Tendon",
                   unsaved->folder);
}

static td_err read_head(td_dataset_unsaved *unsaved,
                        td_dataset_entries_reader *rows, td_errinfo *info)
{
    td_slice entry;
    uint32_t kind = 0;
    td_err err = td_dataset_entries_next(rows, &entry);
    if (err == TD_ERR_NOMEM || err == TD_ERR_IO) return err;
    if (err != TD_OK)
        return td_fail(info, TD_ERR_FORMAT, "%s: it does not begin",
                       unsaved->folder);
    if (entry.size > sizeof kind) memcpy(&kind, entry.data, sizeof kind);
    json_t *head = NULL;
    if (kind == TD_DATASET_JOURNAL_HEAD)
        head =
            json_loadb((const char *)entry.data + sizeof kind,
                       entry.size - sizeof kind, JSON_REJECT_DUPLICATES, NULL);
    err = read_schema(unsaved, head, info);
    json_decref(head);
    return err;
}

// The columns for as many rows as the file can hold at most.
static td_err make_room(td_dataset_unsaved *unsaved, uint64_t file_bytes)
{
    const td_dataset_schema *schema = unsaved->schema;
    assert(schema);
    size_t row_bytes =
        sizeof(td_dataset_journal_row) +
        sizeof(float) * (schema->state_count + schema->action_count);
    size_t rows = file_bytes / row_bytes + 1;
    unsaved->state = calloc(rows * schema->state_count, sizeof(float));
    unsaved->action = calloc(rows * schema->action_count, sizeof(float));
    unsaved->missing = calloc(rows, sizeof(int64_t));
    unsaved->chunk = calloc(rows, sizeof(int64_t));
    unsaved->step = calloc(rows, sizeof(int64_t));
    unsaved->age_s = calloc(rows, sizeof(float));
    unsaved->held = calloc(rows, 1);
    unsaved->clamped = calloc(rows, 1);
    unsaved->failsafe = calloc(rows, 1);
    unsaved->task = calloc(rows, sizeof(uint32_t));
    bool ok = unsaved->state && unsaved->action && unsaved->missing &&
              unsaved->chunk && unsaved->step && unsaved->age_s &&
              unsaved->held && unsaved->clamped && unsaved->failsafe &&
              unsaved->task;
    return ok ? TD_OK : TD_ERR_NOMEM;
}

static td_err read_row(td_dataset_unsaved *unsaved, td_slice body)
{
    const td_dataset_schema *schema = unsaved->schema;
    size_t state_bytes = schema->state_count * sizeof(float);
    size_t action_bytes = schema->action_count * sizeof(float);
    td_dataset_journal_row row;
    if (body.size != sizeof row + state_bytes + action_bytes ||
        unsaved->task_count == 0)
        return TD_ERR_EMPTY;
    const uint8_t *at = body.data;
    memcpy(&row, at, sizeof row);
    at += sizeof row;
    uint32_t i = unsaved->rows++;
    memcpy(unsaved->state + (size_t)i * schema->state_count, at, state_bytes);
    memcpy(unsaved->action + (size_t)i * schema->action_count, at + state_bytes,
           action_bytes);
    unsaved->missing[i] = row.missing;
    unsaved->chunk[i] = row.chunk;
    unsaved->step[i] = row.step;
    unsaved->age_s[i] = row.age_s;
    unsaved->held[i] = row.held;
    unsaved->clamped[i] = row.clamped;
    unsaved->failsafe[i] = row.failsafe;
    unsaved->task[i] = unsaved->current;
    return TD_OK;
}

static bool find_task(const td_dataset_unsaved *unsaved, td_slice text,
                      uint32_t *ret_index)
{
    for (uint32_t i = 0; i < unsaved->task_count; i++)
        if (strlen(unsaved->tasks[i]) == text.size &&
            memcmp(unsaved->tasks[i], text.data, text.size) == 0) {
            *ret_index = i;
            return true;
        }
    return false;
}

static td_err read_task(td_dataset_unsaved *unsaved, td_slice body)
{
    if (body.size >= TD_DATASET_MAX_TASK) return TD_ERR_EMPTY;
    if (find_task(unsaved, body, &unsaved->current)) return TD_OK;
    char **tasks = realloc((void *)unsaved->tasks,
                           (unsaved->task_count + 1) * sizeof *tasks);
    if (!tasks) return TD_ERR_NOMEM;
    unsaved->tasks = tasks;
    tasks[unsaved->task_count] = strndup(body.data, body.size);
    if (!tasks[unsaved->task_count]) return TD_ERR_NOMEM;
    unsaved->current = unsaved->task_count++;
    return TD_OK;
}

static td_err read_entry(td_dataset_unsaved *unsaved, td_slice entry)
{
    uint32_t kind = 0;
    if (entry.size <= sizeof kind) return TD_ERR_EMPTY;
    memcpy(&kind, entry.data, sizeof kind);
    td_slice body = {(const uint8_t *)entry.data + sizeof kind,
                     entry.size - sizeof kind};
    switch (kind) {
    case TD_DATASET_JOURNAL_TASK:
        return read_task(unsaved, body);
    case TD_DATASET_JOURNAL_ROW:
        return read_row(unsaved, body);
    case TD_DATASET_JOURNAL_END:
        if (body.size == sizeof unsaved->number) {
            memcpy(&unsaved->number, body.data, body.size);
            unsaved->ended = true;
        }
        return TD_ERR_EMPTY;
    default:
        return TD_ERR_EMPTY;
    }
}

static td_err read_rows(td_dataset_unsaved *unsaved, td_errinfo *info)
{
    td_slice entry;
    td_dataset_entries_reader rows;
    TD_TRY(open_file(unsaved->folder, "rows", &rows, info));
    td_err err = read_head(unsaved, &rows, info);
    if (err == TD_OK) err = make_room(unsaved, rows.size);
    while (err == TD_OK) {
        err = td_dataset_entries_next(&rows, &entry);
        if (err == TD_OK) err = read_entry(unsaved, entry);
    }
    td_dataset_entries_close(&rows);
    return err == TD_ERR_EMPTY ? TD_OK : err;
}

td_err td_dataset_unsaved_video_bytes(const td_dataset_unsaved *unsaved,
                                      uint32_t camera, uint64_t *ret_bytes,
                                      td_errinfo *info)
{
    uint64_t bytes = 0;
    td_media_video_packet packet;
    TD_AUTO(td_dataset_unsaved_camera) *of = NULL;
    TD_TRY(td_dataset_unsaved_camera_open(unsaved, camera, &of, info));
    while (td_dataset_unsaved_packet(of, &packet, info) == TD_OK)
        bytes += packet.data.size;
    *ret_bytes = bytes;
    return TD_OK;
}

// How many frames of a camera are whole in both of its files.
static td_err count_camera(const td_dataset_unsaved *unsaved, uint32_t index,
                           uint32_t *ret_frames, td_errinfo *info)
{
    TD_AUTO(td_dataset_unsaved_camera) *camera = NULL;
    td_media_video_packet packet;
    td_slice pixels;
    uint32_t frames = 0;
    td_err err = td_dataset_unsaved_camera_open(unsaved, index, &camera, info);
    while (err == TD_OK) {
        err = td_dataset_unsaved_packet(camera, &packet, info);
        if (err == TD_OK)
            err = td_dataset_unsaved_pixels(camera, frames, &pixels, info);
        frames += err == TD_OK;
    }
    bool is_short =
        err == TD_ERR_EMPTY || err == TD_ERR_FORMAT || err == TD_ERR_NOTFOUND;
    if (!is_short) return err;
    *ret_frames = frames;
    return TD_OK;
}

// Pictures that are still to be read, beside those that are.
static void expect(const td_dataset_unsaved *unsaved, uint64_t readings)
{
    td_dataset_progress *progress = unsaved->progress;
    if (progress)
        progress->total = progress->done + readings * unsaved->frames *
                                               unsaved->schema->camera_count;
}

static td_err count_frames(td_dataset_unsaved *unsaved, td_errinfo *info)
{
    assert(unsaved->schema);
    expect(unsaved, READINGS);
    for (uint32_t i = 0; i < unsaved->schema->camera_count; i++) {
        uint32_t frames = 0;
        TD_TRY(count_camera(unsaved, i, &frames, info));
        if (frames < unsaved->frames) unsaved->frames = frames;
    }
    expect(unsaved, READINGS - 1);
    return TD_OK;
}

td_err td_dataset_unsaved_load(const char *folder, bool trusted,
                               td_dataset_progress *progress,
                               td_dataset_unsaved **ret_unsaved,
                               td_errinfo *info)
{
    TD_AUTO(td_dataset_unsaved) *unsaved = calloc(1, sizeof *unsaved);
    if (!unsaved) return TD_ERR_NOMEM;
    unsaved->progress = progress;
    unsaved->folder = strdup(folder);
    if (!unsaved->folder) return TD_ERR_NOMEM;
    TD_TRY(read_rows(unsaved, info));
    unsaved->frames = unsaved->rows;
    if (!trusted) TD_TRY(count_frames(unsaved, info));
    *ret_unsaved = TD_TAKE(unsaved);
    return TD_OK;
}

void td_dataset_unsaved_free(td_dataset_unsaved *unsaved)
{
    if (unsaved->schema) td_dataset_schema_free(unsaved->schema);
    for (uint32_t i = 0; i < unsaved->task_count; i++)
        free(unsaved->tasks[i]);
    free((void *)unsaved->tasks);
    free(unsaved->state);
    free(unsaved->action);
    free(unsaved->missing);
    free(unsaved->chunk);
    free(unsaved->step);
    free(unsaved->age_s);
    free(unsaved->held);
    free(unsaved->clamped);
    free(unsaved->failsafe);
    free(unsaved->task);
    free(unsaved->folder);
    free(unsaved);
}
