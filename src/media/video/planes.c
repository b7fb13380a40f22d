// SPDX-License-Identifier: Apache-2.0
#include "media/video/planes.h"

#include "media/jpeg.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <turbojpeg.h>

// Blends a column of two rows: the nearer one counts three times.
static int blend_rows(const uint8_t *near, const uint8_t *far, uint32_t x)
{
    return 3 * near[x] + far[x];
}

// The colour value of the pixel (x, y): of four around it, the nearest counts
// nine times, its neighbours three times each. Outside there is the edge again.
static int blend(const uint8_t *plane, int stride, uint32_t rows,
                 uint32_t columns, uint32_t y, uint32_t x)
{
    uint32_t row = y / 2, column = x / 2;
    uint32_t far_row = y & 1 ? row + 1 : row - 1;
    if (far_row >= rows) far_row = row; // -1 too
    const uint8_t *near = plane + (size_t)row * (size_t)stride;
    const uint8_t *far = plane + (size_t)far_row * (size_t)stride;
    uint32_t side = x & 1 ? column + 1 : column - 1;
    if (side >= columns) side = column;
    int rounding = x & 1 ? 7 : 8;
    return (3 * blend_rows(near, far, column) + blend_rows(near, far, side) +
            rounding) >>
           4;
}

static uint8_t within(int value)
{
    if (value < 0) return 0;
    return value > 255 ? 255 : (uint8_t)value;
}

// libjpeg's constants, in 1/65536, rounded as there.
static void to_rgb(int luma, int blue, int red, uint8_t *ret_rgb)
{
    const int half = 1 << 15;
    blue -= 128;
    red -= 128;
    ret_rgb[0] = within(luma + ((91881 * red + half) >> 16));
    ret_rgb[1] = within(luma + ((-22554 * blue - 46802 * red + half) >> 16));
    ret_rgb[2] = within(luma + ((116130 * blue + half) >> 16));
}

// Every `step`-th pixel of every `step`-th row of a JPEG's planes (full range,
// 4:2:0, at least six wide), in RGB, bit for bit as libjpeg decodes the whole
// picture: it blends the colours of neighbours. Never fails.
static void pick(const td_media_video_planes *planes, uint32_t height,
                 uint32_t width, uint32_t step, uint8_t *ret_rgb)
{
    uint32_t rows = height / 2, columns = width / 2;
    for (uint32_t y = 0; y < height; y += step) {
        const uint8_t *luma =
            planes->data[0] + (size_t)y * (size_t)planes->stride[0];
        for (uint32_t x = 0; x < width; x += step, ret_rgb += 3) {
            int blue =
                blend(planes->data[1], planes->stride[1], rows, columns, y, x);
            int red =
                blend(planes->data[2], planes->stride[2], rows, columns, y, x);
            to_rgb(luma[x], blue, red, ret_rgb);
        }
    }
}

// Below this a decoder repeats colours instead of blending them.
#define MIN_BLENDED_WIDTH 6

struct td_media_video_planer {
    uint32_t height;
    uint32_t width;
    uint32_t step;
    tjhandle from_rgb;
    tjhandle from_jpeg;
    td_media_jpeg_decoder *jpeg; // for those that are not 4:2:0
    uint8_t *rgb;                // what it decoded; made when first needed
    uint8_t *picked;
    uint8_t luma[256]; // full range to limited
    uint8_t chroma[256];
};

static void fill_ranges(td_media_video_planer *planer)
{
    for (int i = 0; i < 256; i++) {
        planer->luma[i] = (uint8_t)(16 + (i * 219 + 127) / 255);
        planer->chroma[i] = (uint8_t)(16 + (i * 224 + 127) / 255);
    }
}

static size_t picked_bytes(const td_media_video_planer *planer)
{
    size_t step = planer->step;
    if (step == 0) return 0;
    return (planer->height + step - 1) / step *
           ((planer->width + step - 1) / step) * 3;
}

td_err td_media_video_planer_new(uint32_t height, uint32_t width, uint32_t step,
                                 td_media_video_planer **ret_planer)
{
    TD_AUTO(td_media_video_planer) *planer = calloc(1, sizeof *planer);
    if (!planer) return TD_ERR_NOMEM;
    planer->height = height;
    planer->width = width;
    planer->step = step;
    fill_ranges(planer);
    planer->from_rgb = tjInitCompress();
    planer->from_jpeg = tjInitDecompress();
    planer->picked = calloc(1, picked_bytes(planer) + 1);
    if (!planer->from_rgb || !planer->from_jpeg || !planer->picked)
        return TD_ERR_NOMEM;
    TD_TRY(td_media_jpeg_decoder_new(&planer->jpeg));
    *ret_planer = TD_TAKE(planer);
    return TD_OK;
}

