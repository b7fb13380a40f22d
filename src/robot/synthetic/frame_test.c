// SPDX-License-Identifier: Apache-2.0
#include "robot/synthetic/frame.h"

#include "media/jpeg.h"
#include "robot/synthetic/synthetic.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MAX_BYTES (480 * 640 * 3)

static const struct {
    uint32_t height, width;
} sizes[] = {{32, 64}, {96, 128}, {100, 75}, {224, 224}, {480, 640}};

static const uint64_t counters[] = {
    0, 1, 2, 255, 65536, 0xaaaaaaaaaaaaaaaa, 0x123456789abcdef0, UINT64_MAX};

static uint8_t rgb[MAX_BYTES], other[MAX_BYTES];

static void render(uint32_t height, uint32_t width, uint64_t counter,
                   uint8_t *ret_rgb)
{
    td_robot_synthetic_frame frame;
    assert_int_equal(td_robot_synthetic_frame_init(&frame, height, width),
                     TD_OK);
    td_robot_synthetic_frame_render(&frame, counter, ret_rgb);
    td_robot_synthetic_frame_done(&frame);
}

static void assert_counter(const uint8_t *picture, size_t size, uint64_t want)
{
    uint64_t counter = ~want;
    td_err err = td_robot_synthetic_counter(picture, sizes[size].height,
                                            sizes[size].width, &counter);
    if (err != TD_OK || counter != want)
        fail_msg("%u x %u: %s, %llx instead of %llx", sizes[size].height,
                 sizes[size].width, td_err_name(err),
                 (unsigned long long)counter, (unsigned long long)want);
}

static void the_counter_reads_back(void **state)
{
    (void)state;
    for (size_t size = 0; size < TD_COUNT_OF(sizes); size++)
        for (size_t i = 0; i < TD_COUNT_OF(counters); i++) {
            render(sizes[size].height, sizes[size].width, counters[i], rgb);
            assert_counter(rgb, size, counters[i]);
        }
}

static void the_counter_survives_jpeg_of_quality_60(void **state)
{
    (void)state;
    TD_AUTO(td_media_jpeg_encoder) *encoder = NULL;
    TD_AUTO(td_media_jpeg_decoder) *decoder = NULL;
    assert_int_equal(
        td_media_jpeg_encoder_new(60, TD_MEDIA_CHROMA_420, &encoder), TD_OK);
    assert_int_equal(td_media_jpeg_decoder_new(&decoder), TD_OK);
    for (size_t size = 0; size < TD_COUNT_OF(sizes); size++)
        for (size_t i = 0; i < TD_COUNT_OF(counters); i++) {
            uint32_t height = sizes[size].height, width = sizes[size].width;
            td_slice jpeg = {0};
            render(height, width, counters[i], rgb);
            assert_int_equal(
                td_media_jpeg_encode(encoder, rgb, height, width, &jpeg, NULL),
                TD_OK);
            assert_int_equal(
                td_media_jpeg_decode(decoder, jpeg, height, width, other, NULL),
                TD_OK);
            assert_counter(other, size, counters[i]);
        }
}

static void a_picture_without_a_counter_is_refused(void **state)
{
    (void)state;
    static const int fills[] = {0, 255, 100};
    uint64_t counter = 0;
    for (size_t i = 0; i < TD_COUNT_OF(fills); i++) {
        memset(rgb, fills[i], sizeof rgb);
        assert_int_equal(td_robot_synthetic_counter(rgb, 480, 640, &counter),
                         TD_ERR_FORMAT);
    }
    assert_int_equal(td_robot_synthetic_counter(rgb, 31, 64, &counter),
                     TD_ERR_FORMAT);
}

static void the_picture_moves_below_the_blocks(void **state)
{
    (void)state;
    size_t below = (size_t)300 * 640 * 3;
    render(480, 640, 10, rgb);
    render(480, 640, 11, other);
    assert_memory_not_equal(rgb + below, other + below, 100);
    render(480, 640, 10, other);
    assert_memory_equal(rgb, other, sizeof rgb);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_counter_reads_back),
        cmocka_unit_test(the_counter_survives_jpeg_of_quality_60),
        cmocka_unit_test(a_picture_without_a_counter_is_refused),
        cmocka_unit_test(the_picture_moves_below_the_blocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
