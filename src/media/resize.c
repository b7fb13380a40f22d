// SPDX-License-Identifier: Apache-2.0
// Both sides of the picture are measured in units in which every border is a
// whole number: a pixel of the source is as long as the result has pixels, and
// the other way round. So each overlap is an integer, and the whole of a pixel
// of the result weighs height x width of the source.
#include "media/resize.h"

#include <stdlib.h>
#include <string.h>

struct td_media_resizer {
    td_media_size from, to;
    uint32_t *row; // one of the source, summed along: to.width x 3
    uint64_t *sum; // of the result's row under way, likewise
};

td_err td_media_resizer_new(td_media_size from, td_media_size to,
                            td_media_resizer **ret_resizer)
{
    if (to.height == 0 || to.width == 0 || to.height > from.height ||
        to.width > from.width)
        return TD_ERR_INVALID;
    if (from.height > TD_MEDIA_RESIZE_MAX_SIDE ||
        from.width > TD_MEDIA_RESIZE_MAX_SIDE)
        return TD_ERR_LIMIT;
    TD_AUTO(td_media_resizer) *resizer = calloc(1, sizeof *resizer);
    if (!resizer) return TD_ERR_NOMEM;
    resizer->from = from;
    resizer->to = to;
    resizer->row = calloc(to.width, 3 * sizeof *resizer->row);
    resizer->sum = calloc(to.width, 3 * sizeof *resizer->sum);
    if (!resizer->row || !resizer->sum) return TD_ERR_NOMEM;
    *ret_resizer = TD_TAKE(resizer);
    return TD_OK;
}

void td_media_resizer_free(td_media_resizer *resizer)
{
    free(resizer->row);
    free(resizer->sum);
    free(resizer);
}

// How much of the source's pixel `i` lies in the result's pixel that begins at
// `begin` and is `length` long.
static uint32_t overlap(uint32_t i, uint32_t unit, uint32_t begin,
                        uint32_t length)
{
    uint32_t left = i * unit, right = left + unit;
    if (left < begin) left = begin;
    if (right > begin + length) right = begin + length;
    return right - left;
}

static void sum_along(td_media_resizer *resizer, const uint8_t *pixels)
{
    uint32_t unit = resizer->to.width, length = resizer->from.width;
    uint32_t *row = resizer->row;
    for (uint32_t begin = 0; begin < unit * length; begin += length, row += 3) {
        uint32_t last = (begin + length - 1) / unit;
        row[0] = row[1] = row[2] = 0;
        for (uint32_t x = begin / unit; x <= last; x++) {
            uint32_t part = overlap(x, unit, begin, length);
            const uint8_t *pixel = pixels + 3 * (size_t)x;
            row[0] += part * pixel[0];
            row[1] += part * pixel[1];
            row[2] += part * pixel[2];
        }
    }
}

static void add_row(td_media_resizer *resizer, uint32_t part)
{
    for (size_t i = 0; i < 3 * (size_t)resizer->to.width; i++)
        resizer->sum[i] += (uint64_t)part * resizer->row[i];
}

static void write_row(td_media_resizer *resizer, uint8_t *ret_row)
{
    uint64_t whole = (uint64_t)resizer->from.height * resizer->from.width;
    for (size_t i = 0; i < 3 * (size_t)resizer->to.width; i++)
        ret_row[i] = (uint8_t)((resizer->sum[i] + whole / 2) / whole);
    memset(resizer->sum, 0,
           3 * (size_t)resizer->to.width * sizeof *resizer->sum);
}

void td_media_resize(td_media_resizer *resizer, const uint8_t *rgb,
                     uint8_t *ret_rgb)
{
    uint32_t unit = resizer->to.height, length = resizer->from.height;
    uint32_t summed = UINT32_MAX; // the row that is in `row`
    for (uint32_t begin = 0; begin < unit * length; begin += length) {
        uint32_t last = (begin + length - 1) / unit;
        for (uint32_t y = begin / unit; y <= last; y++) {
            if (y != summed)
                sum_along(resizer, rgb + 3 * (size_t)y * resizer->from.width);
            summed = y;
            add_row(resizer, overlap(y, unit, begin, length));
        }
        write_row(resizer, ret_rgb);
        ret_rgb += 3 * (size_t)resizer->to.width;
    }
}
