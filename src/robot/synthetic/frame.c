// SPDX-License-Identifier: Apache-2.0
#include "robot/synthetic/frame.h"

#include "robot/synthetic/synthetic.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define PERIOD 256 // pixels from one wave to the next
#define SPEED 2    // pixels a frame
#define COLUMNS 16
#define ROWS 5 // four of the counter, one of its checksum
#define MAX_BLOCK 16

static uint8_t wave(uint32_t x)
{
    x %= PERIOD;
    return (uint8_t)(x < PERIOD / 2 ? 2 * x : 2 * (PERIOD - 1 - x));
}

td_err td_robot_synthetic_frame_init(td_robot_synthetic_frame *frame,
                                     uint32_t height, uint32_t width)
{
    uint8_t *pattern = malloc(((size_t)width + PERIOD) * 3);
    if (!pattern) return TD_ERR_NOMEM;
    for (uint32_t x = 0; x < width + PERIOD; x++)
        for (uint32_t colour = 0; colour < 3; colour++)
            pattern[x * 3 + colour] = wave(x + colour * PERIOD / 3);
    *frame = (td_robot_synthetic_frame){height, width, pattern};
    return TD_OK;
}

void td_robot_synthetic_frame_done(td_robot_synthetic_frame *frame)
{
    free(frame->pattern);
}

// Pixels on a side; at least 4 in the smallest frame that is allowed.
static uint32_t block_side(uint32_t height, uint32_t width)
{
    uint32_t side = width / COLUMNS;
    if (side > height / 8) side = height / 8;
    return side < MAX_BLOCK ? side : MAX_BLOCK;
}

// Not zero for a counter of zero, so that a black picture has none.
static uint16_t checksum(uint64_t counter)
{
    return (uint16_t)((counter * 0x9e3779b97f4a7c15u >> 48) ^ 0xa5c3u);
}

static uint16_t row_bits(uint64_t counter, uint32_t row)
{
    if (row == ROWS - 1) return checksum(counter);
    return (uint16_t)(counter >> (48 - 16 * row));
}

static void draw_blocks(uint64_t counter, uint32_t side, size_t pitch,
                        uint8_t *rgb)
{
    for (uint32_t y = 0; y < ROWS * side; y++) {
        uint16_t bits = row_bits(counter, y / side);
        for (uint32_t column = 0; column < COLUMNS; column++)
            memset(rgb + y * pitch + (size_t)column * side * 3,
                   bits >> (COLUMNS - 1 - column) & 1 ? 255 : 0,
                   (size_t)side * 3);
    }
}

void td_robot_synthetic_frame_render(const td_robot_synthetic_frame *frame,
                                     uint64_t counter, uint8_t *ret_rgb)
{
    size_t pitch = (size_t)frame->width * 3;
    for (uint32_t y = 0; y < frame->height; y++) {
        size_t shift = (counter * SPEED + y) % PERIOD;
        memcpy(ret_rgb + y * pitch, frame->pattern + shift * 3, pitch);
    }
    draw_blocks(counter, block_side(frame->height, frame->width), pitch,
                ret_rgb);
}

// Whether the middle of a block is white.
static bool read_block(const uint8_t *block, uint32_t side, size_t pitch)
{
    uint32_t sum = 0, count = 0;
    for (uint32_t y = side / 4; y < side - side / 4; y++)
        for (uint32_t x = 3 * (side / 4); x < 3 * (side - side / 4); x++) {
            sum += block[y * pitch + x];
            count++;
        }
    return sum > 127 * count;
}

static uint16_t read_row(const uint8_t *row, uint32_t side, size_t pitch)
{
    uint16_t bits = 0;
    for (uint32_t column = 0; column < COLUMNS; column++)
        bits =
            (uint16_t)(bits << 1 | read_block(row + (size_t)column * side * 3,
                                              side, pitch));
    return bits;
}

td_err td_robot_synthetic_counter(const uint8_t *rgb, uint32_t height,
                                  uint32_t width, uint64_t *ret_counter)
{
    if (height < TD_ROBOT_SYNTHETIC_MIN_HEIGHT ||
        width < TD_ROBOT_SYNTHETIC_MIN_WIDTH)
        return TD_ERR_FORMAT;
    uint32_t side = block_side(height, width);
    size_t pitch = (size_t)width * 3, row_bytes = side * pitch;
    uint64_t counter = 0;
    for (uint32_t row = 0; row < ROWS - 1; row++)
        counter = counter << 16 | read_row(rgb + row * row_bytes, side, pitch);
    if (read_row(rgb + (ROWS - 1) * row_bytes, side, pitch) !=
        checksum(counter))
        return TD_ERR_FORMAT;
    *ret_counter = counter;
    return TD_OK;
}
