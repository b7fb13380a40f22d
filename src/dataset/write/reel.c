// SPDX-License-Identifier: Apache-2.0
#include "dataset/write/reel.h"
#include "dataset/disk/disk.h"
#include "dataset/disk/journal.h"
#include "dataset/disk/records.h"
#include "dataset/meta/schema.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define READINGS 3    // of each picture
#define TELL_EVERY 16 // pictures

struct td_dataset_reel_camera {
    uint32_t frames;
    uint32_t packets;     // handed out
    uint64_t pixel_bytes; // of a record
    td_dataset_progress *progress;
    td_media_video_params params;
    uint8_t head[TD_MEDIA_VIDEO_MAX_HEAD];
    td_dataset_records_reader video_file;
    td_dataset_records_reader pixels_file;
};

static td_err open_file(const char *folder, const char *name,
                        td_dataset_records_reader *ret_reader, td_errinfo *info)
{
    td_dataset_disk_path path;
    TD_TRY(td_dataset_disk_join(folder, name, &path, info));
    return td_dataset_records_open(path.text, ret_reader, info);
}

static td_err read_params(const td_dataset_reel *reel, uint32_t index,
                          td_dataset_reel_camera *camera)
{
    td_slice record;
    td_dataset_journal_packet packet;
    TD_TRY(td_dataset_records_next(&camera->video_file, &record));
    if (record.size < sizeof packet ||
        record.size - sizeof packet > sizeof camera->head)
        return TD_ERR_EMPTY;
    memcpy(&packet, record.data, sizeof packet);
    if (packet.frame != -1) return TD_ERR_EMPTY;
    size_t size = record.size - sizeof packet;
    memcpy(camera->head, (const uint8_t *)record.data + sizeof packet, size);
    camera->params = (td_media_video_params){
        .codec = reel->schema->codec,
        .height = reel->schema->cameras[index].height,
        .width = reel->schema->cameras[index].width,
        .fps = reel->schema->fps,
        .head = {camera->head, size},
    };
    camera->pixel_bytes =
        TD_DATASET_RECORDS_FRAME_BYTES +
        td_dataset_journal_pixel_bytes(&reel->schema->cameras[index]);
    return TD_OK;
}

td_err td_dataset_reel_camera_open(const td_dataset_reel *reel, uint32_t camera,
                                   td_dataset_reel_camera **ret_camera,
                                   td_errinfo *info)
{
    char name[32];
    TD_AUTO(td_dataset_reel_camera) *opened = calloc(1, sizeof *opened);
    if (!opened) return TD_ERR_NOMEM;
    opened->frames = reel->frames;
    opened->progress = reel->progress;
    opened->video_file.fd = opened->pixels_file.fd = -1;
    (void)snprintf(name, sizeof name, "%u.video", camera);
    TD_TRY(open_file(reel->folder, name, &opened->video_file, info));
    (void)snprintf(name, sizeof name, "%u.pixels", camera);
    TD_TRY(open_file(reel->folder, name, &opened->pixels_file, info));
    td_err err = read_params(reel, camera, opened);
    if (err == TD_ERR_EMPTY)
        return td_fail(info, TD_ERR_FORMAT, "camera %s: its video is damaged",
                       reel->schema->cameras[camera].name);
    TD_TRY(err);
    *ret_camera = TD_TAKE(opened);
    return TD_OK;
}

void td_dataset_reel_camera_close(td_dataset_reel_camera *camera)
{
    td_dataset_records_close(&camera->video_file);
    td_dataset_records_close(&camera->pixels_file);
    free(camera);
}

const td_media_video_params *
td_dataset_reel_camera_params(const td_dataset_reel_camera *camera)
{
    return &camera->params;
}

static void note_read(td_dataset_progress *progress)
{
    if (!progress) return;
    progress->done++;
    if (progress->done % TELL_EVERY == 0 || progress->done == progress->total)
        progress->tell(progress->user, progress->done, progress->total);
}

