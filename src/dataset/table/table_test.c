// SPDX-License-Identifier: Apache-2.0
#include "dataset/table/table.h"

#include "dataset/table/parquet.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

// A file in memory, with the path that opens it again.
struct memory {
    int fd;
    char path[64];
};

static struct memory memory_new(void)
{
    struct memory made = {.fd = memfd_create("table", MFD_CLOEXEC)};
    assert_true(made.fd >= 0);
    (void)snprintf(made.path, sizeof made.path, "/proc/self/fd/%d", made.fd);
    return made;
}

#define SLICE(text) ((td_slice){text, sizeof(text) - 1})

static const td_dataset_field fields[] = {
    {"number", TD_DATASET_I64, 1, 0, false},
    {"state", TD_DATASET_F32, 3, 1, true},
    {"flag", TD_DATASET_BOOL, 1, 0, false},
    {"words", TD_DATASET_TEXT, 0, 1, false},
    {"mean", TD_DATASET_F64, 0, 3, false},
};
#define FIELDS TD_COUNT_OF(fields)
static const char *const names[FIELDS] = {"number", "state", "flag", "words",
                                          "mean"};

static const int64_t numbers[] = {7, -1, INT64_MAX};
static const float states[] = {1, 2, 3, 4, 5, 6, 7, 8, -0.5f};
static const uint8_t flags[] = {1, 0, 1};
static const td_slice words[] = {SLICE("pick"), SLICE(""),
                                 SLICE("a text that is no short one")};
static const size_t word_ends[] = {2, 2, 3};
static const double means[] = {0.25, 0.5, 0.75, 1};
static const size_t mean_ends[] = {3, 3, 4};

static const td_dataset_column columns[FIELDS] = {
    {TD_DATASET_I64, 3, numbers, NULL},
    {TD_DATASET_F32, 9, states, NULL},
    {TD_DATASET_BOOL, 3, flags, NULL},
    {TD_DATASET_TEXT, 3, words, word_ends},
    {TD_DATASET_F64, 4, means, mean_ends},
};

static td_dataset_table_writer *create(int fd)
{
    const td_dataset_note note = {"key", "value"};
    td_dataset_table_writer *writer = NULL;
    assert_int_equal(
        td_dataset_table_create(fd, fields, FIELDS, &note, 1, &writer, NULL),
        TD_OK);
    return writer;
}

static void write_groups(int fd, size_t groups)
{
    TD_AUTO(td_dataset_table_writer) *writer = create(fd);
    for (size_t i = 0; i < groups; i++)
        assert_int_equal(td_dataset_table_append(writer, columns, 3, NULL),
                         TD_OK);
    assert_int_equal(td_dataset_table_finish(writer, NULL), TD_OK);
}

static td_dataset_rows *read_all(const char *path, uint64_t first, size_t rows)
{
    TD_AUTO(td_dataset_table) *table = NULL;
    td_dataset_rows *read = NULL;
    td_errinfo info = {""};
    td_err err = td_dataset_table_open(path, &table, &info);
    if (err == TD_OK)
        err = td_dataset_table_read(table, first, rows, names, FIELDS, &read,
                                    &info);
    if (err != TD_OK) fail_msg("%s: %s", td_err_name(err), info.text);
    return read;
}

static void check_row(const td_dataset_rows *rows, size_t row, size_t expected)
{
    size_t count;
    const int64_t *number = td_dataset_row(&rows->columns[0], row, &count);
    assert_int_equal(count, 1);
    assert_int_equal(*number, numbers[expected]);
    const float *state = td_dataset_row(&rows->columns[1], row, &count);
    assert_int_equal(count, 3);
    assert_memory_equal(state, &states[3 * expected], 3 * sizeof *state);
    const uint8_t *flag = td_dataset_row(&rows->columns[2], row, &count);
    assert_int_equal(*flag, flags[expected]);
    const td_slice *text = td_dataset_row(&rows->columns[3], row, &count);
    size_t before = expected == 0 ? 0 : word_ends[expected - 1];
    assert_int_equal(count, word_ends[expected] - before);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(text[i].size, words[before + i].size);
        assert_memory_equal(text[i].data, words[before + i].data, text[i].size);
    }
    const double *mean = td_dataset_row(&rows->columns[4], row, &count);
    before = expected == 0 ? 0 : mean_ends[expected - 1];
    assert_int_equal(count, mean_ends[expected] - before);
    assert_memory_equal(mean, &means[before], count * sizeof *mean);
}

static void what_was_written_is_read(void **state)
{
    (void)state;
    struct memory file = memory_new();
    write_groups(file.fd, 1);
    TD_AUTO(td_dataset_rows) *rows = read_all(file.path, 0, 3);
    for (size_t i = 0; i < 3; i++)
        check_row(rows, i, i);
    (void)close(file.fd);
}

