// SPDX-License-Identifier: Apache-2.0
#include "dataset/read/csv.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[] = "/tmp/td-csv-XXXXXX";
static char path[64];

static int setup(void **state)
{
    (void)state;
    strcpy(folder + strlen(folder) - 6, "XXXXXX");
    assert_non_null(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/a.csv", folder);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(folder);
}

static void check_file(const char *expected)
{
    char text[512] = "";
    FILE *in = fopen(path, "rbe");
    assert_non_null(in);
    size_t size = fread(text, 1, sizeof text - 1, in);
    (void)fclose(in);
    assert_int_equal(size, strlen(expected));
    assert_string_equal(text, expected);
}

static void cells_are_quoted_where_they_must_be(void **state)
{
    (void)state;
    static const char *const texts[] = {"plain", "", "a, b", "say \"no\"",
                                        "two\nlines"};
    td_dataset_csv csv;
    assert_int_equal(td_dataset_csv_open(path, &csv, NULL), TD_OK);
    for (size_t i = 0; i < TD_COUNT_OF(texts); i++)
        td_dataset_csv_text(&csv, (td_slice){texts[i], strlen(texts[i])});
    td_dataset_csv_end_line(&csv);
    td_dataset_csv_whole(&csv, -7);
    td_dataset_csv_end_line(&csv);
    assert_int_equal(td_dataset_csv_close(&csv, path, NULL), TD_OK);
    check_file("plain,,\"a, b\",\"say \"\"no\"\"\",\"two\nlines\"\r\n-7\r\n");
}

static void a_number_is_the_same_when_it_is_read_again(void **state)
{
    (void)state;
    const float single = 0.1f;
    const double exact = 1.0 / 3;
    const uint8_t yes = 1;
    const int64_t whole = INT64_MIN;
    td_dataset_csv csv;
    assert_int_equal(td_dataset_csv_open(path, &csv, NULL), TD_OK);
    td_dataset_csv_value(&csv, TD_DATASET_F32, &single, 0);
    td_dataset_csv_value(&csv, TD_DATASET_F64, &exact, 0);
    td_dataset_csv_value(&csv, TD_DATASET_BOOL, &yes, 0);
    td_dataset_csv_value(&csv, TD_DATASET_I64, &whole, 0);
    td_dataset_csv_end_line(&csv);
    assert_int_equal(td_dataset_csv_close(&csv, path, NULL), TD_OK);
    check_file("0.100000001,0.33333333333333331,1,-9223372036854775808\r\n");
}

static void a_file_that_is_there_is_not_written_over(void **state)
{
    (void)state;
    td_dataset_csv csv;
    td_errinfo info = {""};
    assert_int_equal(td_dataset_csv_open(path, &csv, NULL), TD_OK);
    assert_int_equal(td_dataset_csv_close(&csv, path, NULL), TD_OK);
    assert_int_not_equal(td_dataset_csv_open(path, &csv, &info), TD_OK);
    assert_non_null(strstr(info.text, path));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(cells_are_quoted_where_they_must_be,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(
            a_number_is_the_same_when_it_is_read_again, setup, teardown),
        cmocka_unit_test_setup_teardown(
            a_file_that_is_there_is_not_written_over, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
