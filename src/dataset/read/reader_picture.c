// SPDX-License-Identifier: Apache-2.0
#include "dataset/read/reader_picture.h"

#include "dataset/disk/disk.h"
#include "dataset/meta/path.h"
#include "media/jpeg.h"
#include "media/png.h"
#include "media/resize.h"
#include "media/video.h"

#include <stdlib.h>
#include <string.h>

struct video_file {
    td_media_video_decoder *decoder; // NULL: none open
    td_dataset_place at;
};

struct td_dataset_reader_pictures {
    const char *folder;
    const td_dataset_info *dataset;
    td_media_jpeg_decoder *jpeg;
    size_t count;
    struct video_file *video_files; // one a feature
};

static td_err no_memory(td_errinfo *info)
{
    return td_fail(info, TD_ERR_NOMEM, "out of memory");
}

void td_dataset_reader_pictures_free(td_dataset_reader_pictures *pictures)
{
    for (size_t i = 0; i < pictures->count; i++)
        if (pictures->video_files[i].decoder)
            td_media_video_decoder_close(pictures->video_files[i].decoder);
    if (pictures->jpeg) td_media_jpeg_decoder_free(pictures->jpeg);
    free(pictures->video_files);
    free(pictures);
}

td_err td_dataset_reader_pictures_new(const char *folder,
                                      const td_dataset_info *dataset,
                                      td_dataset_reader_pictures **ret_pictures,
                                      td_errinfo *info)
{
    TD_AUTO(td_dataset_reader_pictures) *pictures = calloc(1, sizeof *pictures);
    if (!pictures) return no_memory(info);
    pictures->folder = folder;
    pictures->dataset = dataset;
    pictures->video_files =
        calloc(dataset->feature_count + 1, sizeof *pictures->video_files);
    if (!pictures->video_files) return no_memory(info);
    pictures->count = dataset->feature_count;
    if (td_media_jpeg_decoder_new(&pictures->jpeg) != TD_OK)
        return no_memory(info);
    *ret_pictures = TD_TAKE(pictures);
    return TD_OK;
}

static td_err open_video_file(const td_dataset_reader_pictures *pictures,
                              const char *key, struct video_file *video_file,
                              td_dataset_place at, td_errinfo *info)
{
    if (video_file->decoder && video_file->at.chunk == at.chunk &&
        video_file->at.file == at.file)
        return TD_OK;
    char name[TD_DATASET_MAX_PATH];
    td_dataset_disk_path path;
    TD_TRY(td_dataset_path_fill(pictures->dataset->video_path, key, at.chunk,
                                at.file, name, info));
    TD_TRY(td_dataset_disk_join(pictures->folder, name, &path, info));
    td_media_video_decoder *decoder = NULL;
    TD_TRY(td_media_video_decoder_open(path.text, &decoder, info));
    if (video_file->decoder) td_media_video_decoder_close(video_file->decoder);
    video_file->decoder = decoder;
    video_file->at = at;
    return TD_OK;
}

// Which of an episode's videos belongs to a feature.
static size_t video_of(const td_dataset_info *dataset, size_t feature)
{
    size_t video = 0;
    for (size_t i = 0; i < feature; i++)
        video += dataset->features[i].dtype == TD_DATASET_DTYPE_VIDEO;
    return video;
}

static td_err read_video(td_dataset_reader_pictures *pictures, size_t feature,
                         const td_dataset_reader_picture_of *of,
                         td_media_size size, uint8_t *ret_rgb, td_errinfo *info)
{
    const char *key = pictures->dataset->features[feature].key;
    const td_dataset_span *span =
        &of->episode->videos[video_of(pictures->dataset, feature)];
    struct video_file *video_file = &pictures->video_files[feature];
    TD_TRY(open_video_file(pictures, key, video_file, span->at, info));
    td_media_video_facts facts =
        td_media_video_decoder_facts(video_file->decoder);
    if (facts.height != size.height || facts.width != size.width)
        return td_fail(info, TD_ERR_MISMATCH,
                       "%s: a video of %u x %u, info.json says %u x %u", key,
                       facts.height, facts.width, size.height, size.width);
    return td_media_video_decoder_picture(
        video_file->decoder, span->from_s + of->timestamp_s, ret_rgb, info);
}

static bool is_png(td_slice bytes)
{
    return bytes.size >= 4 && memcmp(bytes.data, "\x89PNG", 4) == 0;
}

static td_err hand_over(td_slice jpeg, td_media_size size,
                        td_dataset_reader_frame *frame, td_errinfo *info)
{
    uint32_t height = 0, width = 0;
    TD_TRY(td_media_jpeg_size(jpeg, &height, &width, info));
    if (height != size.height || width != size.width)
        return td_fail(info, TD_ERR_MISMATCH,
                       "a JPEG of %u x %u where %u x %u was expected", height,
                       width, size.height, size.width);
    memcpy(frame->bytes, jpeg.data, jpeg.size);
    frame->jpeg = jpeg.size;
    return TD_OK;
}

static td_err read_stored(td_dataset_reader_pictures *pictures, const char *key,
                          const td_dataset_reader_picture_of *of,
                          td_media_size size, td_dataset_reader_frame *frame,
                          td_errinfo *info)
{
    TD_AUTO(td_dataset_rows) *rows = NULL;
    TD_TRY(td_dataset_table_read(of->table, of->table_row, 1, &key, 1, &rows,
                                 info));
    const td_dataset_column *column = &rows->columns[0];
    if (column->type != TD_DATASET_BYTES || column->count != 1)
        return td_fail(info, TD_ERR_FORMAT, "column %s: must be pictures", key);
    td_slice bytes = *(const td_slice *)column->values;
    if (is_png(bytes))
        return td_media_png_decode(bytes, size.height, size.width, frame->bytes,
                                   info);
    if (bytes.size <= frame->room) return hand_over(bytes, size, frame, info);
    return td_media_jpeg_decode(pictures->jpeg, bytes, size.height, size.width,
                                frame->bytes, info);
}

td_err td_dataset_reader_pictures_read(td_dataset_reader_pictures *pictures,
                                       const char *key,
                                       const td_dataset_reader_picture_of *of,
                                       td_dataset_reader_frame *frame,
                                       td_errinfo *info)
{
    const td_dataset_feature *feature =
        td_dataset_info_find(pictures->dataset, key);
    if (!feature || !td_dataset_feature_is_picture(feature))
        return td_fail(info, TD_ERR_NOTFOUND, "%s: no camera of this dataset",
                       key);
    if (feature->depth)
        return td_fail(info, TD_ERR_UNSUPPORTED,
                       "%s: pictures of distances are not read", key);
    td_media_size size = {0};
    frame->jpeg = 0;
    TD_TRY(td_dataset_feature_picture(feature, &size.height, &size.width));
    if (feature->dtype == TD_DATASET_DTYPE_IMAGE)
        return read_stored(pictures, key, of, size, frame, info);
    return read_video(pictures, (size_t)(feature - pictures->dataset->features),
                      of, size, frame->bytes, info);
}
