// SPDX-License-Identifier: Apache-2.0
#include "dataset/disk/disk.h"
#include "dataset/meta/path.h"
#include "dataset/verify/verify_internal.h"
#include "media/video.h"

#include <inttypes.h>
#include <math.h>

#define TOLERANCE_S 1e-4

// A video file that is being looked at, and how far its episodes reach.
typedef struct open_file {
    bool is_open;
    td_dataset_place at;
    char name[TD_DATASET_MAX_PATH];
    td_media_video_facts facts;
} open_file;

static td_err report_facts(td_dataset_verification *check,
                           const td_dataset_feature *feature,
                           const open_file *file)
{
    uint32_t height = 0;
    uint32_t width = 0;
    const td_media_video_facts *facts = &file->facts;
    if (td_dataset_feature_picture(feature, &height, &width) != TD_OK ||
        facts->height != height || facts->width != width)
        TD_TRY(td_dataset_verify_fault(
            check, file->name, TD_DATASET_REMEDY_COPY,
            "pictures of %ux%u, and info.json says %ux%u", facts->width,
            facts->height, width, height));
    if (fabs(facts->fps - check->dataset->fps) > 0.01)
        TD_TRY(td_dataset_verify_fault(check, file->name,
                                       TD_DATASET_REMEDY_COPY,
                                       "%.3f pictures a second, and info.json "
                                       "says %u",
                                       facts->fps, check->dataset->fps));
    return TD_OK;
}

// Leaves the file closed where it cannot be read, after reporting it.
static td_err open_file_at(td_dataset_verification *check,
                           const td_dataset_feature *feature,
                           td_dataset_place at, open_file *file)
{
    td_errinfo why = {""};
    td_dataset_disk_path path;
    TD_AUTO(td_media_video_decoder) *decoder = NULL;
    *file = (open_file){.at = at};
    if (!check->dataset->video_path)
        return td_dataset_verify_fault(check, "meta/info.json",
                                       TD_DATASET_REMEDY_COPY,
                                       "there are videos, but no video_path");
    TD_TRY(td_dataset_path_fill(check->dataset->video_path, feature->key,
                                at.chunk, at.file, file->name, NULL));
    TD_TRY(td_dataset_disk_join(check->folder, file->name, &path, NULL));
    td_err err = td_media_video_decoder_open(path.text, &decoder, &why);
    if (err == TD_ERR_NOMEM) return err;
    if (err != TD_OK)
        return td_dataset_verify_fault(check, file->name,
                                       TD_DATASET_REMEDY_COPY, "%s", why.text);
    file->facts = td_media_video_decoder_facts(decoder);
    file->is_open = true;
    return report_facts(check, feature, file);
}

static td_err check_span(td_dataset_verification *check, const open_file *file,
                         size_t number, const td_dataset_span *span,
                         double reached_s)
{
    double fps = check->dataset->fps;
    double needed_s = (double)check->episodes->items[number].length / fps;
    double there_s = (double)file->facts.frames / fps;
    if (fabs(span->to_s - span->from_s - needed_s) > TOLERANCE_S)
        TD_TRY(td_dataset_verify_fault(
            check, file->name, TD_DATASET_REMEDY_RECORD,
            "episode %zu: %.4f s of video for %.4f s of rows", number,
            span->to_s - span->from_s, needed_s));
    if (span->from_s < reached_s - TOLERANCE_S)
        TD_TRY(td_dataset_verify_fault(
            check, file->name, TD_DATASET_REMEDY_RECORD,
            "episode %zu: begins at %.4f s, inside the one before it", number,
            span->from_s));
    if (span->to_s > there_s + TOLERANCE_S)
        TD_TRY(td_dataset_verify_fault(
            check, file->name, TD_DATASET_REMEDY_COPY,
            "episode %zu: ends at %.4f s, and the video at %.4f s", number,
            span->to_s, there_s));
    return TD_OK;
}

static td_err check_camera(td_dataset_verification *check, uint32_t video,
                           const td_dataset_feature *feature)
{
    open_file file = {.is_open = false};
    double reached_s = 0;
    bool any = false;
    TD_TRY(td_media_video_load(&check->why)); // not a fault of the dataset
    for (size_t i = 0; i < check->episodes->count; i++) {
        const td_dataset_span *span = &check->episodes->items[i].videos[video];
        if (!any || span->at.chunk != file.at.chunk ||
            span->at.file != file.at.file) {
            TD_TRY(open_file_at(check, feature, span->at, &file));
            reached_s = 0;
            any = true;
        }
        if (file.is_open) TD_TRY(check_span(check, &file, i, span, reached_s));
        reached_s = span->to_s;
        TD_TRY(td_dataset_verify_step(check));
    }
    return TD_OK;
}

td_err td_dataset_verify_videos(td_dataset_verification *check)
{
    uint32_t video = 0;
    for (size_t i = 0; i < check->dataset->feature_count; i++)
        if (check->dataset->features[i].dtype == TD_DATASET_DTYPE_VIDEO)
            TD_TRY(check_camera(check, video++, &check->dataset->features[i]));
    return TD_OK;
}
