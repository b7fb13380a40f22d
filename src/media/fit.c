// SPDX-License-Identifier: Apache-2.0
#include "media/fit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define COLOURS 3
#define LEVELS 256

// Two pixels of the source that make one of the picture, and their weights.
typedef struct blend {
    uint32_t first, second;
    float of_first, of_second;
} blend;

struct td_media_fitter {
    td_media_size from, to;
    td_media_size picture; // inside the frame
    uint32_t top, left;    // of it
    bool clamps;
    float levels[LEVELS][COLOURS]; // what each byte is
    blend *rows, *columns;         // of the picture
};

// PyTorch's align_corners=False, in its float32 and rounded as there.
static blend blend_of(uint32_t i, uint32_t from, uint32_t to)
{
    if (from == to) return (blend){i, i, 1, 0};
    float at = fmaf((float)from / (float)to, (float)i + 0.5f, -0.5f);
    if (at < 0) at = 0;
    uint32_t first = (uint32_t)at;
    if (first > from - 1) first = from - 1;
    float part = at - (float)first;
    if (part > 1) part = 1;
    return (blend){first, first < from - 1 ? first + 1 : first, 1 - part, part};
}

static blend *blends_of(uint32_t from, uint32_t to)
{
    blend *blends = calloc(to, sizeof *blends);
    for (uint32_t i = 0; blends && i < to; i++)
        blends[i] = blend_of(i, from, to);
    return blends;
}

// The largest that fits, cut to whole pixels as Python's int() does.
static td_media_size picture_in(td_media_size from, td_media_size to)
{
    double across = (double)from.width / to.width;
    double down = (double)from.height / to.height;
    double ratio = across > down ? across : down;
    return (td_media_size){.height = (uint32_t)(from.height / ratio),
                           .width = (uint32_t)(from.width / ratio)};
}

static bool is_beyond(td_media_size size)
{
    return size.height > TD_MEDIA_RESIZE_MAX_SIDE ||
           size.width > TD_MEDIA_RESIZE_MAX_SIDE;
}

static bool is_nothing(td_media_size size)
{
    return size.height == 0 || size.width == 0;
}

static void place(td_media_fitter *fitter, td_media_place place)
{
    uint32_t half = place == TD_MEDIA_MIDDLE ? 2 : 1;
    fitter->top = (fitter->to.height - fitter->picture.height) / half;
    fitter->left = (fitter->to.width - fitter->picture.width) / half;
}

static void find_levels(td_media_fitter *fitter,
                        const td_media_fit_config *config)
{
    for (int level = 0; level < LEVELS; level++)
        for (int i = 0; i < COLOURS; i++)
            fitter->levels[level][i] =
                (float)level * config->scale[i] + config->bias[i];
}

td_err td_media_fitter_new(const td_media_fit_config *config,
                           td_media_fitter **ret_fitter)
{
    if (is_nothing(config->from) || is_nothing(config->to))
        return TD_ERR_INVALID;
    if (is_beyond(config->from) || is_beyond(config->to)) return TD_ERR_LIMIT;
    td_media_size picture = picture_in(config->from, config->to);
    if (is_nothing(picture)) return TD_ERR_INVALID;

    TD_AUTO(td_media_fitter) *fitter = calloc(1, sizeof *fitter);
    if (!fitter) return TD_ERR_NOMEM;
    fitter->from = config->from;
    fitter->to = config->to;
    fitter->picture = picture;
    fitter->clamps = config->clamps;
    place(fitter, config->place);
    find_levels(fitter, config);
    fitter->rows = blends_of(config->from.height, picture.height);
    fitter->columns = blends_of(config->from.width, picture.width);
    if (!fitter->rows || !fitter->columns) return TD_ERR_NOMEM;
    *ret_fitter = TD_TAKE(fitter);
    return TD_OK;
}

void td_media_fitter_free(td_media_fitter *fitter)
{
    free(fitter->rows);
    free(fitter->columns);
    free(fitter);
}

// One colour of one pixel, between two pixels of a row of the source.
static float across(const td_media_fitter *fitter, const uint8_t *row,
                    const blend *column, int i)
{
    float first = fitter->levels[row[COLOURS * column->first + i]][i];
    float second = fitter->levels[row[COLOURS * column->second + i]][i];
    return first * column->of_first + second * column->of_second;
}

// A row of the source, as wide as the picture.
static void fit_across(const td_media_fitter *fitter, const uint8_t *row,
                       float *to)
{
    if (fitter->from.width == fitter->picture.width) {
        for (uint32_t x = 0; x < fitter->picture.width; x++)
            for (int i = 0; i < COLOURS; i++)
                *to++ = fitter->levels[*row++][i];
        return;
    }
    for (uint32_t x = 0; x < fitter->picture.width; x++)
        for (int i = 0; i < COLOURS; i++)
            *to++ = across(fitter, row, &fitter->columns[x], i);
}

static void clamp_row(float *row, size_t count)
{
    for (size_t i = 0; i < count; i++)
        row[i] = fminf(fmaxf(row[i], 0), 1);
}

// Rows of the source that were fitted across: the next row of the picture often
// wants the same ones.
typedef struct fitted {
    uint32_t row; // of the source; one that it does not have: none
    float values[COLOURS * TD_MEDIA_RESIZE_MAX_SIDE];
} fitted;

static const float *fitted_row(const td_media_fitter *fitter,
                               const uint8_t *rgb, uint32_t row, fitted *kept)
{
    fitted *of = &kept[row % 2];
    if (of->row != row)
        fit_across(fitter, rgb + COLOURS * (size_t)fitter->from.width * row,
                   of->values);
    of->row = row;
    return of->values;
}

static void fit_row(const td_media_fitter *fitter, const uint8_t *rgb,
                    const blend *row, fitted *kept, float *ret_row)
{
    size_t count = COLOURS * (size_t)fitter->picture.width;
    if (fitter->from.height == fitter->picture.height) {
        fit_across(fitter,
                   rgb + COLOURS * (size_t)fitter->from.width * row->first,
                   ret_row);
    } else {
        const float *first = fitted_row(fitter, rgb, row->first, kept);
        const float *second = fitted_row(fitter, rgb, row->second, kept);
        for (size_t i = 0; i < count; i++)
            ret_row[i] = first[i] * row->of_first + second[i] * row->of_second;
    }
    if (fitter->clamps) clamp_row(ret_row, count);
}

void td_media_fit(const td_media_fitter *fitter, const uint8_t *rgb,
                  float *ret_rgb)
{
    size_t stride = COLOURS * (size_t)fitter->to.width;
    fitted kept[2];
    kept[0].row = kept[1].row = UINT32_MAX;
    memset(ret_rgb, 0, fitter->to.height * stride * sizeof *ret_rgb);
    for (uint32_t y = 0; y < fitter->picture.height; y++)
        fit_row(fitter, rgb, &fitter->rows[y], kept,
                ret_rgb + (fitter->top + y) * stride +
                    COLOURS * (size_t)fitter->left);
}
