// SPDX-License-Identifier: Apache-2.0
#include "media/jpeg.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define HEIGHT 96
#define WIDTH 128
#define BYTES (HEIGHT * WIDTH * 3)

static uint8_t picture[BYTES], decoded[BYTES];
static td_media_jpeg_encoder *encoder;
static td_media_jpeg_decoder *decoder;

static int setup(void **state)
{
    (void)state;
    for (int i = 0; i < BYTES; i++) {
        int pixel = i / 3, x = pixel % WIDTH, y = pixel / WIDTH;
        int colours[] = {x, y * 2, 200 - x};
        picture[i] = (uint8_t)colours[i % 3];
    }
    memset(decoded, 0, sizeof decoded);
    assert_int_equal(
        td_media_jpeg_encoder_new(90, TD_MEDIA_CHROMA_420, &encoder), TD_OK);
    assert_int_equal(td_media_jpeg_decoder_new(&decoder), TD_OK);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    td_media_jpeg_encoder_free(encoder);
    td_media_jpeg_decoder_free(decoder);
    return 0;
}

static td_slice encoded(void)
{
    td_slice jpeg = {0};
    assert_int_equal(
        td_media_jpeg_encode(encoder, picture, HEIGHT, WIDTH, &jpeg, NULL),
        TD_OK);
    return jpeg;
}

static double mean_square_error(void)
{
    double sum = 0;
    for (int i = 0; i < BYTES; i++) {
        double off = picture[i] - decoded[i];
        sum += off * off;
    }
    return sum / BYTES;
}

static void a_picture_survives_the_round_trip(void **state)
{
    (void)state;
    td_slice jpeg = encoded();
    uint32_t height = 0, width = 0;
    assert_true(jpeg.size < BYTES / 4);
    assert_int_equal(td_media_jpeg_size(jpeg, &height, &width, NULL), TD_OK);
    assert_int_equal(height, HEIGHT);
    assert_int_equal(width, WIDTH);
    assert_int_equal(
        td_media_jpeg_decode(decoder, jpeg, HEIGHT, WIDTH, decoded, NULL),
        TD_OK);
    assert_true(mean_square_error() < 255.0 * 255.0 / 3162.0); // 35 dB
}

static void the_encoders_buffer_stays_where_it_is(void **state)
{
    (void)state;
    const void *first = encoded().data;
    for (int i = 0; i < 5; i++)
        assert_ptr_equal(encoded().data, first);
}

static void quality_decides_the_size(void **state)
{
    (void)state;
    size_t good = encoded().size;
    td_media_jpeg_encoder_free(encoder);
    assert_int_equal(
        td_media_jpeg_encoder_new(20, TD_MEDIA_CHROMA_420, &encoder), TD_OK);
    assert_true(encoded().size < good);
}

// Stripes of colour one pixel wide: upright on the left, lying on the right.
static void draw_stripes(void)
{
    static const uint8_t colours[][3] = {{230, 40, 60}, {20, 110, 240}};
    for (size_t pixel = 0; pixel < (size_t)HEIGHT * WIDTH; pixel++) {
        size_t x = pixel % WIDTH, y = pixel / WIDTH;
        memcpy(&picture[3 * pixel], colours[(x < WIDTH / 2 ? x : y) % 2], 3);
    }
}

static void finer_chroma_keeps_more_of_the_colour(void **state)
{
    (void)state;
    double error = INFINITY;
    draw_stripes();
    for (int i = TD_MEDIA_CHROMA_420; i <= TD_MEDIA_CHROMA_444; i++) {
        td_media_jpeg_encoder_free(encoder);
        assert_int_equal(
            td_media_jpeg_encoder_new(95, (td_media_chroma)i, &encoder), TD_OK);
        assert_int_equal(td_media_jpeg_decode(decoder, encoded(), HEIGHT, WIDTH,
                                              decoded, NULL),
                         TD_OK);
        assert_true(mean_square_error() < error / 1.5);
        error = mean_square_error();
    }
}

static void a_quality_out_of_range_is_refused(void **state)
{
    (void)state;
    td_media_jpeg_encoder *other = NULL;
    assert_int_equal(td_media_jpeg_encoder_new(0, TD_MEDIA_CHROMA_420, &other),
                     TD_ERR_INVALID);
    assert_int_equal(
        td_media_jpeg_encoder_new(101, TD_MEDIA_CHROMA_420, &other),
        TD_ERR_INVALID);
    assert_null(other);
}

static void bytes_that_are_no_jpeg_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        td_slice bytes;
    } cases[] = {
        {"nothing", {"", 0}},
        {"text", {"hello, this is not a picture", 28}},
        {"PNG", {"\x89PNG\r\n\x1a\n", 8}},
        {"only the first marker", {"\xff\xd8\xff\xe0", 4}},
    };
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        td_errinfo info = {""};
        td_err err = td_media_jpeg_decode(decoder, cases[i].bytes, HEIGHT,
                                          WIDTH, decoded, &info);
        if (err != TD_ERR_FORMAT || !strstr(info.text, "not a JPEG"))
            fail_msg("%s: %s, %s", cases[i].name, td_err_name(err), info.text);
    }
}

static void a_jpeg_cut_short_is_refused(void **state)
{
    (void)state;
    td_slice jpeg = encoded();
    for (size_t size = 0; size + 2 < jpeg.size; size += 61) {
        td_errinfo info = {""};
        td_slice part = {jpeg.data, size};
        assert_int_equal(
            td_media_jpeg_decode(decoder, part, HEIGHT, WIDTH, decoded, &info),
            TD_ERR_FORMAT);
        assert_non_null(strstr(info.text, "JPEG"));
    }
}

