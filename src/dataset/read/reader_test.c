// SPDX-License-Identifier: Apache-2.0
#include "dataset/read/reader.h"

#include "base/clock.h"
#include "base/sync/thread.h"
#include "dataset/read/set_fixture.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define SWAPS 200

static td_dataset_reader *open_set(const set *made)
{
    td_dataset_reader *reader = NULL;
    td_errinfo info = {""};
    td_err err = td_dataset_reader_open(made->folder, &reader, &info);
    if (err != TD_OK) fail_msg("%s: %s", td_err_name(err), info.text);
    return reader;
}

static void check_row(td_dataset_reader *reader, uint64_t row)
{
    td_dataset_reading reading;
    td_errinfo info = {""};
    td_err err = td_dataset_reader_seek(reader, row, &reading, &info);
    if (err != TD_OK) fail_msg("%s: %s", td_err_name(err), info.text);
    const td_dataset_episode *episode = set_episode(reading.episode);
    assert_int_equal(episode->from + reading.frame, row);
    assert_true(reading.timestamp_s == (float)reading.frame / 30);
    bool second = reading.episode == 2 || reading.frame > 1;
    assert_string_equal(reading.task, second ? "place" : "pick");
    float action[2];
    assert_int_equal(td_dataset_reader_floats(reader, "action", 2, action),
                     TD_OK);
    assert_true(action[0] == (float)row && action[1] == (float)row + 0.5f);
}

static void rows_come_in_any_order(void **state)
{
    (void)state;
    set made = set_new();
    TD_AUTO(td_dataset_reader) *reader = open_set(&made);
    for (uint64_t row = 0; row < SET_ROWS; row++)
        check_row(reader, row);
    for (uint64_t row = 0; row < SET_ROWS; row++)
        check_row(reader, row * 7 % SET_ROWS);
    set_free(&made);
}

static void values_have_their_types(void **state)
{
    (void)state;
    set made = set_new();
    TD_AUTO(td_dataset_reader) *reader = open_set(&made);
    td_dataset_reading reading;
    td_dataset_type type;
    const void *values = NULL;
    size_t count = 0;
    float wrong[3];
    assert_int_equal(
        td_dataset_reader_values(reader, "index", &type, &values, &count),
        TD_ERR_INVALID);
    assert_int_equal(td_dataset_reader_seek(reader, 9, &reading, NULL), TD_OK);
    assert_int_equal(
        td_dataset_reader_values(reader, "index", &type, &values, &count),
        TD_OK);
    assert_int_equal(type, TD_DATASET_I64);
    assert_int_equal(count, 1);
    assert_int_equal(*(const int64_t *)values, 9);
    assert_int_equal(
        td_dataset_reader_values(reader, "absent", &type, &values, &count),
        TD_ERR_NOTFOUND);
    assert_int_equal(td_dataset_reader_floats(reader, "action", 3, wrong),
                     TD_ERR_MISMATCH);
    set_free(&made);
}

static void rows_beyond_the_end_are_refused(void **state)
{
    (void)state;
    set made = set_new();
    TD_AUTO(td_dataset_reader) *reader = open_set(&made);
    td_dataset_reading reading;
    td_errinfo info = {""};
    assert_int_equal(td_dataset_reader_seek(reader, SET_ROWS, &reading, &info),
                     TD_ERR_INVALID);
    assert_int_equal(
        td_dataset_reader_seek(reader, UINT64_MAX, &reading, &info),
        TD_ERR_INVALID);
    set_free(&made);
}

static void a_row_that_is_another_is_refused(void **state)
{
    (void)state;
    set made = set_new();
    set_write_data(&made, "data/chunk-000/file-001.parquet", 7, 5, 1);
    TD_AUTO(td_dataset_reader) *reader = open_set(&made);
    td_dataset_reading reading;
    td_errinfo info = {""};
    check_row(reader, 6);
    assert_int_equal(td_dataset_reader_seek(reader, 7, &reading, &info),
                     TD_ERR_MISMATCH);
    assert_non_null(strstr(info.text, "index is 8, must be 7"));
    check_row(reader, 3);
    set_free(&made);
}

