// SPDX-License-Identifier: Apache-2.0
#include "dataset/stats/stats.h"

#include "dataset/stats/pictures.h"
#include "dataset/stats/stats_fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct {
    td_dataset_stats_type type;
    size_t rows;
    uint32_t channels;
    double scale, offset;
} columns[] = {
    {TD_DATASET_STATS_F32, 1, 2, 3, -1},
    {TD_DATASET_STATS_F32, 2, 1, 3, -1},
    {TD_DATASET_STATS_F32, 7, 1, 3, -1},
    {TD_DATASET_STATS_F32, 129, 1, 360, -180},
    {TD_DATASET_STATS_F32, 1800, 1, 360, -180},
    {TD_DATASET_STATS_F32, 1800, 6, 360, -180},
    {TD_DATASET_STATS_F32, 300, 3, 0.001, 1000},
    {TD_DATASET_STATS_F32, 50, 2, 0, 127},
    {TD_DATASET_STATS_F64, 1800, 1, 60, 0},
    {TD_DATASET_STATS_I64, 1800, 1, 1800, 1e7},
    {TD_DATASET_STATS_BOOL, 300, 1, 1, 0},
};

static const struct {
    size_t count, height, width;
} albums[] = {{1, 4, 6}, {20, 48, 64}, {100, 120, 160}};

static void put(td_dataset_stats_type type, void *values, size_t i,
                double value)
{
    switch (type) {
    case TD_DATASET_STATS_F32:
        ((float *)values)[i] = (float)value;
        break;
    case TD_DATASET_STATS_F64:
        ((double *)values)[i] = value;
        break;
    case TD_DATASET_STATS_I64:
        ((int64_t *)values)[i] = (int64_t)value;
        break;
    case TD_DATASET_STATS_BOOL:
        ((uint8_t *)values)[i] = value >= 0.5;
        break;
    }
}

static void check_column(size_t at, const double **golden)
{
    TD_AUTO(td_dataset_stats) *stats = NULL;
    size_t count = columns[at].rows * columns[at].channels;
    void *values = calloc(count, sizeof(double));
    assert_non_null(values);
    for (size_t i = 0; i < count; i++)
        put(columns[at].type, values, i,
            columns[at].offset + columns[at].scale * golden_share(i));
    assert_int_equal(td_dataset_stats_column(columns[at].type, values,
                                             columns[at].rows,
                                             columns[at].channels, &stats),
                     TD_OK);
    assert_int_equal(stats->count, columns[at].rows);
    check_golden(stats, golden);
    free(values);
}

static void check_album(size_t at, const double **golden)
{
    TD_AUTO(td_dataset_pictures) *pictures = NULL;
    TD_AUTO(td_dataset_stats) *stats = NULL;
    size_t pixels = albums[at].height * albums[at].width;
    uint8_t *rgb = calloc(pixels, 3);
    assert_non_null(rgb);
    assert_int_equal(td_dataset_pictures_new(&pictures), TD_OK);
    for (size_t k = 0; k < albums[at].count; k++) {
        for (size_t i = 0; i < pixels * 3; i++)
            rgb[i] =
                (uint8_t)(golden_share(k * pixels * 3 + i) * 90 + (double)k);
        td_dataset_pictures_add(pictures, rgb, pixels);
    }
    assert_int_equal(td_dataset_pictures_stats(pictures, &stats), TD_OK);
    assert_int_equal(stats->count, albums[at].count);
    check_golden(stats, golden);
    free(rgb);
}

static void the_numbers_are_lerobots(void **state)
{
    (void)state;
    static double golden[GOLDEN_ROOM];
    size_t count = read_golden(golden, GOLDEN_ROOM);
    const double *next = golden;
    for (size_t i = 0; i < TD_COUNT_OF(columns); i++)
        check_column(i, &next);
    for (size_t i = 0; i < TD_COUNT_OF(albums); i++)
        check_album(i, &next);
    assert_int_equal(next - golden, count);
}

