// SPDX-License-Identifier: Apache-2.0
#include "dataset/table/parquet.h"

#include "base/library_fixture.h"
#include "dataset/table/table.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define VARIABLE "TENDON_FORMATS_LIBRARY"

// What stands in the way of the first load.
static void missing_library_says_what_to_do(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        const char *given; // in the environment
        td_err err;
        const char *words;
    } cases[] = {
        {"none", "/nowhere/formats.so", TD_ERR_UNSUPPORTED,
         "build it with `make all`, put it beside the program, or name it in"},
        {"not a library", "/etc/passwd", TD_ERR_UNSUPPORTED, "build it again"},
        {"another one", TD_OTHER_LIBRARY, TD_ERR_VERSION, "another release"},
    };
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        td_errinfo info = {""};
        assert_int_equal(setenv(VARIABLE, cases[i].given, 1), 0);
        td_err err = td_dataset_table_load(&info);
        if (err != cases[i].err || !strstr(info.text, cases[i].words) ||
            !strstr(info.text, "no datasets without libtendon_formats.so: "))
            fail_msg("%s: %s, \"%s\"", cases[i].name, td_err_name(err),
                     info.text);
    }
    assert_int_equal(unsetenv(VARIABLE), 0);
}

static void nothing_opens_without_it(void **state)
{
    (void)state;
    td_dataset_table *table = NULL;
    td_dataset_table_writer *writer = NULL;
    const td_dataset_field field = {
        .name = "x", .type = TD_DATASET_I64, .width = 1};
    assert_int_equal(setenv(VARIABLE, "/nowhere/formats.so", 1), 0);
    assert_int_equal(td_dataset_table_open("/etc/passwd", &table, NULL),
                     TD_ERR_UNSUPPORTED);
    assert_int_equal(td_dataset_table_create(STDOUT_FILENO, &field, 1, NULL, 0,
                                             &writer, NULL),
                     TD_ERR_UNSUPPORTED);
    assert_null(table);
    assert_null(writer);
    assert_int_equal(unsetenv(VARIABLE), 0);
}

static void threads_that_come_at_once_share_one_load(void **state)
{
    (void)state;
    assert_threads_load(td_dataset_table_load);
}

static void library_has_this_version_and_size_only(void **state)
{
    (void)state;
    static const struct {
        const char *entry;
        size_t bytes;
    } cases[] = {
        {"tdr_parquet_library", sizeof(tdr_parquet_ops)},
        {"tdr_tokenizer_library", sizeof(tdr_tokenizer_ops)},
    };
    void *library = dlopen(TD_FORMATS_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!library) fail_msg("%s", dlerror());
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        __typeof__(&tdr_parquet_library) entry =
            (__typeof__(entry))dlsym(library, cases[i].entry);
        assert_non_null(entry);
        assert_non_null(entry(TDR_FORMATS_VERSION, cases[i].bytes));
        assert_null(entry(TDR_FORMATS_VERSION + 1, cases[i].bytes));
        assert_null(entry(TDR_FORMATS_VERSION, cases[i].bytes + 8));
    }
}

static int set_up(void **state)
{
    (void)state;
    return unsetenv(VARIABLE);
}

// In this order: once loaded, it stays.
int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(missing_library_says_what_to_do),
        cmocka_unit_test(nothing_opens_without_it),
        cmocka_unit_test(threads_that_come_at_once_share_one_load),
        cmocka_unit_test(library_has_this_version_and_size_only),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
