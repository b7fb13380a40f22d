// SPDX-License-Identifier: Apache-2.0
#include "dataset/write/take.h"

#include "base/finite.h"
#include "dataset/disk/journal.h"
#include "dataset/stats/pictures.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// One camera of a take.
typedef struct track {
    td_dataset_take *take;
    uint32_t index;
    size_t pixel_bytes; // that the statistics look at
    uint64_t packets;
    td_media_video_encoder *encoder;
} track;

struct td_dataset_take {
    const td_dataset_schema *schema;
    td_dataset_take_missed *missed;
    td_dataset_journal *journal;
    uint64_t frames;
    float *state; // of the last row: zeros before the first
    float *action;
    char task[TD_DATASET_MAX_TASK]; // of the last row
    track tracks[];
};

static td_err keep_packet(void *user, const td_media_video_packet *packet,
                          td_errinfo *info)
{
    track *of = user;
    of->packets++;
    return td_dataset_journal_packet_add(of->take->journal, of->index, packet,
                                         info);
}

static td_err open_track(td_dataset_take *take, uint32_t index,
                         td_errinfo *info)
{
    const td_dataset_camera *camera = &take->schema->cameras[index];
    track *of = &take->tracks[index];
    of->take = take;
    of->index = index;
    of->pixel_bytes = td_dataset_journal_pixel_bytes(camera);
    const td_media_video_encoder_config config = {
        .codec = take->schema->codec,
        .height = camera->height,
        .width = camera->width,
        .fps = take->schema->fps,
        .pick_step = td_dataset_pictures_step(camera->height, camera->width),
        .sink = keep_packet,
        .user = of,
    };
    TD_TRY(td_media_video_encoder_open(&config, &of->encoder, info));
    return td_dataset_journal_video_begin(
        take->journal, index, td_media_video_encoder_params(of->encoder)->head,
        info);
}

td_err td_dataset_take_open(const char *folder, const td_dataset_schema *schema,
                            td_dataset_take_missed *missed,
                            td_dataset_take **ret_take, td_errinfo *info)
{
    TD_AUTO(td_dataset_take) *take =
        calloc(1, sizeof *take + schema->camera_count * sizeof take->tracks[0]);
    if (!take) return TD_ERR_NOMEM;
    take->schema = schema;
    take->missed = missed;
    take->state = calloc(schema->state_count, sizeof *take->state);
    take->action = calloc(schema->action_count, sizeof *take->action);
    if (!take->state || !take->action) return TD_ERR_NOMEM;
    TD_TRY(td_dataset_journal_new(folder, schema, &take->journal, info));
    for (uint32_t i = 0; i < schema->camera_count; i++)
        TD_TRY(open_track(take, i, info));
    *ret_take = TD_TAKE(take);
    return TD_OK;
}

// What is still in the encoders goes with them: nobody wants it of an episode
// that is thrown away, and where the disk has failed there is no place for it.
void td_dataset_take_close(td_dataset_take *take)
{
    for (uint32_t i = 0; i < take->schema->camera_count; i++)
        if (take->tracks[i].encoder)
            td_media_video_encoder_close(take->tracks[i].encoder);
    if (take->journal) td_dataset_journal_close(take->journal);
    free(take->state);
    free(take->action);
    free(take);
}

// True where the picture itself was bad, not the encoder or the disk.
static bool is_bad_picture(td_err err)
{
    return err == TD_ERR_FORMAT || err == TD_ERR_MISMATCH ||
           err == TD_ERR_LIMIT;
}

static td_err encode(track *of, const td_dataset_image *image, td_errinfo *info)
{
    const td_dataset_camera *camera = &of->take->schema->cameras[of->index];
    size_t size = (size_t)camera->height * camera->width * 3;
    switch (image->kind) {
    case TD_DATASET_IMAGE_RGB:
        if (image->bytes.size != size) return TD_ERR_MISMATCH;
        return td_media_video_encoder_add_rgb(of->encoder, image->bytes.data,
                                              info);
    case TD_DATASET_IMAGE_JPEG:
        return td_media_video_encoder_add_jpeg(of->encoder, image->bytes, info);
    default:
        return TD_ERR_EMPTY;
    }
}

