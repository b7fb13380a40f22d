// SPDX-License-Identifier: Apache-2.0
#include "dataset/meta/tasks.h"
#include "dataset/read/set_fixture.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void places_count_files_then_chunks(void **state)
{
    (void)state;
    td_dataset_place place =
        td_dataset_place_next((td_dataset_place){2, 998}, 1000);
    assert_int_equal(place.chunk, 2);
    assert_int_equal(place.file, 999);
    place = td_dataset_place_next(place, 1000);
    assert_int_equal(place.chunk, 3);
    assert_int_equal(place.file, 0);
}

static void tasks_are_read_as_written(void **state)
{
    (void)state;
    set made = set_new();
    TD_AUTO(td_dataset_tasks) *tasks = NULL;
    assert_int_equal(td_dataset_tasks_read(made.folder, &tasks, NULL), TD_OK);
    assert_int_equal(tasks->count, 2);
    assert_string_equal(tasks->texts[0], "pick");
    assert_string_equal(tasks->texts[1], "place");
    set_free(&made);
}

static void episodes_are_read_as_written(void **state)
{
    (void)state;
    set made = set_new();
    TD_AUTO(td_dataset_episodes) *episodes = NULL;
    assert_int_equal(
        td_dataset_episodes_read(made.folder, made.dataset, &episodes, NULL),
        TD_OK);
    assert_int_equal(episodes->count, SET_EPISODES);
    for (size_t i = 0; i < SET_EPISODES; i++) {
        const td_dataset_episode *read = &episodes->items[i];
        const td_dataset_episode *written = set_episode(i);
        assert_int_equal(read->length, written->length);
        assert_int_equal(read->from, written->from);
        assert_int_equal(read->data.file, written->data.file);
        assert_int_equal(read->task_count, written->task_count);
        for (size_t j = 0; j < read->task_count; j++)
            assert_string_equal(read->tasks[j], written->tasks[j]);
    }
    set_free(&made);
}

static void statistics_stand_in_their_columns(void **state)
{
    (void)state;
    set made = set_new();
    TD_AUTO(td_dataset_table) *table = NULL;
    TD_AUTO(td_dataset_rows) *rows = NULL;
    const char *const names[] = {"stats/action/max", "stats/action/count"};
    assert_int_equal(
        td_dataset_table_open(
            set_path(&made, "meta/episodes/chunk-000/file-000.parquet"), &table,
            NULL),
        TD_OK);
    assert_int_equal(
        td_dataset_table_read(table, 0, SET_EPISODES, names, 2, &rows, NULL),
        TD_OK);
    for (size_t i = 0; i < SET_EPISODES; i++) {
        size_t count = 0;
        const double *most = td_dataset_row(&rows->columns[0], i, &count);
        assert_int_equal(count, 2);
        assert_true(most[0] == 3 && most[1] == 4);
        const int64_t *looked = td_dataset_row(&rows->columns[1], i, &count);
        assert_int_equal(count, 1);
        assert_int_equal(*looked, 2);
    }
    set_free(&made);
}

// What is wrong with one of the episodes, and what it is called.
static const struct {
    const char *name;
    size_t which;
    td_dataset_episode episode;
    td_err err;
} wrong[] = {
    {"a gap", 1, {.length = 4, .from = 4}, TD_ERR_FORMAT},
    {"an overlap", 1, {.length = 4, .from = 2}, TD_ERR_FORMAT},
    {"no rows", 2, {.length = 0, .from = 7}, TD_ERR_FORMAT},
    {"fewer rows than info.json says",
     2,
     {.length = 4, .from = 7},
     TD_ERR_MISMATCH},
};

static void episodes_that_do_not_follow_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < TD_COUNT_OF(wrong); i++) {
        set made = set_new();
        td_dataset_episode items[SET_EPISODES];
        for (size_t j = 0; j < SET_EPISODES; j++)
            items[j] = *set_episode(j);
        items[wrong[i].which] = wrong[i].episode;
        set_write_episodes(&made, items, SET_EPISODES);
        td_dataset_episodes *read = NULL;
        td_errinfo info = {""};
        td_err err =
            td_dataset_episodes_read(made.folder, made.dataset, &read, &info);
        set_free(&made);
        if (err != wrong[i].err)
            fail_msg("%s: %s (%s)", wrong[i].name, td_err_name(err), info.text);
    }
}

static void other_columns_are_not_appended_to(void **state)
{
    (void)state;
    set made = set_new();
    const td_dataset_stats *none[6] = {NULL};
    td_errinfo info = {""};
    FILE *file = tmpfile();
    assert_int_equal(
        td_dataset_episodes_append(
            set_path(&made, "meta/episodes/chunk-000/file-000.parquet"), NULL,
            made.dataset, 3, set_episode(2), none, fileno(file), &info),
        TD_ERR_MISMATCH);
    (void)fclose(file);
    set_free(&made);
}

// LeRobot takes the columns of all files from the first one.
static void statistics_that_the_first_file_lacks_are_left_out(void **state)
{
    (void)state;
    const float values[] = {1, 2, 3, 4};
    set made = set_new();
    TD_AUTO(td_dataset_table) *first = NULL;
    TD_AUTO(td_dataset_table) *next = NULL;
    TD_AUTO(td_dataset_stats) *two = NULL;
    TD_AUTO(td_dataset_stats) *one = NULL;
    char path[256];
    (void)snprintf(path, sizeof path, "%s/next", made.folder);
    assert_int_equal(
        td_dataset_table_open(
            set_path(&made, "meta/episodes/chunk-000/file-000.parquet"), &first,
            NULL),
        TD_OK);
    assert_int_equal(
        td_dataset_stats_column(TD_DATASET_STATS_F32, values, 2, 2, &two),
        TD_OK);
    assert_int_equal(
        td_dataset_stats_column(TD_DATASET_STATS_F32, values, 4, 1, &one),
        TD_OK);
    const td_dataset_stats *stats[6] = {two, one};
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(td_dataset_episodes_append(NULL, first, made.dataset, 3,
                                                set_episode(2), stats, fd,
                                                NULL),
                     TD_OK);
    (void)close(fd);
    assert_int_equal(td_dataset_table_open(path, &next, NULL), TD_OK);
    assert_int_equal(td_dataset_table_columns(next),
                     td_dataset_table_columns(first));
    size_t column = 0;
    assert_int_equal(td_dataset_table_find(next, "stats/action/q01", &column),
                     TD_OK);
    assert_int_equal(
        td_dataset_table_find(next, "stats/timestamp/q01", &column),
        TD_ERR_NOTFOUND);
    set_free(&made);
}

static void an_empty_dataset_has_no_episodes(void **state)
{
    (void)state;
    TD_AUTO(td_dataset_info) *dataset = NULL;
    TD_AUTO(td_dataset_episodes) *episodes = NULL;
    assert_int_equal(td_dataset_info_new(30, NULL, &dataset, NULL), TD_OK);
    assert_int_equal(
        td_dataset_episodes_read("/nonexistent", dataset, &episodes, NULL),
        TD_OK);
    assert_int_equal(episodes->count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(places_count_files_then_chunks),
        cmocka_unit_test(tasks_are_read_as_written),
        cmocka_unit_test(episodes_are_read_as_written),
        cmocka_unit_test(statistics_stand_in_their_columns),
        cmocka_unit_test(episodes_that_do_not_follow_are_refused),
        cmocka_unit_test(other_columns_are_not_appended_to),
        cmocka_unit_test(statistics_that_the_first_file_lacks_are_left_out),
        cmocka_unit_test(an_empty_dataset_has_no_episodes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
