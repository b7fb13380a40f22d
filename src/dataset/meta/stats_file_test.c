// SPDX-License-Identifier: Apache-2.0
#include "dataset/meta/stats_file.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define FEATURES 2

static td_dataset_info *dataset;
static td_dataset_stats *stats[FEATURES];

static int setup(void **state)
{
    (void)state;
    const uint32_t two = 2, picture[] = {48, 64, 3};
    static const char *const sides[] = {"height", "width", "channels"};
    assert_int_equal(td_dataset_info_new(30, NULL, &dataset, NULL), TD_OK);
    assert_int_equal(td_dataset_info_add(dataset, "action",
                                         TD_DATASET_DTYPE_F32, &two, 1, NULL,
                                         NULL),
                     TD_OK);
    assert_int_equal(td_dataset_info_add(dataset, "observation.images.top",
                                         TD_DATASET_DTYPE_VIDEO, picture, 3,
                                         sides, NULL),
                     TD_OK);
    return 0;
}

static void forget(void)
{
    for (int i = 0; i < FEATURES; i++) {
        if (stats[i]) td_dataset_stats_free(stats[i]);
        stats[i] = NULL;
    }
}

static int teardown(void **state)
{
    (void)state;
    forget();
    td_dataset_info_free(dataset);
    return 0;
}

static td_err parse(const char *text, td_errinfo *info)
{
    return td_dataset_stats_file_parse((td_slice){text, strlen(text)}, dataset,
                                       stats, info);
}

static const char whole[] =
    "{\"action\": {\"min\": [-1, 0], \"max\": [1, 2.5], \"mean\": [0, 1], "
    "\"std\": [0.5, 0.25], \"count\": [7], \"q01\": [-1, 0], \"q10\": [-1, 0], "
    "\"q50\": [0, 1], \"q90\": [1, 2], \"q99\": [1, 2]},"
    "\"observation.images.top\": {\"min\": [[[0]], [[0.125]], [[0]]], "
    "\"max\": [[[1]], [[1]], [[0.75]]], \"mean\": [[[0.5]], [[0.5]], [[0.5]]], "
    "\"std\": [[[0.1]], [[0.2]], [[0.3]]], \"count\": [100]},"
    "\"somebody's own\": {\"min\": \"?\"}}";

static void a_file_is_read(void **state)
{
    (void)state;
    assert_int_equal(parse(whole, NULL), TD_OK);
    assert_int_equal(stats[0]->count, 7);
    assert_float_equal(td_dataset_stats_of(stats[0], TD_DATASET_STAT_MAX)[1],
                       2.5, 0);
    assert_int_equal(stats[1]->count, 100);
    assert_int_equal(stats[1]->channels, 3);
    assert_float_equal(td_dataset_stats_of(stats[1], TD_DATASET_STAT_MIN)[1],
                       0.125, 0);
    assert_true(isnan(td_dataset_stats_of(stats[1], TD_DATASET_STAT_Q50)[0]));
}

static char *written(void)
{
    char path[] = "/tmp/td-stats-XXXXXX";
    char *text = calloc(1, 8192);
    int fd = mkstemp(path);
    assert_true(fd >= 0 && text);
    assert_int_equal(
        td_dataset_stats_file_write(
            dataset, (const td_dataset_stats *const *)stats, fd, NULL),
        TD_OK);
    assert_true(pread(fd, text, 8191, 0) > 0);
    close(fd);
    unlink(path);
    return text;
}

static void what_is_written_is_read_again(void **state)
{
    (void)state;
    assert_int_equal(parse(whole, NULL), TD_OK);
    stats[0]->values[0] = 1.0 / 3;
    char *text = written();
    assert_non_null(strstr(text, "\"q50\""));
    forget();
    assert_int_equal(parse(text, NULL), TD_OK);
    assert_float_equal(stats[0]->values[0], 1.0 / 3, 0);
    assert_float_equal(td_dataset_stats_of(stats[1], TD_DATASET_STAT_STD)[2],
                       0.3, 0);
    assert_true(isnan(td_dataset_stats_of(stats[1], TD_DATASET_STAT_Q99)[2]));
    free(text);
}

static void what_is_wrong_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        td_err err;
        const char *words;
    } cases[] = {
        {"[]", TD_ERR_FORMAT, "stats.json"},
        {"{\"action\": 3}", TD_ERR_FORMAT, "action: min"},
        {"{\"action\": {\"min\": [1, \"2\"]}}", TD_ERR_FORMAT, "not numbers"},
        {"{\"action\": {\"min\": [1, 2, 3]}}", TD_ERR_MISMATCH,
         "3 numbers, the feature has 2"},
        {"{\"action\": {\"min\":[1,2],\"max\":[1,2],\"mean\":[1,2],"
         "\"std\":[1,2],\"count\":[-1]}}",
         TD_ERR_LIMIT, "count"},
    };
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        td_errinfo info = {""};
        td_err err = parse(cases[i].text, &info);
        if (err != cases[i].err || !strstr(info.text, cases[i].words))
            fail_msg("%s: %s, \"%s\"", cases[i].text, td_err_name(err),
                     info.text);
        forget();
    }
}

static void a_folder_without_the_file_says_so(void **state)
{
    (void)state;
    assert_int_equal(
        td_dataset_stats_file_read("/nowhere", dataset, stats, NULL),
        TD_ERR_NOTFOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_file_is_read, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_written_is_read_again, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(what_is_wrong_is_named, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_folder_without_the_file_says_so,
                                        setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
