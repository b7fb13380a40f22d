// SPDX-License-Identifier: Apache-2.0
#include "dataset/write/recording.h"

#include "base/finite.h"
#include "dataset/journal/journal.h"
#include "dataset/stats/pictures.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// One camera of an episode.
typedef struct track {
    td_dataset_recording *recording;
    uint32_t index;
    size_t pixel_bytes; // that the statistics look at
    uint64_t packets;
    td_media_video_encoder *encoder;
} track;

struct td_dataset_recording {
    const td_dataset_schema *schema;
    td_dataset_recording_missed *missed;
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
    return td_dataset_journal_packet_add(of->recording->journal, of->index,
                                         packet, info);
}

static td_err open_track(td_dataset_recording *recording, uint32_t index,
                         td_errinfo *info)
{
    const td_dataset_camera *camera = &recording->schema->cameras[index];
    track *of = &recording->tracks[index];
    of->recording = recording;
    of->index = index;
    of->pixel_bytes = td_dataset_journal_pixel_bytes(camera);
    const td_media_video_encoder_config config = {
        .codec = recording->schema->codec,
        .height = camera->height,
        .width = camera->width,
        .fps = recording->schema->fps,
        .pick_step = td_dataset_pictures_step(camera->height, camera->width),
        .sink = keep_packet,
        .user = of,
    };
    TD_TRY(td_media_video_encoder_open(&config, &of->encoder, info));
    return td_dataset_journal_video_begin(
        recording->journal, index,
        td_media_video_encoder_params(of->encoder)->head, info);
}

td_err td_dataset_recording_open(const char *folder,
                                 const td_dataset_schema *schema,
                                 td_dataset_recording_missed *missed,
                                 td_dataset_recording **ret_recording,
                                 td_errinfo *info)
{
    TD_AUTO(td_dataset_recording) *recording =
        calloc(1, sizeof *recording +
                      schema->camera_count * sizeof recording->tracks[0]);
    if (!recording) return TD_ERR_NOMEM;
    recording->schema = schema;
    recording->missed = missed;
    recording->state = calloc(schema->state_count, sizeof *recording->state);
    recording->action = calloc(schema->action_count, sizeof *recording->action);
    if (!recording->state || !recording->action) return TD_ERR_NOMEM;
    TD_TRY(td_dataset_journal_new(folder, schema, &recording->journal, info));
    for (uint32_t i = 0; i < schema->camera_count; i++)
        TD_TRY(open_track(recording, i, info));
    *ret_recording = TD_TAKE(recording);
    return TD_OK;
}

// What is still in the encoders goes with them: nobody wants it of an episode
// that is thrown away, and where the disk has failed there is no place for it.
void td_dataset_recording_close(td_dataset_recording *recording)
{
    for (uint32_t i = 0; i < recording->schema->camera_count; i++)
        if (recording->tracks[i].encoder)
            td_media_video_encoder_close(recording->tracks[i].encoder);
    if (recording->journal) td_dataset_journal_close(recording->journal);
    free(recording->state);
    free(recording->action);
    free(recording);
}

// True where the picture itself was bad, not the encoder or the disk.
static bool is_bad_picture(td_err err)
{
    return err == TD_ERR_FORMAT || err == TD_ERR_MISMATCH ||
           err == TD_ERR_LIMIT;
}

static td_err encode(track *of, const td_dataset_image *image, td_errinfo *info)
{
    const td_dataset_camera *camera =
        &of->recording->schema->cameras[of->index];
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
        of->recording->missed->bad[of->index] += is_bad_picture(err);
        of->recording->missed->camera[of->index]++;
        err = td_media_video_encoder_repeat(of->encoder, info);
    }
    if (err != TD_OK) return err;
    td_slice pixels = {td_media_video_encoder_picked(of->encoder),
                       of->pixel_bytes};
    return td_dataset_journal_pixels_add(of->recording->journal, of->index,
                                         pixels, info);
}

// Remembers the row, or leaves the one before it where this one was lost.
static bool keep_row(td_dataset_recording *recording,
                     const td_dataset_frame *frame)
{
    const td_dataset_schema *schema = recording->schema;
    if (frame->lost || !td_finite_f32(frame->state, schema->state_count) ||
        !td_finite_f32(frame->action, schema->action_count))
        return false;
    memcpy(recording->state, frame->state, schema->state_count * sizeof(float));
    memcpy(recording->action, frame->action,
           schema->action_count * sizeof(float));
    return true;
}

static td_err change_task(td_dataset_recording *recording, const char *task,
                          td_errinfo *info)
{
    size_t size = strnlen(task, sizeof recording->task);
    if (size == 0 || size == sizeof recording->task)
        return td_fail(info, TD_ERR_INVALID,
                       "task: 1 to %d bytes of text are needed",
                       TD_DATASET_MAX_TASK - 1);
    if (strcmp(task, recording->task) == 0) return TD_OK;
    TD_TRY(td_dataset_journal_task_add(recording->journal, task, info));
    memcpy(recording->task, task, size + 1);
    return TD_OK;
}

td_err td_dataset_recording_add(td_dataset_recording *recording,
                                const td_dataset_frame *frame, td_errinfo *info)
{
    TD_TRY(change_task(recording, frame->task, info));
    td_dataset_journal_row row = {
        .chunk = frame->done.chunk,
        .step = frame->done.step,
        .age_s = isfinite(frame->done.age_s) ? frame->done.age_s : -1,
        .held = frame->done.held,
        .clamped = frame->done.clamped,
        .failsafe = frame->done.failsafe,
    };
    for (uint32_t i = 0; i < recording->schema->camera_count; i++) {
        bool missing = false;
        TD_TRY(add_image(&recording->tracks[i], &frame->images[i], &missing,
                         info));
        if (missing) row.missing |= INT64_C(1) << i;
    }
    if (!keep_row(recording, frame)) row.missing |= TD_DATASET_MISSING_ROW;
    TD_TRY(td_dataset_journal_row_add(
        recording->journal, &row, recording->state, recording->action, info));
    recording->frames++;
    return TD_OK;
}

uint64_t td_dataset_recording_frames(const td_dataset_recording *recording)
{
    return recording->frames;
}

uint64_t td_dataset_recording_bytes(const td_dataset_recording *recording)
{
    return td_dataset_journal_bytes(recording->journal);
}

uint64_t td_dataset_recording_kept_bytes(const td_dataset_recording *recording)
{
    return td_dataset_journal_kept_bytes(recording->journal);
}

td_err td_dataset_recording_sync(td_dataset_recording *recording,
                                 td_errinfo *info)
{
    return td_dataset_journal_sync(recording->journal, info);
}

td_err td_dataset_recording_end(td_dataset_recording *recording,
                                uint32_t number, td_errinfo *info)
{
    for (uint32_t i = 0; i < recording->schema->camera_count; i++) {
        track *of = &recording->tracks[i];
        TD_TRY(td_media_video_encoder_end(of->encoder, info));
        if (of->packets != recording->frames)
            return td_fail(info, TD_ERR_INTERNAL,
                           "camera %s: %llu of %llu pictures came out of the "
                           "encoder",
                           recording->schema->cameras[i].name,
                           (unsigned long long)of->packets,
                           (unsigned long long)recording->frames);
    }
    return td_dataset_journal_end(recording->journal, number, info);
}