void td_media_video_planer_free(td_media_video_planer *planer)
{
    if (planer->from_rgb) tjDestroy(planer->from_rgb);
    if (planer->from_jpeg) tjDestroy(planer->from_jpeg);
    if (planer->jpeg) td_media_jpeg_decoder_free(planer->jpeg);
    free(planer->rgb);
    free(planer->picked);
    free(planer);
}

static void limit_range(const td_media_video_planer *planer,
                        const td_media_video_planes *planes)
{
    for (int i = 0; i < 3; i++) {
        const uint8_t *table = i == 0 ? planer->luma : planer->chroma;
        uint32_t height = i == 0 ? planer->height : planer->height / 2;
        uint32_t width = i == 0 ? planer->width : planer->width / 2;
        for (uint32_t y = 0; y < height; y++) {
            uint8_t *row =
                planes->data[i] + (size_t)y * (size_t)planes->stride[i];
            for (uint32_t x = 0; x < width; x++)
                row[x] = table[row[x]];
        }
    }
}

static void pick_rgb(td_media_video_planer *planer, const uint8_t *rgb)
{
    uint8_t *out = planer->picked;
    if (planer->step == 0) return;
    for (uint32_t y = 0; y < planer->height; y += planer->step)
        for (uint32_t x = 0; x < planer->width; x += planer->step, out += 3)
            memcpy(out, rgb + ((size_t)y * planer->width + x) * 3, 3);
}

td_err td_media_video_planer_rgb(td_media_video_planer *planer,
                                 const uint8_t *rgb,
                                 const td_media_video_planes *planes,
                                 td_errinfo *info)
{
    uint8_t *data[3] = {planes->data[0], planes->data[1], planes->data[2]};
    int stride[3] = {planes->stride[0], planes->stride[1], planes->stride[2]};
    if (tjEncodeYUVPlanes(planer->from_rgb, rgb, (int)planer->width, 0,
                          (int)planer->height, TJPF_RGB, data, stride,
                          TJSAMP_420, 0))
        return td_fail(info, TD_ERR_INTERNAL, "RGB to planes: %s",
                       tjGetErrorStr2(planer->from_rgb));
    pick_rgb(planer, rgb);
    limit_range(planer, planes);
    return TD_OK;
}

static td_err through_rgb(td_media_video_planer *planer, td_slice jpeg,
                          const td_media_video_planes *planes, td_errinfo *info)
{
    size_t bytes = (size_t)planer->height * planer->width * 3;
    if (!planer->rgb) planer->rgb = malloc(bytes);
    if (!planer->rgb) return TD_ERR_NOMEM;
    TD_TRY(td_media_jpeg_decode(planer->jpeg, jpeg, planer->height,
                                planer->width, planer->rgb, info));
    return td_media_video_planer_rgb(planer, planer->rgb, planes, info);
}

// Whether the JPEG's own planes can be used: as large as asked for, and 4:2:0.
static bool fits(td_media_video_planer *planer, td_slice jpeg)
{
    int height = 0, width = 0, sampling = -1, space = -1;
    return jpeg.size > 0 && planer->width >= MIN_BLENDED_WIDTH &&
           tjDecompressHeader3(planer->from_jpeg, jpeg.data, jpeg.size, &width,
                               &height, &sampling, &space) == 0 &&
           (uint32_t)height == planer->height &&
           (uint32_t)width == planer->width && sampling == TJSAMP_420 &&
           space == TJCS_YCbCr;
}

td_err td_media_video_planer_jpeg(td_media_video_planer *planer, td_slice jpeg,
                                  const td_media_video_planes *planes,
                                  td_errinfo *info)
{
    uint8_t *data[3] = {planes->data[0], planes->data[1], planes->data[2]};
    int stride[3] = {planes->stride[0], planes->stride[1], planes->stride[2]};
    if (!fits(planer, jpeg)) return through_rgb(planer, jpeg, planes, info);
    if (tjDecompressToYUVPlanes(planer->from_jpeg, jpeg.data, jpeg.size, data,
                                (int)planer->width, stride, (int)planer->height,
                                TJFLAG_STOPONWARNING | TJFLAG_LIMITSCANS))
        return td_fail(info, TD_ERR_FORMAT, "a damaged JPEG: %s",
                       tjGetErrorStr2(planer->from_jpeg));
    if (planer->step)
        pick(planes, planer->height, planer->width, planer->step,
             planer->picked);
    limit_range(planer, planes);
    return TD_OK;
}

const uint8_t *td_media_video_planer_picked(const td_media_video_planer *planer)
{
    return planer->picked;
}
