// SPDX-License-Identifier: Apache-2.0
#include "dataset/read/export.h"

#include "dataset/disk/disk.h"
#include "dataset/read/set_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static set made;
static char out[96];

static int setup(void **state)
{
    (void)state;
    made = set_new();
    (void)snprintf(out, sizeof out, "%s-out", made.folder);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    set_free(&made);
    return td_dataset_disk_remove(out, NULL) == TD_OK ? 0 : -1;
}

static td_dataset_export_config config_of(const char *episodes)
{
    return (td_dataset_export_config){
        .folder = made.folder, .out = out, .episodes = episodes, .quality = 90};
}

// The lines of a file in `out`, and the text of one of them, counted from 0.
static int lines_of(const char *name, int wanted, char *ret_line, size_t room)
{
    char path[256], line[512];
    int count = 0;
    (void)snprintf(path, sizeof path, "%s/%s", out, name);
    FILE *in = fopen(path, "rbe");
    if (!in) return -1;
    for (; fgets(line, sizeof line, in); count++)
        if (count == wanted) (void)snprintf(ret_line, room, "%s", line);
    (void)fclose(in);
    return count;
}

static void every_row_is_a_line(void **state)
{
    (void)state;
    td_dataset_export_sums sums = {0};
    const td_dataset_export_config config = config_of(NULL);
    char line[512] = "";
    assert_int_equal(td_dataset_export(&config, &sums, NULL), TD_OK);
    assert_int_equal(sums.episodes, SET_EPISODES);
    assert_int_equal(sums.frames, SET_ROWS);
    assert_int_equal(sums.pictures, 0);
    assert_int_equal(lines_of("episodes.csv", 0, line, sizeof line), 4);
    assert_string_equal(line, "episode,frames,seconds,tasks\r\n");
    assert_int_equal(lines_of("episode-000000.csv", 0, line, sizeof line), 4);
    assert_ptr_equal(strstr(line, "frame,timestamp_s,task,"), line);
    assert_non_null(strstr(line, ",action/"));
    assert_int_equal(lines_of("episode-000002.csv", 2, line, sizeof line), 6);
    assert_ptr_equal(strstr(line, "1,"), line);
    assert_non_null(strstr(line, ",8,8.5,")); // action of row 8
}

static void some_episodes_are_some_files(void **state)
{
    (void)state;
    td_dataset_export_sums sums = {0};
    const td_dataset_export_config config = config_of("1:2");
    char line[512] = "";
    assert_int_equal(td_dataset_export(&config, &sums, NULL), TD_OK);
    assert_int_equal(sums.episodes, 2);
    assert_int_equal(lines_of("episodes.csv", 0, line, sizeof line), 3);
    assert_int_equal(lines_of("episode-000000.csv", 0, line, sizeof line), -1);
    assert_int_equal(lines_of("episode-000001.csv", 0, line, sizeof line), 5);
}

static void what_is_there_is_not_written_over(void **state)
{
    (void)state;
    td_dataset_export_sums sums = {0};
    td_errinfo info = {""};
    const td_dataset_export_config config = config_of("0");
    assert_int_equal(td_dataset_export(&config, &sums, NULL), TD_OK);
    assert_int_equal(td_dataset_export(&config, &sums, &info), TD_ERR_EXISTS);
    assert_non_null(strstr(info.text, out));
}

static bool stop_at_four(void *user, uint64_t done, uint64_t total)
{
    *(uint64_t *)user = total;
    return done < 4;
}

static void one_that_is_stopped_says_where(void **state)
{
    (void)state;
    uint64_t total = 0;
    td_dataset_export_sums sums = {0};
    td_errinfo info = {""};
    td_dataset_export_config config = config_of(NULL);
    config.progress = stop_at_four;
    config.user = &total;
    assert_int_equal(td_dataset_export(&config, &sums, &info),
                     TD_ERR_CANCELLED);
    assert_int_equal(total, SET_ROWS);
    assert_string_equal(info.text, "stopped after 4 of 12 frames");
}

static void episodes_that_are_not_there_are_named(void **state)
{
    (void)state;
    static const char *const wanted[] = {"3",  "2:3", "1:0", "",
                                         ":1", "0:",  "-1",  "1x"};
    for (size_t i = 0; i < TD_COUNT_OF(wanted); i++) {
        td_dataset_export_sums sums = {0};
        td_errinfo info = {""};
        const td_dataset_export_config config = config_of(wanted[i]);
        assert_int_equal(td_dataset_export(&config, &sums, &info),
                         TD_ERR_INVALID);
        assert_non_null(strstr(info.text, "there are 0 to 2"));
        assert_false(td_dataset_disk_exists(out));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_row_is_a_line, setup, teardown),
        cmocka_unit_test_setup_teardown(some_episodes_are_some_files, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(what_is_there_is_not_written_over,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(one_that_is_stopped_says_where, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(episodes_that_are_not_there_are_named,
                                        setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
