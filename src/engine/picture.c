// SPDX-License-Identifier: Apache-2.0
#include "engine/picture.h"

#include "media/jpeg.h"
#include "media/png.h"

#include <stdlib.h>
#include <string.h>

struct td_engine_picture_reader {
    td_media_jpeg_decoder *jpeg;
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
    free(reader);
}

size_t td_engine_picture_bytes(const td_wire_camera *camera)
{
    return (size_t)camera->height * camera->width * 3;
}

static td_slice bytes_of(const td_wire_image *image)
{
    return (td_slice){image->data, image->size};
}

// Says whose picture it is before why it is none.
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

static td_err check(const td_wire_image *image, const td_wire_camera *camera,
                    td_errinfo *info)
{
    uint32_t height = 0, width = 0;
    switch (image->codec) {
    case TD_WIRE_JPEG:
        TD_TRY(td_media_jpeg_size(bytes_of(image), &height, &width, info));
        break;
    case TD_WIRE_PNG:
        TD_TRY(td_media_png_size(bytes_of(image), &height, &width, info));
        break;
    case TD_WIRE_RAW:
        return check_raw(image, camera, info);
    }
    if (height == camera->height && width == camera->width) return TD_OK;
    return td_fail(info, TD_ERR_MISMATCH, "is %ux%u, the model wants %ux%u",
                   height, width, camera->height, camera->width);
}

td_err td_engine_picture_check(const td_wire_image *image,
                               const td_wire_camera *camera, td_errinfo *info)
{
    td_errinfo why = {""};
    return blame(image, check(image, camera, &why), &why, info);
}

static td_err decode(td_engine_picture_reader *reader,
                     const td_wire_image *image, const td_wire_camera *camera,
                     uint8_t *ret_rgb, td_errinfo *info)
{
    switch (image->codec) {
    case TD_WIRE_JPEG:
        return td_media_jpeg_decode(reader->jpeg, bytes_of(image),
                                    camera->height, camera->width, ret_rgb,
                                    info);
    case TD_WIRE_PNG:
        return td_media_png_decode(bytes_of(image), camera->height,
                                   camera->width, ret_rgb, info);
    case TD_WIRE_RAW:
        TD_TRY(check_raw(image, camera, info));
        memcpy(ret_rgb, image->data, image->size);
        return TD_OK;
    }
    return TD_ERR_INVALID;
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