static void rows_are_read_across_groups(void **state)
{
    (void)state;
    struct memory file = memory_new();
    write_groups(file.fd, 4);
    TD_AUTO(td_dataset_rows) *rows = read_all(file.path, 2, 8);
    for (size_t i = 0; i < 8; i++)
        check_row(rows, i, (i + 2) % 3);
    (void)close(file.fd);
}

static void groups_are_copied_as_they_are(void **state)
{
    (void)state;
    struct memory old = memory_new(), file = memory_new();
    write_groups(old.fd, 2);
    TD_AUTO(td_dataset_table) *from = NULL;
    assert_int_equal(td_dataset_table_open(old.path, &from, NULL), TD_OK);
    TD_AUTO(td_dataset_table_writer) *writer = create(file.fd);
    assert_int_equal(td_dataset_table_copy(writer, from, NULL), TD_OK);
    assert_int_equal(td_dataset_table_append(writer, columns, 3, NULL), TD_OK);
    assert_int_equal(td_dataset_table_finish(writer, NULL), TD_OK);
    TD_AUTO(td_dataset_rows) *rows = read_all(file.path, 0, 9);
    for (size_t i = 0; i < 9; i++)
        check_row(rows, i, i % 3);
    (void)close(old.fd);
    (void)close(file.fd);
}

static void groups_of_other_columns_are_not_copied(void **state)
{
    (void)state;
    struct memory old = memory_new(), file = memory_new();
    write_groups(old.fd, 1);
    TD_AUTO(td_dataset_table) *from = NULL;
    assert_int_equal(td_dataset_table_open(old.path, &from, NULL), TD_OK);
    TD_AUTO(td_dataset_table_writer) *writer = NULL;
    assert_int_equal(td_dataset_table_create(file.fd, fields, FIELDS - 1, NULL,
                                             0, &writer, NULL),
                     TD_OK);
    td_errinfo info = {""};
    assert_int_equal(td_dataset_table_copy(writer, from, &info),
                     TD_ERR_MISMATCH);
    (void)close(old.fd);
    (void)close(file.fd);
}

static const struct {
    const char *name;
    td_dataset_column column;
    td_dataset_field field;
} mismatches[] = {
    {"another type",
     {TD_DATASET_F32, 3, states, NULL},
     {"x", TD_DATASET_I64, 1, 0, false}},
    {"too few values",
     {TD_DATASET_F32, 8, states, NULL},
     {"x", TD_DATASET_F32, 3, 1, true}},
    {"a row of a fixed list that is short",
     {TD_DATASET_F32, 3, states, word_ends},
     {"x", TD_DATASET_F32, 1, 1, true}},
    {"no ends where the number is free",
     {TD_DATASET_TEXT, 3, words, NULL},
     {"x", TD_DATASET_TEXT, 0, 1, false}},
    {"ends that do not reach the end",
     {TD_DATASET_F64, 3, means, mean_ends},
     {"x", TD_DATASET_F64, 0, 1, false}},
};

static void columns_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < TD_COUNT_OF(mismatches); i++) {
        struct memory file = memory_new();
        TD_AUTO(td_dataset_table_writer) *writer = NULL;
        assert_int_equal(td_dataset_table_create(file.fd, &mismatches[i].field,
                                                 1, NULL, 0, &writer, NULL),
                         TD_OK);
        td_errinfo info = {""};
        td_err err =
            td_dataset_table_append(writer, &mismatches[i].column, 3, &info);
        if (err != TD_ERR_INVALID)
            fail_msg("%s: %s", mismatches[i].name, td_err_name(err));
        (void)close(file.fd);
    }
}

static void missing_columns_and_rows_are_said(void **state)
{
    (void)state;
    struct memory file = memory_new();
    write_groups(file.fd, 1);
    TD_AUTO(td_dataset_table) *table = NULL;
    td_dataset_rows *rows = NULL;
    td_errinfo info = {""};
    const char *absent = "absent";
    assert_int_equal(td_dataset_table_open(file.path, &table, NULL), TD_OK);
    assert_int_equal(td_dataset_table_rows(table), 3);
    assert_int_equal(
        td_dataset_table_read(table, 0, 1, &absent, 1, &rows, &info),
        TD_ERR_NOTFOUND);
    assert_non_null(strstr(info.text, "absent"));
    assert_int_equal(td_dataset_table_read(table, 1, 3, names, 1, &rows, &info),
                     TD_ERR_INVALID);
    assert_int_equal(
        td_dataset_table_read(table, UINT64_MAX, 1, names, 1, &rows, &info),
        TD_ERR_INVALID);
    (void)close(file.fd);
}

