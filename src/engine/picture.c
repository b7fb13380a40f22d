// SPDX-License-Identifier: Apache-2.0
#include "engine/picture.h"

#include "media/jpeg.h"
#include "media/png.h"
#include "wire/outline.h"

#include <stdlib.h>

struct td_engine_picture_reader {
    td_media_jpeg_decoder *jpeg;
    uint8_t *joined; // an image that came in pieces
    size_t room;
};

td_err td_engine_picture_reader_new(td_engine_picture_reader **ret_reader)
{
    TD_AUTO(td_engine_picture_reader) *reader = calloc(1, sizeof *reader);
    if (!reader) return TD_ERR_NOMEM;
    TD_TRY(td_media_jpeg_decoder_new(&reader->jpeg));
    *ret_reader = TD_TAKE(reader);
    return TD_OK;
}

void td_engine_picture_reader_free(td_engine_picture_reader *reader)
{
    if (reader->jpeg) td_media_jpeg_decoder_free(reader->jpeg);
    free(reader->joined);
    free(reader);
}

size_t td_engine_picture_bytes(const td_wire_camera *camera)
{
    return (size_t)camera->height * camera->width * 3;
}

// Puts the camera's name before the reason.
static td_err blame(const td_wire_image *image, td_err err,
                    const td_errinfo *why, td_errinfo *info)
{
    if (err == TD_OK) return TD_OK;
    return td_fail(info, err, "images.%.*s: %s", (int)image->name.size,
                   image->name.data, why->text);
}

static td_err check_raw(const td_wire_image *image,
                        const td_wire_camera *camera, td_errinfo *info)
{
    const uint32_t *shape = image->shape;
    if (shape[0] != camera->height || shape[1] != camera->width ||
        shape[2] != 3)
        return td_fail(info, TD_ERR_MISMATCH,
                       "is %ux%ux%u, the model wants %ux%ux3", shape[0],
                       shape[1], shape[2], camera->height, camera->width);
    if (image->size != td_engine_picture_bytes(camera))
        return td_fail(info, TD_ERR_FORMAT, "has %zu bytes, its shape %zu",
                       image->size, td_engine_picture_bytes(camera));
    return TD_OK;
}

typedef struct extent {
    uint32_t height, width;
} extent;

static td_err read_extent(td_wire_codec codec, td_slice bytes,
                          extent *ret_extent, td_errinfo *info)
{
    uint32_t *height = &ret_extent->height, *width = &ret_extent->width;
    if (codec == TD_WIRE_JPEG)
        return td_media_jpeg_size(bytes, height, width, info);
    return td_media_png_size(bytes, height, width, info);
}

// The header of one in pieces is in the first, unless a camera writes much
// ahead of it.
static td_err find_extent(const td_wire_image *image, extent *ret_extent,
                          td_errinfo *info)
{
    td_slice head = td_wire_image_head(image);
    td_err err = read_extent(image->codec, head, ret_extent, info);
    if (err == TD_OK || image->data) return err;
    void *bytes = malloc(image->size);
    if (!bytes) return TD_ERR_NOMEM;
    td_wire_image_copy(image, 0, image->size, bytes);
    err = read_extent(image->codec, (td_slice){bytes, image->size}, ret_extent,
                      info);
    free(bytes);
    return err;
}

static td_err check(const td_wire_image *image, const td_wire_camera *camera,
                    td_errinfo *info)
{
    if (image->codec == TD_WIRE_RAW) return check_raw(image, camera, info);
    extent is = {0};
    TD_TRY(find_extent(image, &is, info));
    if (is.height == camera->height && is.width == camera->width) return TD_OK;
    return td_fail(info, TD_ERR_MISMATCH, "is %ux%u, the model wants %ux%u",
                   is.height, is.width, camera->height, camera->width);
}

td_err td_engine_picture_check(const td_wire_image *image,
                               const td_wire_camera *camera, td_errinfo *info)
{
    td_errinfo why = {""};
    return blame(image, check(image, camera, &why), &why, info);
}

// All bytes in one piece.
static td_err join(td_engine_picture_reader *reader, const td_wire_image *image,
                   td_slice *ret_bytes)
{
    *ret_bytes = (td_slice){image->data, image->size};
    if (image->data) return TD_OK;
    if (image->size > reader->room) {
        free(reader->joined);
        reader->room = 0;
        reader->joined = malloc(image->size);
        if (!reader->joined) return TD_ERR_NOMEM;
        reader->room = image->size;
    }
    td_wire_image_copy(image, 0, image->size, reader->joined);
    ret_bytes->data = reader->joined;
    return TD_OK;
}

static td_err decode(td_engine_picture_reader *reader,
                     const td_wire_image *image, const td_wire_camera *camera,
                     uint8_t *ret_rgb, td_errinfo *info)
{
    td_slice bytes;
    if (image->codec == TD_WIRE_RAW) {
        TD_TRY(check_raw(image, camera, info));
        td_wire_image_copy(image, 0, image->size, ret_rgb);
        return TD_OK;
    }
    TD_TRY(join(reader, image, &bytes));
    if (image->codec == TD_WIRE_PNG)
        return td_media_png_decode(bytes, camera->height, camera->width,
                                   ret_rgb, info);
    return td_media_jpeg_decode(reader->jpeg, bytes, camera->height,
                                camera->width, ret_rgb, info);
}

td_err td_engine_picture_decode(td_engine_picture_reader *reader,
                                const td_wire_image *image,
                                const td_wire_camera *camera, uint8_t *ret_rgb,
                                td_errinfo *info)
{
    td_errinfo why = {""};
    return blame(image, decode(reader, image, camera, ret_rgb, &why), &why,
                 info);
}
