// SPDX-License-Identifier: Apache-2.0
#include "media/resize.h"

#include "base/rand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MAX_BYTES (64 * 64 * 3)

static uint8_t source[MAX_BYTES], result[MAX_BYTES];

static void draw_noise(uint64_t seed)
{
    td_rand rand;
    td_rand_init(&rand, seed);
    for (size_t i = 0; i < sizeof source; i++)
        source[i] = (uint8_t)(256 * td_rand_unit(&rand));
}

static void resize(td_media_size from, td_media_size to)
{
    td_media_resizer *resizer = NULL;
    assert_int_equal(td_media_resizer_new(from, to, &resizer), TD_OK);
    memset(result, 0xAA, sizeof result);
    td_media_resize(resizer, source, result);
    td_media_resizer_free(resizer);
}

// The mean of a picture in which each pixel of the source stands to.height x
// to.width times: there every pixel of the result is whole ones.
static uint8_t expected(td_media_size from, td_media_size to, uint32_t i,
                        uint32_t j, uint32_t colour)
{
    uint64_t sum = 0, count = (uint64_t)from.height * from.width;
    for (uint32_t y = i * from.height; y < (i + 1) * from.height; y++)
        for (uint32_t x = j * from.width; x < (j + 1) * from.width; x++)
            sum += source[3 * (y / to.height * from.width + x / to.width) +
                          colour];
    return (uint8_t)((sum + count / 2) / count);
}

static void assert_as_expected(td_media_size from, td_media_size to)
{
    for (uint32_t i = 0; i < to.height; i++)
        for (uint32_t j = 0; j < to.width; j++)
            for (uint32_t colour = 0; colour < 3; colour++)
                assert_int_equal(result[3 * (i * to.width + j) + colour],
                                 expected(from, to, i, j, colour));
    assert_int_equal(result[(size_t)3 * to.height * to.width], 0xAA);
}

static void each_pixel_is_the_mean_of_what_it_covers(void **state)
{
    static const struct {
        const char *name;
        td_media_size from, to;
    } cases[] = {
        {"a half", {16, 32}, {8, 16}},        {"the same", {9, 7}, {9, 7}},
        {"two thirds", {12, 18}, {8, 12}},    {"one less", {13, 17}, {12, 16}},
        {"odd", {31, 37}, {7, 11}},           {"only lower", {24, 10}, {5, 10}},
        {"only narrower", {10, 24}, {10, 5}}, {"one pixel", {19, 23}, {1, 1}},
        {"one row", {1, 30}, {1, 7}},
    };
    (void)state;
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        print_message("%s\n", cases[i].name);
        draw_noise(i);
        resize(cases[i].from, cases[i].to);
        assert_as_expected(cases[i].from, cases[i].to);
    }
}

static void the_brightest_and_the_largest_do_not_overflow(void **state)
{
    const td_media_size from = {8192, 8192}, to = {1, 2};
    td_media_resizer *resizer = NULL;
    size_t bytes = (size_t)3 * from.height * from.width;
    uint8_t *white = malloc(bytes);
    uint8_t small[6];
    (void)state;
    assert_non_null(white);
    memset(white, 255, bytes);
    assert_int_equal(td_media_resizer_new(from, to, &resizer), TD_OK);
    td_media_resize(resizer, white, small);
    for (size_t i = 0; i < sizeof small; i++)
        assert_int_equal(small[i], 255);
    td_media_resizer_free(resizer);
    free(white);
}

static void what_would_grow_or_is_empty_is_refused(void **state)
{
    static const struct {
        const char *name;
        td_media_size from, to;
        td_err err;
    } cases[] = {
        {"higher", {8, 8}, {9, 8}, TD_ERR_INVALID},
        {"wider", {8, 8}, {8, 9}, TD_ERR_INVALID},
        {"no height", {8, 8}, {0, 8}, TD_ERR_INVALID},
        {"no width", {8, 8}, {8, 0}, TD_ERR_INVALID},
        {"too high", {8193, 8}, {8, 8}, TD_ERR_LIMIT},
        {"too wide", {8, 8193}, {8, 8}, TD_ERR_LIMIT},
    };
    (void)state;
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        td_media_resizer *resizer = NULL;
        td_err err = td_media_resizer_new(cases[i].from, cases[i].to, &resizer);
        if (err != cases[i].err || resizer)
            fail_msg("%s: %s", cases[i].name, td_err_name(err));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_pixel_is_the_mean_of_what_it_covers),
        cmocka_unit_test(the_brightest_and_the_largest_do_not_overflow),
        cmocka_unit_test(what_would_grow_or_is_empty_is_refused),
    };
    return cmocka_run_group_tests_name("media/resize", tests, NULL, NULL);
}
