// SPDX-License-Identifier: Apache-2.0
// Against what LeRobot's own policies made of the same pictures
// (tests/golden/make_fits.py, which has the same table).
#include "media/fit.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define FOLDER TD_SOURCE_DIR "/tests/golden/fits/"
#define TOLERANCE 1e-6f // a byte is 4e-3
#define MAX_VALUES (64 * 64 * 3)

static const struct {
    const char *name;
    td_media_size from, to;
    td_media_place place;
} cases[] = {
    {"smolvla_wide", {36, 64}, {24, 24}, TD_MEDIA_CORNER},
    {"smolvla_tall", {50, 30}, {24, 20}, TD_MEDIA_CORNER},
    {"smolvla_larger", {7, 9}, {20, 24}, TD_MEDIA_CORNER},
    {"smolvla_same", {16, 16}, {16, 16}, TD_MEDIA_CORNER},
    {"pi0_wide", {36, 64}, {24, 24}, TD_MEDIA_MIDDLE},
    {"pi0_odd", {33, 47}, {21, 28}, TD_MEDIA_MIDDLE},
    {"pi0_larger", {10, 6}, {28, 28}, TD_MEDIA_MIDDLE},
    {"pi0_same_shape", {48, 64}, {24, 32}, TD_MEDIA_MIDDLE},
    {"pi05_wide", {36, 64}, {24, 24}, TD_MEDIA_MIDDLE},
    {"pi05_same", {16, 16}, {16, 16}, TD_MEDIA_MIDDLE},
};

static uint8_t source[MAX_VALUES];
static float wanted[MAX_VALUES], result[MAX_VALUES + 1];

static void draw(td_media_size size)
{
    for (uint32_t i = 0; i < size.height * size.width * 3; i++)
        source[i] = (uint8_t)((i * i * 7 + i * 31) % 251);
}

static void read_wanted(const char *name, size_t count)
{
    char path[512];
    (void)snprintf(path, sizeof path, FOLDER "%s.f32", name);
    FILE *in = fopen(path, "rbe");
    assert_non_null(in);
    assert_int_equal(fread(wanted, sizeof *wanted, MAX_VALUES, in), count);
    (void)fclose(in);
}

static td_media_fit_config config_of(size_t i)
{
    const float scale = 1.0f / 255;
    return (td_media_fit_config){.from = cases[i].from,
                                 .to = cases[i].to,
                                 .place = cases[i].place,
                                 .scale = {scale, scale, scale},
                                 .clamps = cases[i].place == TD_MEDIA_MIDDLE};
}

static void fit(const td_media_fit_config *config)
{
    td_media_fitter *fitter = NULL;
    assert_int_equal(td_media_fitter_new(config, &fitter), TD_OK);
    draw(config->from);
    for (size_t i = 0; i <= MAX_VALUES; i++)
        result[i] = 77;
    td_media_fit(fitter, source, result);
    td_media_fitter_free(fitter);
}

// The last thing that a policy does is 2 x - 1.
static void every_pixel_is_lerobots(void **state)
{
    (void)state;
    for (size_t k = 0; k < TD_COUNT_OF(cases); k++) {
        td_media_fit_config config = config_of(k);
        size_t count = (size_t)config.to.height * config.to.width * 3;
        fit(&config);
        read_wanted(cases[k].name, count);
        for (size_t i = 0; i < count; i++)
            if (!(fabsf(2 * result[i] - 1 - wanted[i]) <= TOLERANCE))
                fail_msg("%s: value %zu is %.9g, LeRobot's %.9g", cases[k].name,
                         i, 2 * (double)result[i] - 1, (double)wanted[i]);
        assert_true(result[count] == 77);
    }
}

static void colours_are_scaled_and_what_is_outside_is_black(void **state)
{
    (void)state;
    td_media_fit_config config = {.from = {2, 4},
                                  .to = {4, 4},
                                  .place = TD_MEDIA_MIDDLE,
                                  .scale = {1, 2, 0},
                                  .bias = {0, 1, -3}};
    fit(&config);
    for (size_t x = 0; x < 4; x++) {
        const float *row = result + 3 * x, *inside = row + 12;
        const uint8_t *pixel = source + 3 * x;
        assert_true(row[0] == 0 && row[1] == 0 && row[2] == 0);
        assert_true(inside[0] == (float)pixel[0]);
        assert_true(inside[1] == 2 * (float)pixel[1] + 1);
        assert_true(inside[2] == -3);
    }
    config.clamps = true;
    fit(&config);
    for (size_t i = 0; i < 48; i++)
        assert_true(result[i] >= 0 && result[i] <= 1);
}

static void sizes_that_cannot_be_are_refused(void **state)
{
    (void)state;
    static const struct {
        td_media_size from, to;
        td_err err;
    } bad[] = {
        {{0, 4}, {4, 4}, TD_ERR_INVALID},    {{4, 4}, {4, 0}, TD_ERR_INVALID},
        {{8193, 4}, {4, 4}, TD_ERR_LIMIT},   {{4, 4}, {4, 8193}, TD_ERR_LIMIT},
        {{8192, 1}, {4, 4}, TD_ERR_INVALID}, // nothing would be left of it
    };
    for (size_t i = 0; i < TD_COUNT_OF(bad); i++) {
        td_media_fitter *fitter = NULL;
        td_media_fit_config config = {.from = bad[i].from, .to = bad[i].to};
        assert_int_equal(td_media_fitter_new(&config, &fitter), bad[i].err);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pixel_is_lerobots),
        cmocka_unit_test(colours_are_scaled_and_what_is_outside_is_black),
        cmocka_unit_test(sizes_that_cannot_be_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