static void what_is_no_file_is_refused(void **state)
{
    (void)state;
    td_dataset_table *table = NULL;
    td_errinfo info = {""};
    assert_int_equal(td_dataset_table_open("/nonexistent", &table, &info),
                     TD_ERR_NOTFOUND);
    assert_int_equal(td_dataset_table_open("/tmp", &table, &info), TD_ERR_IO);
    assert_int_equal(td_dataset_table_open("/dev/zero", &table, &info),
                     TD_ERR_IO);
}

static void a_writer_without_a_finish_leaves_no_table(void **state)
{
    (void)state;
    struct memory file = memory_new();
    td_dataset_table_writer *writer = create(file.fd);
    assert_int_equal(td_dataset_table_append(writer, columns, 3, NULL), TD_OK);
    td_dataset_table_writer_free(writer);
    td_dataset_table *table = NULL;
    td_errinfo info = {""};
    assert_int_equal(td_dataset_table_open(file.path, &table, &info),
                     TD_ERR_FORMAT);
    (void)close(file.fd);
}

static void a_full_disk_is_said(void **state)
{
    (void)state;
    int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
    TD_AUTO(td_dataset_table_writer) *writer = create(fd);
    td_errinfo info = {""};
    td_err err = td_dataset_table_append(writer, columns, 3, &info);
    if (err == TD_OK) err = td_dataset_table_finish(writer, &info);
    assert_int_equal(err, TD_ERR_FULL);
    (void)close(fd);
}

// Whatever is read, or why not, nothing falls over.
static void read_what_is_there(const char *path)
{
    TD_AUTO(td_dataset_table) *table = NULL;
    td_errinfo info = {""};
    if (td_dataset_table_open(path, &table, &info) != TD_OK) {
        assert_true(info.text[0] != '\0');
        return;
    }
    uint64_t rows = td_dataset_table_rows(table);
    if (rows == 0 || rows > 64) return;
    for (size_t i = 0; i < td_dataset_table_columns(table); i++) {
        const char *name = td_dataset_table_name(table, i);
        TD_AUTO(td_dataset_rows) *read = NULL;
        (void)!td_dataset_table_read(table, 0, (size_t)rows, &name, 1, &read,
                                     &info);
    }
}

static size_t load(int fd, uint8_t **ret_bytes)
{
    off_t size = lseek(fd, 0, SEEK_END);
    uint8_t *bytes = malloc((size_t)size);
    assert_non_null(bytes);
    assert_int_equal(pread(fd, bytes, (size_t)size, 0), size);
    *ret_bytes = bytes;
    return (size_t)size;
}

static void a_file_cut_anywhere_is_refused(void **state)
{
    (void)state;
    struct memory file = memory_new(), cut = memory_new();
    write_groups(file.fd, 1);
    uint8_t *bytes = NULL;
    size_t size = load(file.fd, &bytes);
    for (size_t length = 0; length < size; length++) {
        td_dataset_table *table = NULL;
        assert_int_equal(ftruncate(cut.fd, 0), 0);
        assert_int_equal(pwrite(cut.fd, bytes, length, 0), length);
        td_errinfo info = {""};
        assert_int_equal(td_dataset_table_open(cut.path, &table, &info),
                         TD_ERR_FORMAT);
    }
    free(bytes);
    (void)close(file.fd);
    (void)close(cut.fd);
}

// Some make the parquet crate panic: an error as any other, and no word of
// Rust's beside it.
static void a_byte_changed_anywhere_does_no_harm(void **state)
{
    (void)state;
    struct memory file = memory_new(), bad = memory_new(), said = memory_new();
    write_groups(file.fd, 1);
    uint8_t *bytes = NULL;
    size_t size = load(file.fd, &bytes);
    assert_int_equal(unsetenv("RUST_BACKTRACE"), 0);
    int terminal = dup(STDERR_FILENO);
    assert_int_equal(dup2(said.fd, STDERR_FILENO), STDERR_FILENO);
    for (size_t i = 0; i < size; i++) {
        const uint8_t was = bytes[i];
        bytes[i] = i % 2 ? 0xff : (uint8_t)(was ^ 1u << i % 8);
        assert_int_equal(pwrite(bad.fd, bytes, size, 0), size);
        read_what_is_there(bad.path);
        bytes[i] = was;
    }
    assert_int_equal(dup2(terminal, STDERR_FILENO), STDERR_FILENO);
    const tdr_parquet_ops *ops = NULL;
    assert_int_equal(td_dataset_parquet_load(&ops, NULL), TD_OK);
    assert_true(ops->panics() > 0);
    assert_int_equal(lseek(said.fd, 0, SEEK_END), 0);
    free(bytes);
    (void)close(terminal);
    (void)close(file.fd);
    (void)close(bad.fd);
    (void)close(said.fd);
}