td_err td_dataset_reel_packet(void *user, td_media_video_packet *ret_packet,
                              td_errinfo *info)
{
    (void)info;
    td_dataset_reel_camera *camera = user;
    td_slice record;
    td_dataset_journal_packet head;
    if (camera->packets == camera->frames) return TD_ERR_EMPTY;
    TD_TRY(td_dataset_records_next(&camera->video_file, &record));
    if (record.size <= sizeof head) return TD_ERR_EMPTY;
    memcpy(&head, record.data, sizeof head);
    if (head.frame != camera->packets) return TD_ERR_EMPTY;
    camera->packets++;
    note_read(camera->progress);
    *ret_packet = (td_media_video_packet){
        .data = {(const uint8_t *)record.data + sizeof head,
                 record.size - sizeof head},
        .frame = head.frame,
        .key = head.key != 0,
    };
    return TD_OK;
}

td_err td_dataset_reel_pixels(td_dataset_reel_camera *camera, uint32_t frame,
                              td_slice *ret_pixels, td_errinfo *info)
{
    td_slice pixels;
    camera->pixels_file.at = frame * camera->pixel_bytes;
    td_err err = TD_ERR_EMPTY;
    if (frame < camera->frames &&
        camera->pixels_file.at < camera->pixels_file.size)
        err = td_dataset_records_next(&camera->pixels_file, &pixels);
    if (err == TD_ERR_NOMEM || err == TD_ERR_IO) return err;
    if (err != TD_OK ||
        pixels.size + TD_DATASET_RECORDS_FRAME_BYTES != camera->pixel_bytes)
        return td_fail(info, TD_ERR_FORMAT, "frame %u: its pixels are damaged",
                       frame);
    *ret_pixels = pixels;
    return TD_OK;
}

// What the first record says is each version's own.
static td_err read_schema(td_dataset_reel *reel, const json_t *head,
                          td_errinfo *info)
{
    const json_t *version = json_object_get(head, "version");
    if (!json_is_integer(version))
        return td_fail(info, TD_ERR_VERSION, "%s: not a journal of ours",
                       reel->folder);
    if (json_integer_value(version) != TD_DATASET_JOURNAL_VERSION)
        return td_fail(info, TD_ERR_VERSION,
                       "%s: a journal of version %lld, this tendon reads %d; "
                       "repair it with the tendon that recorded it",
                       reel->folder, (long long)json_integer_value(version),
                       TD_DATASET_JOURNAL_VERSION);
    td_err err = td_dataset_schema_read(json_object_get(head, "schema"),
                                        &reel->schema, info);
    if (err == TD_OK || err == TD_ERR_NOMEM) return err;
    return td_fail(info, TD_ERR_VERSION,
                   "%s: a journal with a schema that is none of ours",
                   reel->folder);
}

static td_err read_head(td_dataset_reel *reel, td_dataset_records_reader *rows,
                        td_errinfo *info)
{
    td_slice record;
    uint32_t kind = 0;
    td_err err = td_dataset_records_next(rows, &record);
    if (err == TD_ERR_NOMEM || err == TD_ERR_IO) return err;
    if (err != TD_OK)
        return td_fail(info, TD_ERR_FORMAT, "%s: it does not begin",
                       reel->folder);
    if (record.size > sizeof kind) memcpy(&kind, record.data, sizeof kind);
    json_t *head = NULL;
    if (kind == TD_DATASET_JOURNAL_HEAD)
        head =
            json_loadb((const char *)record.data + sizeof kind,
                       record.size - sizeof kind, JSON_REJECT_DUPLICATES, NULL);
    err = read_schema(reel, head, info);
    json_decref(head);
    return err;
}

