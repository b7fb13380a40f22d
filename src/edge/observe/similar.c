// SPDX-License-Identifier: Apache-2.0
#include "edge/observe/similar.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

td_err td_edge_similar_init(td_edge_similar *similar,
                            const td_edge_similar_settings *settings)
{
    if (!(settings->state_tolerance >= 0) || !(settings->image_tolerance >= 0))
        return TD_ERR_INVALID;
    *similar = (td_edge_similar){.settings = *settings};
    return TD_OK;
}

static uint32_t cells(uint32_t side)
{
    return side < TD_EDGE_SIMILAR_SIDE ? side : TD_EDGE_SIMILAR_SIDE;
}

// Where cell `i` of a side begins.
static uint32_t edge_of(uint32_t i, uint32_t side)
{
    return (uint32_t)((uint64_t)i * side / cells(side));
}

static uint64_t sum_gray(const uint8_t *pixel, uint32_t count)
{
    uint64_t sum = 0;
    for (uint32_t x = 0; x < count; x++, pixel += 3)
        sum += (77u * pixel[0] + 150u * pixel[1] + 29u * pixel[2]) >> 8;
    return sum;
}

static uint8_t cell(const td_edge_similar_image *image, uint32_t i, uint32_t j)
{
    uint32_t top = edge_of(i, image->height);
    uint32_t bottom = edge_of(i + 1, image->height);
    uint32_t left = edge_of(j, image->width);
    uint32_t width = edge_of(j + 1, image->width) - left;
    uint64_t sum = 0;
    for (uint32_t y = top; y < bottom; y++)
        sum +=
            sum_gray(image->rgb + 3 * ((size_t)y * image->width + left), width);
    uint64_t pixels = (uint64_t)(bottom - top) * width;
    assert(pixels > 0);
    return (uint8_t)(sum / pixels);
}

static void thumb(const td_edge_similar_image *image,
                  td_edge_similar_thumb *ret_thumb)
{
    uint32_t columns = cells(image->width);
    ret_thumb->height = image->height;
    ret_thumb->width = image->width;
    for (uint32_t i = 0; i < cells(image->height); i++)
        for (uint32_t j = 0; j < columns; j++)
            ret_thumb->gray[i * columns + j] = cell(image, i, j);
}

static void look(const float *state, uint32_t channels,
                 const td_edge_similar_image *images, uint32_t count,
                 td_edge_similar_view *ret_view)
{
    assert(channels <= TD_WIRE_MAX_CHANNELS && count <= TD_WIRE_MAX_IMAGES);
    ret_view->channels = channels;
    ret_view->images = count;
    memcpy(ret_view->state, state, channels * sizeof *state);
    for (uint32_t i = 0; i < count; i++)
        thumb(&images[i], &ret_view->thumbs[i]);
}

// A value that is not a number is like no other.
static bool same_state(const td_edge_similar_view *a,
                       const td_edge_similar_view *b, double tolerance)
{
    double sum = 0;
    if (a->channels != b->channels) return false;
    for (uint32_t i = 0; i < a->channels; i++) {
        double by = (double)a->state[i] - b->state[i];
        sum += by * by;
    }
    return sqrt(sum) < tolerance;
}

static bool same_image(const td_edge_similar_thumb *a,
                       const td_edge_similar_thumb *b, double tolerance)
{
    if (a->height != b->height || a->width != b->width) return false;
    uint32_t count = cells(a->height) * cells(a->width);
    uint32_t sum = 0;
    for (uint32_t i = 0; i < count; i++)
        sum += (uint32_t)abs(a->gray[i] - b->gray[i]);
    return sum < tolerance * count;
}

static bool same(const td_edge_similar *similar)
{
    const td_edge_similar_view *a = &similar->checked, *b = &similar->sent;
    const td_edge_similar_settings *settings = &similar->settings;
    if (a->images != b->images || !same_state(a, b, settings->state_tolerance))
        return false;
    for (uint32_t i = 0; i < a->images; i++)
        if (!same_image(&a->thumbs[i], &b->thumbs[i],
                        settings->image_tolerance))
            return false;
    return true;
}

bool td_edge_similar_check(td_edge_similar *similar, const float *state,
                           uint32_t channels,
                           const td_edge_similar_image *images, uint32_t count,
                           bool must_go)
{
    if (!similar->settings.on) return false;
    look(state, channels, images, count, &similar->checked);
    return !must_go && similar->has_sent && same(similar);
}

void td_edge_similar_note_sent(td_edge_similar *similar)
{
    similar->sent = similar->checked;
    similar->has_sent = true;
}

void td_edge_similar_forget(td_edge_similar *similar)
{
    similar->has_sent = false;
}
