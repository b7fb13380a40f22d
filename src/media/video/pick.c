// SPDX-License-Identifier: Apache-2.0
#include "media/video/pick.h"

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

void td_media_video_pick(const td_media_video_planes *planes, uint32_t height,
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