// A schema of one group in another, many deep: 0x12 begins FileMetaData's
// second field, a list of SchemaElements.
static void a_schema_that_is_too_deep_is_refused(void **state)
{
    (void)state;
    enum { DEEP = 20000 };
    struct memory file = memory_new();
    static uint8_t bytes[16 + 8 * DEEP];
    size_t size = 0;
    const uint8_t head[] = {'P', 'A', 'R', '1', 0x15, 2, 0x19, 0xfc};
    memcpy(bytes, head, sizeof head);
    size = sizeof head;
    for (uint32_t left = DEEP;; left >>= 7) {
        bytes[size++] = (uint8_t)((left & 0x7f) | (left > 0x7f ? 0x80 : 0));
        if (left <= 0x7f) break;
    }
    for (int i = 0; i < DEEP; i++) {
        const uint8_t element[] = {0x48, 1, 'a', 0x15, 2, 0};
        memcpy(bytes + size, element, sizeof element);
        size += sizeof element;
    }
    bytes[size++] = 0;
    uint32_t footer = (uint32_t)size - 4;
    memcpy(bytes + size, &footer, 4);
    memcpy(bytes + size + 4, "PAR1", 4);
    size += 8;
    assert_int_equal(pwrite(file.fd, bytes, size, 0), size);
    td_dataset_table *table = NULL;
    td_errinfo info = {""};
    assert_int_equal(td_dataset_table_open(file.path, &table, &info),
                     TD_ERR_LIMIT);
    assert_non_null(strstr(info.text, "nested"));
    (void)close(file.fd);
}

// The header of a dictionary page, as the first column's chunk begins: what it
// unpacks to, its size on the disk, and its values.
static const struct {
    const char *name;
    uint8_t header[20];
    const char *says;
} pages[] = {
    {"unpacks to 2 GB",
     {0x15, 4, 0x15, 0xfe, 0xff, 0xff, 0xff, 0x0f, 0x15, 8, 0x4c, 0x15, 2, 0x15,
      0, 0, 0},
     "a page of 2147483647 bytes"},
    {"has 2^30 values",
     {0x15, 4, 0x15, 8, 0x15, 8, 0x4c, 0x15, 0x80, 0x80, 0x80, 0x80, 8, 0x15, 0,
      0, 0},
     "values"},
    {"is of fewer than no bytes",
     {0x15, 4, 0x15, 8, 0x15, 1, 0x4c, 0x15, 2, 0x15, 0, 0, 0},
     "fewer than no"},
    {"reaches beyond its column",
     {0x15, 4, 0x15, 8, 0x15, 0x80, 0x80, 1, 0x4c, 0x15, 2, 0x15, 0, 0, 0},
     "beyond its column"},
};

static void a_page_that_asks_for_too_much_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < TD_COUNT_OF(pages); i++) {
        struct memory file = memory_new();
        write_groups(file.fd, 1);
        assert_int_equal(
            pwrite(file.fd, pages[i].header, sizeof pages[i].header, 4),
            sizeof pages[i].header);
        TD_AUTO(td_dataset_table) *table = NULL;
        td_dataset_rows *rows = NULL;
        td_errinfo info = {""};
        assert_int_equal(td_dataset_table_open(file.path, &table, NULL), TD_OK);
        td_err err = td_dataset_table_read(table, 0, 3, names, 1, &rows, &info);
        if (err == TD_OK || !strstr(info.text, pages[i].says))
            fail_msg("%s: %s (%s)", pages[i].name, td_err_name(err), info.text);
        (void)close(file.fd);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_written_is_read),
        cmocka_unit_test(rows_are_read_across_groups),
        cmocka_unit_test(groups_are_copied_as_they_are),
        cmocka_unit_test(groups_of_other_columns_are_not_copied),
        cmocka_unit_test(columns_that_do_not_fit_are_refused),
        cmocka_unit_test(missing_columns_and_rows_are_said),
        cmocka_unit_test(what_is_no_file_is_refused),
        cmocka_unit_test(a_writer_without_a_finish_leaves_no_table),
        cmocka_unit_test(a_full_disk_is_said),
        cmocka_unit_test(a_file_cut_anywhere_is_refused),
        cmocka_unit_test(a_byte_changed_anywhere_does_no_harm),
        cmocka_unit_test(a_schema_that_is_too_deep_is_refused),
        cmocka_unit_test(a_page_that_asks_for_too_much_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