static void a_data_file_that_is_short_is_said(void **state)
{
    (void)state;
    set made = set_new();
    set_write_data(&made, "data/chunk-000/file-001.parquet", 7, 4, 0);
    TD_AUTO(td_dataset_reader) *reader = open_set(&made);
    td_dataset_reading reading;
    td_errinfo info = {""};
    assert_int_equal(td_dataset_reader_seek(reader, 11, &reading, &info),
                     TD_ERR_INVALID);
    assert_int_equal(unlink(set_path(&made, "data/chunk-000/file-000.parquet")),
                     0);
    assert_int_equal(td_dataset_reader_seek(reader, 0, &reading, &info),
                     TD_ERR_NOTFOUND);
    assert_non_null(strstr(info.text, "file-000.parquet"));
    set_free(&made);
}

static void a_camera_that_is_not_there_is_said(void **state)
{
    (void)state;
    set made = set_new();
    TD_AUTO(td_dataset_reader) *reader = open_set(&made);
    td_dataset_reading reading;
    uint8_t rgb[3];
    td_errinfo info = {""};
    assert_int_equal(td_dataset_reader_seek(reader, 0, &reading, NULL), TD_OK);
    assert_int_equal(td_dataset_reader_picture(reader, "action", rgb, &info),
                     TD_ERR_NOTFOUND);
    set_free(&made);
}

static void a_folder_that_is_no_dataset_is_refused(void **state)
{
    (void)state;
    td_dataset_reader *reader = NULL;
    td_errinfo info = {""};
    assert_int_equal(td_dataset_reader_open("/tmp", &reader, &info),
                     TD_ERR_NOTFOUND);
    set made = set_new();
    made.dataset->total_frames++;
    set_write_info(&made);
    assert_int_equal(td_dataset_reader_open(made.folder, &reader, &info),
                     TD_ERR_MISMATCH);
    set_free(&made);
}

// Swaps two folders once, when it is time to.
typedef struct swapper {
    const set *one, *other;
    _Atomic int64_t due_ns; // 0: it is done; -1: there is no more
} swapper;

static void swap_when_due(void *user)
{
    swapper *self = user;
    for (int64_t due_ns; (due_ns = atomic_load(&self->due_ns)) >= 0;) {
        if (due_ns == 0 || td_clock_monotonic_ns() < due_ns) continue;
        (void)renameat2(AT_FDCWD, self->one->folder, AT_FDCWD,
                        self->other->folder, RENAME_EXCHANGE);
        atomic_store(&self->due_ns, 0);
    }
}

// As a recorder does with each episode, at every moment of an opening.
static void a_folder_may_become_another_while_it_is_opened(void **state)
{
    (void)state;
    set made = set_new(), shorter = set_new();
    shorter.dataset->total_episodes = 2;
    shorter.dataset->total_frames = 7;
    set_write_info(&shorter);
    set_write_episodes(&shorter, set_episode(0), 2);
    swapper self = {.one = &made, .other = &shorter};
    const td_thread_config config = {.name = "swapper", .cpu = -1};
    td_thread *thread = NULL;
    assert_int_equal(
        td_thread_start(&config, swap_when_due, &self, &thread, NULL), TD_OK);
    int64_t took_ns = TD_NS_PER_MS;
    td_err first = TD_OK;
    for (int i = 0; i < SWAPS && first == TD_OK; i++) {
        td_dataset_reader *reader = NULL;
        int64_t began_ns = td_clock_monotonic_ns();
        atomic_store(&self.due_ns, began_ns + took_ns * i / SWAPS);
        first = td_dataset_reader_open(made.folder, &reader, NULL);
        took_ns = td_clock_monotonic_ns() - began_ns;
        if (reader) td_dataset_reader_close(reader);
        while (atomic_load(&self.due_ns) != 0)
            ;
    }
    atomic_store(&self.due_ns, -1);
    td_thread_join(thread);
    assert_int_equal(first, TD_OK);
    set_free(&made);
    set_free(&shorter);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_come_in_any_order),
        cmocka_unit_test(values_have_their_types),
        cmocka_unit_test(rows_beyond_the_end_are_refused),
        cmocka_unit_test(a_row_that_is_another_is_refused),
        cmocka_unit_test(a_data_file_that_is_short_is_said),
        cmocka_unit_test(a_camera_that_is_not_there_is_said),
        cmocka_unit_test(a_folder_that_is_no_dataset_is_refused),
        cmocka_unit_test(a_folder_may_become_another_while_it_is_opened),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