// The columns for as many rows as the file can hold at most.
static td_err make_room(td_dataset_reel *reel, uint64_t file_bytes)
{
    const td_dataset_schema *schema = reel->schema;
    assert(schema);
    size_t row_bytes =
        sizeof(td_dataset_journal_row) +
        sizeof(float) * (schema->state_count + schema->action_count);
    size_t rows = file_bytes / row_bytes + 1;
    reel->state = calloc(rows * schema->state_count, sizeof(float));
    reel->action = calloc(rows * schema->action_count, sizeof(float));
    reel->missing = calloc(rows, sizeof(int64_t));
    reel->chunk = calloc(rows, sizeof(int64_t));
    reel->step = calloc(rows, sizeof(int64_t));
    reel->age_s = calloc(rows, sizeof(float));
    reel->held = calloc(rows, 1);
    reel->clamped = calloc(rows, 1);
    reel->failsafe = calloc(rows, 1);
    reel->task = calloc(rows, sizeof(uint32_t));
    bool ok = reel->state && reel->action && reel->missing && reel->chunk &&
              reel->step && reel->age_s && reel->held && reel->clamped &&
              reel->failsafe && reel->task;
    return ok ? TD_OK : TD_ERR_NOMEM;
}

static td_err read_row(td_dataset_reel *reel, td_slice body)
{
    const td_dataset_schema *schema = reel->schema;
    size_t state_bytes = schema->state_count * sizeof(float);
    size_t action_bytes = schema->action_count * sizeof(float);
    td_dataset_journal_row row;
    if (body.size != sizeof row + state_bytes + action_bytes ||
        reel->task_count == 0)
        return TD_ERR_EMPTY;
    const uint8_t *at = body.data;
    memcpy(&row, at, sizeof row);
    at += sizeof row;
    uint32_t i = reel->rows++;
    memcpy(reel->state + (size_t)i * schema->state_count, at, state_bytes);
    memcpy(reel->action + (size_t)i * schema->action_count, at + state_bytes,
           action_bytes);
    reel->missing[i] = row.missing;
    reel->chunk[i] = row.chunk;
    reel->step[i] = row.step;
    reel->age_s[i] = row.age_s;
    reel->held[i] = row.held;
    reel->clamped[i] = row.clamped;
    reel->failsafe[i] = row.failsafe;
    reel->task[i] = reel->current;
    return TD_OK;
}

static bool find_task(const td_dataset_reel *reel, td_slice text,
                      uint32_t *ret_index)
{
    for (uint32_t i = 0; i < reel->task_count; i++)
        if (strlen(reel->tasks[i]) == text.size &&
            memcmp(reel->tasks[i], text.data, text.size) == 0) {
            *ret_index = i;
            return true;
        }
    return false;
}

static td_err read_task(td_dataset_reel *reel, td_slice body)
{
    if (body.size >= TD_DATASET_MAX_TASK) return TD_ERR_EMPTY;
    if (find_task(reel, body, &reel->current)) return TD_OK;
    char **tasks =
        realloc((void *)reel->tasks, (reel->task_count + 1) * sizeof *tasks);
    if (!tasks) return TD_ERR_NOMEM;
    reel->tasks = tasks;
    tasks[reel->task_count] = strndup(body.data, body.size);
    if (!tasks[reel->task_count]) return TD_ERR_NOMEM;
    reel->current = reel->task_count++;
    return TD_OK;
}

static td_err read_record(td_dataset_reel *reel, td_slice record)
{
    uint32_t kind = 0;
    if (record.size <= sizeof kind) return TD_ERR_EMPTY;
    memcpy(&kind, record.data, sizeof kind);
    td_slice body = {(const uint8_t *)record.data + sizeof kind,
                     record.size - sizeof kind};
    switch (kind) {
    case TD_DATASET_JOURNAL_TASK:
        return read_task(reel, body);
    case TD_DATASET_JOURNAL_ROW:
        return read_row(reel, body);
    case TD_DATASET_JOURNAL_END:
        if (body.size == sizeof reel->number) {
            memcpy(&reel->number, body.data, body.size);
            reel->ended = true;
        }
        return TD_ERR_EMPTY;
    default:
        return TD_ERR_EMPTY;
    }
}

