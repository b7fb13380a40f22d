// SPDX-License-Identifier: Apache-2.0
#include "media/png.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

// Of every picture that tests/golden/pictures.py made.
#define HEIGHT 7
#define WIDTH 13
#define BYTES (HEIGHT * WIDTH * 3)
#define ROOM 8192

static uint8_t file[ROOM], want[ROOM], decoded[BYTES];

static td_slice read_golden(const char *name, const char *ending, void *room)
{
    char path[512];
    snprintf(path, sizeof path, "%s/tests/golden/pictures/%s.%s", TD_SOURCE_DIR,
             name, ending);
    FILE *in = fopen(path, "rb");
    if (!in) {
        fail_msg("%s cannot be opened", path);
        return (td_slice){0};
    }
    size_t size = fread(room, 1, ROOM, in);
    fclose(in);
    return (td_slice){room, size};
}

static td_err decode(td_slice png, td_errinfo *info)
{
    return td_media_png_decode(png, HEIGHT, WIDTH, decoded, info);
}

static void every_kind_becomes_the_same_pixels_as_elsewhere(void **state)
{
    (void)state;
    static const char *const names[] = {
        "rgb",  "rgb_interlaced",  "rgba",       "palette",    "palette_clear",
        "grey", "grey_interlaced", "grey_alpha", "grey_1_bit",
    };
    for (size_t i = 0; i < TD_COUNT_OF(names); i++) {
        td_errinfo info = {""};
        memset(decoded, 0x55, sizeof decoded);
        td_err err = decode(read_golden(names[i], "png", file), &info);
        if (err != TD_OK)
            fail_msg("%s: %s, %s", names[i], td_err_name(err), info.text);
        assert_int_equal(read_golden(names[i], "rgb", want).size, BYTES);
        if (memcmp(decoded, want, BYTES) != 0)
            fail_msg("%s: other pixels", names[i]);
    }
}

static void what_is_no_picture_is_refused_with_the_reason(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        td_err err;
        const char *text;
    } cases[] = {
        {"rgb_16_bits", TD_ERR_UNSUPPORTED, "a PNG of 16 bits a channel"},
        {"huge", TD_ERR_LIMIT, "a picture of 100000 x 100000"},
        {"no_pixels", TD_ERR_LIMIT, "a picture of 7 x 0"},
        {"cut_short", TD_ERR_FORMAT, "a damaged PNG: cut short"},
        {"broken", TD_ERR_FORMAT, "a damaged PNG: "},
        {"too_little", TD_ERR_FORMAT, "a damaged PNG: "},
        {"bomb", TD_ERR_FORMAT, "a damaged PNG: "},
        {"no_palette", TD_ERR_FORMAT, "a damaged PNG: "},
        {"unknown_kind", TD_ERR_FORMAT, "a damaged PNG: "},
    };
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        td_errinfo info = {""};
        td_err err = decode(read_golden(cases[i].name, "png", file), &info);
        if (err != cases[i].err || !strstr(info.text, cases[i].text))
            fail_msg("%s: %s, %s", cases[i].name, td_err_name(err), info.text);
    }
}

static void what_nobody_asks_for_is_not_unpacked(void **state)
{
    (void)state;
    assert_int_equal(decode(read_golden("large_profile", "png", file), NULL),
                     TD_OK);
}

static void bytes_that_are_no_png_are_refused(void **state)
{
    (void)state;
    static const char jpeg[40] = "\xff\xd8\xff\xe0";
    static const struct {
        const char *name;
        td_slice bytes;
    } cases[] = {
        {"nothing", {"", 0}},
        {"text", {"hello, this is not a picture at all, no", 39}},
        {"a JPEG", {jpeg, sizeof jpeg}},
        {"the signature alone", {"\x89PNG\r\n\x1a\n", 8}},
    };
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        td_errinfo info = {""};
        td_err err = decode(cases[i].bytes, &info);
        if (err != TD_ERR_FORMAT || !strstr(info.text, "not a PNG"))
            fail_msg("%s: %s, %s", cases[i].name, td_err_name(err), info.text);
    }
}

static void no_part_of_one_is_taken_for_the_whole(void **state)
{
    (void)state;
    td_slice whole = read_golden("rgb_interlaced", "png", file);
    for (size_t size = 0; size < whole.size; size++) {
        uint8_t *part = malloc(size + 1); // a guard of its own for sanitizers
        assert_non_null(part);
        memcpy(part, whole.data, size);
        td_err err = decode((td_slice){part, size}, NULL);
        free(part);
        if (err != TD_ERR_FORMAT)
            fail_msg("%zu bytes: %s", size, td_err_name(err));
    }
}

static void one_bit_that_is_wrong_anywhere_is_noticed(void **state)
{
    (void)state;
    td_slice whole = read_golden("palette", "png", file);
    for (size_t i = 0; i < whole.size; i++) {
        file[i] ^= 0x10;
        td_err err = decode(whole, NULL);
        file[i] ^= 0x10;
        if (err == TD_OK) fail_msg("byte %zu", i);
    }
    assert_int_equal(decode(whole, NULL), TD_OK);
}

static void the_size_comes_from_the_header_alone(void **state)
{
    (void)state;
    uint32_t height = 0, width = 0;
    td_slice start = {read_golden("rgb", "png", file).data, 33};
    assert_int_equal(td_media_png_size(start, &height, &width, NULL), TD_OK);
    assert_int_equal(height, HEIGHT);
    assert_int_equal(width, WIDTH);
}

static void another_size_than_expected_leaves_the_buffer_alone(void **state)
{
    (void)state;
    td_errinfo info = {""};
    memset(decoded, 0, sizeof decoded);
    assert_int_equal(td_media_png_decode(read_golden("rgb", "png", file),
                                         HEIGHT, WIDTH + 1, decoded, &info),
                     TD_ERR_MISMATCH);
    assert_string_equal(info.text, "a PNG of 7 x 13 where 7 x 14 was expected");
    assert_int_equal(decoded[2], 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_becomes_the_same_pixels_as_elsewhere),
        cmocka_unit_test(what_is_no_picture_is_refused_with_the_reason),
        cmocka_unit_test(what_nobody_asks_for_is_not_unpacked),
        cmocka_unit_test(bytes_that_are_no_png_are_refused),
        cmocka_unit_test(no_part_of_one_is_taken_for_the_whole),
        cmocka_unit_test(one_bit_that_is_wrong_anywhere_is_noticed),
        cmocka_unit_test(the_size_comes_from_the_header_alone),
        cmocka_unit_test(another_size_than_expected_leaves_the_buffer_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
