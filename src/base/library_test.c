// SPDX-License-Identifier: Apache-2.0
#include "base/library.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define VARIABLE "TENDON_TEST_LIBRARY"

// One that the build has beside its programs, and what is in it.
#define NAME "example_my_score.so"
#define SYMBOL "tendon_score_plugin"

static int forget(void **state)
{
    (void)state;
    return unsetenv(VARIABLE);
}

static void library_beside_the_program_is_found(void **state)
{
    (void)state;
    void *library = NULL;
    td_errinfo info = {""};
    if (td_library_open(NAME, VARIABLE, &library, &info) != TD_OK)
        fail_msg("%s", info.text);
    assert_non_null(dlsym(library, SYMBOL));
    assert_int_equal(dlclose(library), 0);
}

static void one_of_the_system_is_found(void **state)
{
    (void)state;
    void *library = NULL;
    assert_int_equal(td_library_open("libm.so.6", VARIABLE, &library, NULL),
                     TD_OK);
    assert_non_null(dlsym(library, "cos"));
    assert_int_equal(dlclose(library), 0);
}

static void missing_one_is_said_with_where_it_was_looked_for(void **state)
{
    (void)state;
    void *library = NULL;
    td_errinfo info = {""};
    assert_int_equal(
        td_library_open("libtendon_nothing.so", VARIABLE, &library, &info),
        TD_ERR_NOTFOUND);
    assert_null(library);
    assert_non_null(strstr(info.text, "it is not in " TD_BUILD_DIR ", "));
    assert_non_null(strstr(info.text, "where the system looks"));
}

static void variable_goes_first(void **state)
{
    (void)state;
    void *library = NULL;
    td_errinfo info = {""};
    assert_int_equal(setenv(VARIABLE, TD_BUILD_DIR "/" NAME, 1), 0);
    assert_int_equal(td_library_open("libm.so.6", VARIABLE, &library, NULL),
                     TD_OK);
    assert_non_null(dlsym(library, SYMBOL));
    assert_int_equal(dlclose(library), 0);
    assert_int_equal(setenv(VARIABLE, "/nowhere/lib.so", 1), 0);
    assert_int_equal(td_library_open(NAME, VARIABLE, &library, &info),
                     TD_ERR_NOTFOUND);
    assert_non_null(strstr(info.text, VARIABLE " names /nowhere/lib.so: "));
}

static void one_that_cannot_be_loaded_says_why(void **state)
{
    (void)state;
    char path[] = "/tmp/td-library-XXXXXX";
    void *library = NULL;
    td_errinfo info = {""};
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(setenv(VARIABLE, path, 1), 0);
    assert_int_equal(td_library_open(NAME, VARIABLE, &library, &info),
                     TD_ERR_IO);
    assert_null(library);
    assert_non_null(strstr(info.text, path));
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(library_beside_the_program_is_found),
        cmocka_unit_test(one_of_the_system_is_found),
        cmocka_unit_test(missing_one_is_said_with_where_it_was_looked_for),
        cmocka_unit_test_teardown(variable_goes_first, forget),
        cmocka_unit_test_teardown(one_that_cannot_be_loaded_says_why, forget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