static td_err read_rows(td_dataset_reel *reel, td_errinfo *info)
{
    td_slice record;
    td_dataset_records_reader rows;
    TD_TRY(open_file(reel->folder, "rows", &rows, info));
    td_err err = read_head(reel, &rows, info);
    if (err == TD_OK) err = make_room(reel, rows.size);
    while (err == TD_OK) {
        err = td_dataset_records_next(&rows, &record);
        if (err == TD_OK) err = read_record(reel, record);
    }
    td_dataset_records_close(&rows);
    return err == TD_ERR_EMPTY ? TD_OK : err;
}

td_err td_dataset_reel_video_bytes(const td_dataset_reel *reel, uint32_t camera,
                                   uint64_t *ret_bytes, td_errinfo *info)
{
    uint64_t bytes = 0;
    td_media_video_packet packet;
    TD_AUTO(td_dataset_reel_camera) *of = NULL;
    TD_TRY(td_dataset_reel_camera_open(reel, camera, &of, info));
    while (td_dataset_reel_packet(of, &packet, info) == TD_OK)
        bytes += packet.data.size;
    *ret_bytes = bytes;
    return TD_OK;
}

// How many frames of a camera are whole in both of its files.
static td_err count_camera(const td_dataset_reel *reel, uint32_t index,
                           uint32_t *ret_frames, td_errinfo *info)
{
    TD_AUTO(td_dataset_reel_camera) *camera = NULL;
    td_media_video_packet packet;
    td_slice pixels;
    uint32_t frames = 0;
    td_err err = td_dataset_reel_camera_open(reel, index, &camera, info);
    while (err == TD_OK) {
        err = td_dataset_reel_packet(camera, &packet, info);
        if (err == TD_OK)
            err = td_dataset_reel_pixels(camera, frames, &pixels, info);
        frames += err == TD_OK;
    }
    bool is_short =
        err == TD_ERR_EMPTY || err == TD_ERR_FORMAT || err == TD_ERR_NOTFOUND;
    if (!is_short) return err;
    *ret_frames = frames;
    return TD_OK;
}

// Pictures that are still to be read, beside those that are.
static void expect(const td_dataset_reel *reel, uint64_t readings)
{
    td_dataset_progress *progress = reel->progress;
    if (progress)
        progress->total = progress->done +
                          readings * reel->frames * reel->schema->camera_count;
}

static td_err count_frames(td_dataset_reel *reel, td_errinfo *info)
{
    assert(reel->schema);
    expect(reel, READINGS);
    for (uint32_t i = 0; i < reel->schema->camera_count; i++) {
        uint32_t frames = 0;
        TD_TRY(count_camera(reel, i, &frames, info));
        if (frames < reel->frames) reel->frames = frames;
    }
    expect(reel, READINGS - 1);
    return TD_OK;
}

td_err td_dataset_reel_load(const char *folder, bool trusted,
                            td_dataset_progress *progress,
                            td_dataset_reel **ret_reel, td_errinfo *info)
{
    TD_AUTO(td_dataset_reel) *reel = calloc(1, sizeof *reel);
    if (!reel) return TD_ERR_NOMEM;
    reel->progress = progress;
    reel->folder = strdup(folder);
    if (!reel->folder) return TD_ERR_NOMEM;
    TD_TRY(read_rows(reel, info));
    reel->frames = reel->rows;
    if (!trusted) TD_TRY(count_frames(reel, info));
    *ret_reel = TD_TAKE(reel);
    return TD_OK;
}

void td_dataset_reel_free(td_dataset_reel *reel)
{
    if (reel->schema) td_dataset_schema_free(reel->schema);
    for (uint32_t i = 0; i < reel->task_count; i++)
        free(reel->tasks[i]);
    free((void *)reel->tasks);
    free(reel->state);
    free(reel->action);
    free(reel->missing);
    free(reel->chunk);
    free(reel->step);
    free(reel->age_s);
    free(reel->held);
    free(reel->clamped);
    free(reel->failsafe);
    free(reel->task);
    free(reel->folder);
    free(reel);
}