static td_err add_image(track *of, const td_dataset_image *image,
                        bool *ret_missing, td_errinfo *info)
{
    td_err err = encode(of, image, info);
    *ret_missing = err == TD_ERR_EMPTY || is_bad_picture(err);
    if (*ret_missing) {
        of->take->missed->bad[of->index] += is_bad_picture(err);
        of->take->missed->camera[of->index]++;
        err = td_media_video_encoder_repeat(of->encoder, info);
    }
    if (err != TD_OK) return err;
    td_slice pixels = {td_media_video_encoder_picked(of->encoder),
                       of->pixel_bytes};
    return td_dataset_journal_pixels_add(of->take->journal, of->index, pixels,
                                         info);
}

// Remembers the row, or leaves the one before it where this one was lost.
static bool take_row(td_dataset_take *take, const td_dataset_frame *frame)
{
    const td_dataset_schema *schema = take->schema;
    if (frame->lost || !td_finite_f32(frame->state, schema->state_count) ||
        !td_finite_f32(frame->action, schema->action_count))
        return false;
    memcpy(take->state, frame->state, schema->state_count * sizeof(float));
    memcpy(take->action, frame->action, schema->action_count * sizeof(float));
    return true;
}

static td_err take_task(td_dataset_take *take, const char *task,
                        td_errinfo *info)
{
    size_t size = strnlen(task, sizeof take->task);
    if (size == 0 || size == sizeof take->task)
        return td_fail(info, TD_ERR_INVALID,
                       "task: 1 to %d bytes of text are needed",
                       TD_DATASET_MAX_TASK - 1);
    if (strcmp(task, take->task) == 0) return TD_OK;
    TD_TRY(td_dataset_journal_task_add(take->journal, task, info));
    memcpy(take->task, task, size + 1);
    return TD_OK;
}

td_err td_dataset_take_add(td_dataset_take *take, const td_dataset_frame *frame,
                           td_errinfo *info)
{
    TD_TRY(take_task(take, frame->task, info));
    td_dataset_journal_row row = {
        .chunk = frame->done.chunk,
        .step = frame->done.step,
        .age_s = isfinite(frame->done.age_s) ? frame->done.age_s : -1,
        .held = frame->done.held,
        .clamped = frame->done.clamped,
        .failsafe = frame->done.failsafe,
    };
    for (uint32_t i = 0; i < take->schema->camera_count; i++) {
        bool missing = false;
        TD_TRY(add_image(&take->tracks[i], &frame->images[i], &missing, info));
        if (missing) row.missing |= INT64_C(1) << i;
    }
    if (!take_row(take, frame)) row.missing |= TD_DATASET_MISSING_ROW;
    TD_TRY(td_dataset_journal_row_add(take->journal, &row, take->state,
                                      take->action, info));
    take->frames++;
    return TD_OK;
}

uint64_t td_dataset_take_frames(const td_dataset_take *take)
{
    return take->frames;
}

uint64_t td_dataset_take_bytes(const td_dataset_take *take)
{
    return td_dataset_journal_bytes(take->journal);
}

uint64_t td_dataset_take_kept_bytes(const td_dataset_take *take)
{
    return td_dataset_journal_kept_bytes(take->journal);
}

td_err td_dataset_take_sync(td_dataset_take *take, td_errinfo *info)
{
    return td_dataset_journal_sync(take->journal, info);
}

td_err td_dataset_take_end(td_dataset_take *take, uint32_t number,
                           td_errinfo *info)
{
    for (uint32_t i = 0; i < take->schema->camera_count; i++) {
        track *of = &take->tracks[i];
        TD_TRY(td_media_video_encoder_end(of->encoder, info));
        if (of->packets != take->frames)
            return td_fail(info, TD_ERR_INTERNAL,
                           "camera %s: %llu of %llu pictures came out of the "
                           "encoder",
                           take->schema->cameras[i].name,
                           (unsigned long long)of->packets,
                           (unsigned long long)take->frames);
    }
    return td_dataset_journal_end(take->journal, number, info);
}