static void a_decoder_works_on_after_a_refusal(void **state)
{
    (void)state;
    td_slice jpeg = encoded(), part = {jpeg.data, jpeg.size / 2};
    assert_int_equal(
        td_media_jpeg_decode(decoder, part, HEIGHT, WIDTH, decoded, NULL),
        TD_ERR_FORMAT);
    assert_int_equal(
        td_media_jpeg_decode(decoder, jpeg, HEIGHT, WIDTH, decoded, NULL),
        TD_OK);
}

static void another_size_than_expected_leaves_the_buffer_alone(void **state)
{
    (void)state;
    td_errinfo info = {""};
    assert_int_equal(td_media_jpeg_decode(decoder, encoded(), HEIGHT - 1, WIDTH,
                                          decoded, &info),
                     TD_ERR_MISMATCH);
    assert_string_equal(info.text,
                        "a JPEG of 96 x 128 where 95 x 128 was expected");
    assert_int_equal(decoded[0], 0);
}

// Where the frame header (SOF0) of a baseline JPEG keeps its height.
static uint8_t *frame_height(uint8_t *jpeg, size_t size)
{
    for (size_t i = 0; i + 9 < size; i++)
        if (jpeg[i] == 0xff && jpeg[i + 1] == 0xc0) return jpeg + i + 5;
    fail_msg("no frame header");
    return NULL;
}

static void a_huge_picture_is_refused_by_its_header(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint8_t sides[4]; // height, width
    } cases[] = {
        {"too high", {0x20, 0x01, 0x00, 0x10}},
        {"too wide", {0x00, 0x10, 0xff, 0x00}},
        {"too many pixels", {0x20, 0x00, 0x20, 0x00}},
    };
    td_slice jpeg = encoded();
    uint8_t *copy = malloc(jpeg.size);
    assert_non_null(copy);
    memcpy(copy, jpeg.data, jpeg.size);
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        memcpy(frame_height(copy, jpeg.size), cases[i].sides, 4);
        uint32_t height = 0, width = 0;
        td_err err = td_media_jpeg_size((td_slice){copy, jpeg.size}, &height,
                                        &width, NULL);
        if (err != TD_ERR_LIMIT)
            fail_msg("%s: %s", cases[i].name, td_err_name(err));
    }
    free(copy);
}

static void a_size_is_found_behind_whatever_may_precede_it(void **state)
{
    (void)state;
#define FRAME "\xff\xc0\0\x0b\x08\0\x30\0\x40\1\1\x11\0"
    static const struct {
        const char *name;
        td_slice bytes;
        td_err err;
    } cases[] = {
#define LITERAL(text) {text, sizeof(text) - 1}
        {"nothing", LITERAL("\xff\xd8" FRAME), TD_OK},
        {"fill bytes", LITERAL("\xff\xd8\xff\xff\xff" FRAME), TD_OK},
        {"a comment", LITERAL("\xff\xd8\xff\xfe\0\4ab" FRAME), TD_OK},
        {"what has no length", LITERAL("\xff\xd8\xff\x01" FRAME), TD_OK},
        {"a length of 1", LITERAL("\xff\xd8\xff\xfe\0\1" FRAME), TD_ERR_FORMAT},
        {"a length beyond the end", LITERAL("\xff\xd8\xff\xfe\1\0" FRAME),
         TD_ERR_FORMAT},
        {"the pixels", LITERAL("\xff\xd8\xff\xda\0\2" FRAME), TD_ERR_FORMAT},
        {"other bytes", LITERAL("\xff\xd8 " FRAME), TD_ERR_FORMAT},
        {"a lossless frame",
         LITERAL("\xff\xd8\xff\xc3\0\x0b\x08\0\x30\0\x40"
                 "\1\1\x11\0"),
         TD_ERR_FORMAT},
        {"12 bits", LITERAL("\xff\xd8\xff\xc1\0\x0b\x0c\0\x30\0\x40\1\1\x11\0"),
         TD_ERR_FORMAT},
        {"no height", LITERAL("\xff\xd8\xff\xc0\0\x0b\x08\0\0\0\x40\1\1\x11\0"),
         TD_ERR_FORMAT},
        {"a short frame", LITERAL("\xff\xd8\xff\xc0\0\7\x08\0\x30\0\x40"),
         TD_ERR_FORMAT},
    };
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        uint32_t height = 0, width = 0;
        td_err err = td_media_jpeg_size(cases[i].bytes, &height, &width, NULL);
        bool found = height == 0x30 && width == 0x40;
        if (err != cases[i].err || found != (err == TD_OK))
            fail_msg("%s: %s, %u x %u", cases[i].name, td_err_name(err), height,
                     width);
    }
}

static void a_frame_without_pixels_is_not_encoded(void **state)
{
    (void)state;
    td_slice jpeg = {0};
    assert_int_equal(
        td_media_jpeg_encode(encoder, picture, 0, WIDTH, &jpeg, NULL),
        TD_ERR_LIMIT);
    assert_int_equal(
        td_media_jpeg_encode(encoder, picture, 1, 8193, &jpeg, NULL),
        TD_ERR_LIMIT);
    assert_null(jpeg.data);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_picture_survives_the_round_trip),
        TEST(a_size_is_found_behind_whatever_may_precede_it),
        TEST(the_encoders_buffer_stays_where_it_is),
        TEST(quality_decides_the_size),
        TEST(finer_chroma_keeps_more_of_the_colour),
        TEST(a_quality_out_of_range_is_refused),
        TEST(bytes_that_are_no_jpeg_are_refused),
        TEST(a_jpeg_cut_short_is_refused),
        TEST(a_decoder_works_on_after_a_refusal),
        TEST(another_size_than_expected_leaves_the_buffer_alone),
        TEST(a_huge_picture_is_refused_by_its_header),
        TEST(a_frame_without_pixels_is_not_encoded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
