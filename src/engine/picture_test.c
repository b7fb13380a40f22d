// SPDX-License-Identifier: Apache-2.0
#include "engine/picture.h"

#include "media/jpeg.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

// As tests/golden/pictures/rgb.png is.
#define HEIGHT 7
#define WIDTH 13
#define BYTES (HEIGHT * WIDTH * 3)

static const td_wire_camera camera = {{"front", 5}, HEIGHT, WIDTH};
static td_engine_picture_reader *reader;
static td_media_jpeg_encoder *encoder;
static uint8_t pixels[BYTES], png[1024], decoded[BYTES];
static size_t png_size;
static td_slice jpeg;

static size_t read_golden(const char *name, void *room, size_t most)
{
    char path[512];
    snprintf(path, sizeof path, "%s/tests/golden/pictures/%s", TD_SOURCE_DIR,
             name);
    FILE *in = fopen(path, "rb");
    if (!in) {
        fail_msg("%s cannot be opened", path);
        return 0;
    }
    size_t size = fread(room, 1, most, in);
    fclose(in);
    return size;
}

static int setup(void **state)
{
    (void)state;
    png_size = read_golden("rgb.png", png, sizeof png);
    assert_int_equal(read_golden("rgb.rgb", pixels, sizeof pixels), BYTES);
    memset(decoded, 0, sizeof decoded);
    assert_int_equal(td_engine_picture_reader_new(&reader), TD_OK);
    assert_int_equal(
        td_media_jpeg_encoder_new(100, TD_MEDIA_CHROMA_444, &encoder), TD_OK);
    assert_int_equal(
        td_media_jpeg_encode(encoder, pixels, HEIGHT, WIDTH, &jpeg, NULL),
        TD_OK);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    td_engine_picture_reader_free(reader);
    td_media_jpeg_encoder_free(encoder);
    return 0;
}

static td_wire_image image_of(td_wire_codec codec)
{
    td_wire_image image = {.name = {"front", 5}, .codec = codec};
    switch (codec) {
    case TD_WIRE_JPEG:
        image.data = jpeg.data;
        image.size = jpeg.size;
        break;
    case TD_WIRE_PNG:
        image.data = png;
        image.size = png_size;
        break;
    case TD_WIRE_RAW:
        image.data = pixels;
        image.size = BYTES;
        memcpy(image.shape, (uint32_t[]){HEIGHT, WIDTH, 3}, sizeof image.shape);
        break;
    }
    return image;
}

static void assert_close(int most)
{
    for (int i = 0; i < BYTES; i++)
        assert_in_range(decoded[i] - pixels[i] + most, 0, 2 * most);
}

static void each_codec_gives_the_picture(void **state)
{
    (void)state;
    static const struct {
        td_wire_codec codec;
        int off; // by how much a value may be
    } cases[] = {{TD_WIRE_JPEG, 8}, {TD_WIRE_PNG, 0}, {TD_WIRE_RAW, 0}};
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        td_wire_image image = image_of(cases[i].codec);
        assert_int_equal(td_engine_picture_check(&image, &camera, NULL), TD_OK);
        assert_int_equal(
            td_engine_picture_decode(reader, &image, &camera, decoded, NULL),
            TD_OK);
        assert_close(cases[i].off);
        memset(decoded, 0, sizeof decoded);
    }
}

// Cut after its first `at` bytes, with a hole between.
static td_wire_image in_pieces(td_wire_codec codec, size_t at,
                               td_slice ret_pieces[2])
{
    static uint8_t memory[4096];
    td_wire_image image = image_of(codec);
    assert_in_range(image.size, at, sizeof memory - 64);
    memset(memory, 0xee, sizeof memory);
    memcpy(memory + 5, image.data, at);
    memcpy(memory + 64 + at, (const char *)image.data + at, image.size - at);
    ret_pieces[0] = (td_slice){memory, 5 + at};
    ret_pieces[1] = (td_slice){memory + 64 + at, image.size - at};
    image.data = NULL;
    image.pieces = ret_pieces;
    image.skip = 5;
    return image;
}

static void a_picture_in_pieces_is_the_same(void **state)
{
    (void)state;
    static const td_wire_codec codecs[] = {TD_WIRE_JPEG, TD_WIRE_PNG,
                                           TD_WIRE_RAW};
    for (size_t i = 0; i < TD_COUNT_OF(codecs); i++) {
        td_wire_image whole = image_of(codecs[i]);
        for (size_t at = 1; at < whole.size; at++) {
            td_slice pieces[2];
            uint8_t want[BYTES];
            td_wire_image image = in_pieces(codecs[i], at, pieces);
            assert_int_equal(td_engine_picture_check(&image, &camera, NULL),
                             TD_OK);
            assert_int_equal(
                td_engine_picture_decode(reader, &whole, &camera, want, NULL),
                TD_OK);
            memset(decoded, 0, sizeof decoded);
            assert_int_equal(td_engine_picture_decode(reader, &image, &camera,
                                                      decoded, NULL),
                             TD_OK);
            assert_memory_equal(decoded, want, BYTES);
        }
    }
}

static void another_size_is_the_mismatch_in_each_codec(void **state)
{
    (void)state;
    static const char *const texts[] = {
        [TD_WIRE_JPEG] = "images.front: is 7x13, the model wants 7x14",
        [TD_WIRE_PNG] = "images.front: is 7x13, the model wants 7x14",
        [TD_WIRE_RAW] = "images.front: is 7x13x3, the model wants 7x14x3",
    };
    const td_wire_camera wider = {{"front", 5}, HEIGHT, WIDTH + 1};
    for (int codec = TD_WIRE_JPEG; codec <= TD_WIRE_RAW; codec++) {
        td_wire_image image = image_of((td_wire_codec)codec);
        td_errinfo info = {""};
        assert_int_equal(td_engine_picture_check(&image, &wider, &info),
                         TD_ERR_MISMATCH);
        assert_string_equal(info.text, texts[codec]);
        assert_int_equal(
            td_engine_picture_decode(reader, &image, &wider, decoded, NULL),
            TD_ERR_MISMATCH);
    }
    assert_int_equal(decoded[2], 0);
}

static void a_picture_of_another_codec_is_refused_by_name(void **state)
{
    (void)state;
    static const struct {
        td_wire_codec said, is;
        const char *text;
    } cases[] = {
        {TD_WIRE_JPEG, TD_WIRE_PNG, "images.front: not a JPEG: "},
        {TD_WIRE_PNG, TD_WIRE_JPEG, "images.front: not a PNG: "},
    };
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        td_wire_image image = image_of(cases[i].is);
        td_errinfo info = {""};
        image.codec = cases[i].said;
        assert_int_equal(td_engine_picture_check(&image, &camera, &info),
                         TD_ERR_FORMAT);
        assert_non_null(strstr(info.text, cases[i].text));
    }
}

static void raw_bytes_must_be_as_many_as_the_shape_says(void **state)
{
    (void)state;
    td_wire_image image = image_of(TD_WIRE_RAW);
    td_errinfo info = {""};
    image.size--;
    assert_int_equal(
        td_engine_picture_decode(reader, &image, &camera, decoded, &info),
        TD_ERR_FORMAT);
    assert_string_equal(info.text,
                        "images.front: has 272 bytes, its shape 273");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(each_codec_gives_the_picture),
        TEST(a_picture_in_pieces_is_the_same),
        TEST(another_size_is_the_mismatch_in_each_codec),
        TEST(a_picture_of_another_codec_is_refused_by_name),
        TEST(raw_bytes_must_be_as_many_as_the_shape_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