static void what_has_no_statistics_is_refused(void **state)
{
    (void)state;
    td_dataset_stats *stats = NULL;
    const float values[] = {1, NAN, INFINITY, 2};
    assert_int_equal(
        td_dataset_stats_column(TD_DATASET_STATS_F32, values, 0, 1, &stats),
        TD_ERR_INVALID);
    assert_int_equal(
        td_dataset_stats_column(TD_DATASET_STATS_F32, values, 4, 1, &stats),
        TD_ERR_INVALID);
    assert_int_equal(
        td_dataset_stats_column(TD_DATASET_STATS_F32, values + 1, 1, 1, &stats),
        TD_ERR_INVALID);
    assert_int_equal(
        td_dataset_stats_column(TD_DATASET_STATS_F32, values, 1, 0, &stats),
        TD_ERR_INVALID);
    assert_null(stats);
}

// Two episodes at 1 and 4, the second twice as long.
static void episodes_are_weighed_by_their_rows(void **state)
{
    (void)state;
    TD_AUTO(td_dataset_stats) *total = NULL;
    TD_AUTO(td_dataset_stats) *first = NULL;
    TD_AUTO(td_dataset_stats) *second = NULL;
    const double values[] = {1, 1, 4, 4, 4, 4};
    assert_int_equal(td_dataset_stats_new(1, &total), TD_OK);
    assert_int_equal(
        td_dataset_stats_column(TD_DATASET_STATS_F64, values, 2, 1, &first),
        TD_OK);
    assert_int_equal(td_dataset_stats_column(TD_DATASET_STATS_F64, values + 2,
                                             4, 1, &second),
                     TD_OK);
    assert_int_equal(td_dataset_stats_merge(total, first), TD_OK);
    assert_int_equal(td_dataset_stats_merge(total, second), TD_OK);
    assert_int_equal(total->count, 6);
    static const double expected[] = {1, 4, 3, 1.4142135, 3, 3, 3, 3, 3};
    for (int i = 0; i < TD_DATASET_STAT_COUNT; i++)
        assert_float_equal(total->values[i], expected[i], 1e-6);
}

static void features_of_other_width_are_not_merged(void **state)
{
    (void)state;
    TD_AUTO(td_dataset_stats) *one = NULL;
    TD_AUTO(td_dataset_stats) *two = NULL;
    assert_int_equal(td_dataset_stats_new(1, &one), TD_OK);
    assert_int_equal(td_dataset_stats_new(2, &two), TD_OK);
    assert_int_equal(td_dataset_stats_merge(one, two), TD_ERR_MISMATCH);
}

static void pictures_are_looked_at_from_the_first_to_the_last(void **state)
{
    (void)state;
    static const struct {
        size_t length, samples;
    } cases[] = {{1, 1},        {2, 2},        {99, 99},
                 {100, 100},    {500, 105},    {1000, 177},
                 {10000, 1000}, {20000, 1681}, {300000, 10000}};
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        size_t length = cases[i].length, before = 0;
        size_t samples = td_dataset_pictures_samples(length);
        assert_int_equal(samples, cases[i].samples);
        assert_int_equal(td_dataset_pictures_sample(length, 0), 0);
        assert_int_equal(td_dataset_pictures_sample(length, samples - 1),
                         length - 1);
        for (size_t k = 1; k < samples; k++) {
            size_t at = td_dataset_pictures_sample(length, k);
            assert_true(at > before);
            before = at;
        }
    }
}

static void large_pictures_are_thinned_out(void **state)
{
    (void)state;
    static const struct {
        uint32_t height, width, step;
    } cases[] = {{48, 64, 1},   {299, 299, 1}, {300, 200, 2},
                 {480, 640, 4}, {640, 480, 4}, {1080, 1920, 12}};
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++)
        assert_int_equal(
            td_dataset_pictures_step(cases[i].height, cases[i].width),
            cases[i].step);
}

static void no_pictures_have_no_statistics(void **state)
{
    (void)state;
    TD_AUTO(td_dataset_pictures) *pictures = NULL;
    td_dataset_stats *stats = NULL;
    assert_int_equal(td_dataset_pictures_new(&pictures), TD_OK);
    assert_int_equal(td_dataset_pictures_stats(pictures, &stats), TD_ERR_EMPTY);
    assert_null(stats);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_numbers_are_lerobots),
        cmocka_unit_test(what_has_no_statistics_is_refused),
        cmocka_unit_test(episodes_are_weighed_by_their_rows),
        cmocka_unit_test(features_of_other_width_are_not_merged),
        cmocka_unit_test(pictures_are_looked_at_from_the_first_to_the_last),
        cmocka_unit_test(large_pictures_are_thinned_out),
        cmocka_unit_test(no_pictures_have_no_statistics),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
