// SPDX-License-Identifier: Apache-2.0
#include "edge/session/boot.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define WALL_MS 1700000000000

static char folder[] = "/tmp/td-boot-XXXXXX";
static char path[128];

static int make_folder(void **state)
{
    (void)state;
    strcpy(strrchr(folder, '-'), "-XXXXXX");
    if (!mkdtemp(folder)) return -1;
    (void)snprintf(path, sizeof path, "%s/state/tendon/arm.boot", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    char command[sizeof folder + 16];
    (void)snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command); // NOLINT(cert-env33-c): a path of our own
}

static uint64_t boot_at(int64_t wall_ms)
{
    uint64_t boot = 0;
    td_errinfo info = {.text = ""};
    if (td_edge_boot_next(path, wall_ms, &boot, &info) != TD_OK)
        fail_msg("%s", info.text);
    return boot;
}

static void keep(const char *text)
{
    (void)boot_at(1); // makes the folders
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void a_boot_grows_with_each_start(void **state)
{
    (void)state;
    assert_int_equal(boot_at(WALL_MS), WALL_MS);
    assert_int_equal(boot_at(WALL_MS), WALL_MS + 1);
    assert_int_equal(boot_at(WALL_MS + 50), WALL_MS + 50);
}

static void a_clock_that_went_back_does_not_shrink_it(void **state)
{
    (void)state;
    assert_int_equal(boot_at(WALL_MS), WALL_MS);
    assert_int_equal(boot_at(1), WALL_MS + 1);
    assert_int_equal(boot_at(1), WALL_MS + 2);
}

static void a_damaged_file_is_replaced(void **state)
{
    static const struct {
        const char *name, *text;
    } cases[] = {
        {"empty", ""},
        {"words", "no number\n"},
        {"negative", "-5\n"},
        {"the last there is", "18446744073709551615\n"},
        {"beyond", "99999999999999999999999999\n"},
        {"cut off and grown over", "17000000\xff\xff"},
        {"two numbers", "1900000000000 1900000000000\n"},
    };
    (void)state;
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        print_message("%s\n", cases[i].name);
        keep(cases[i].text);
        assert_int_equal(boot_at(WALL_MS), WALL_MS);
        assert_int_equal(boot_at(WALL_MS), WALL_MS + 1);
    }
}

static void nothing_else_is_left_in_the_folder(void **state)
{
    (void)state;
    (void)boot_at(WALL_MS);
    *strrchr(path, '/') = 0;
    struct stat found;
    char fresh[sizeof path + 32];
    (void)snprintf(fresh, sizeof fresh, "%s/arm.boot.%ld", path,
                   (long)getpid());
    assert_int_not_equal(stat(fresh, &found), 0);
}

// A file where a folder should be stops root too.
static void an_unwritable_place_gives_a_number_and_the_reason(void **state)
{
    (void)state;
    uint64_t boot = 0;
    td_errinfo info = {.text = ""};
    (void)boot_at(WALL_MS);
    strcat(path, "/below");
    assert_int_equal(td_edge_boot_next(path, WALL_MS, &boot, &info), TD_ERR_IO);
    assert_int_equal(boot, WALL_MS);
    assert_non_null(strstr(info.text, "arm.boot/below"));
    assert_non_null(strstr(info.text, "Not a directory"));
}

static void a_path_that_is_too_long_gives_a_number_too(void **state)
{
    (void)state;
    static char endless[8192];
    uint64_t boot = 0;
    td_errinfo info = {.text = ""};
    memset(endless, 'a', sizeof endless - 1);
    assert_int_equal(td_edge_boot_next(endless, WALL_MS, &boot, &info),
                     TD_ERR_IO);
    assert_int_equal(boot, WALL_MS);
}

#define FOLDER_TEST(test)                                                      \
    cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        FOLDER_TEST(a_boot_grows_with_each_start),
        FOLDER_TEST(a_clock_that_went_back_does_not_shrink_it),
        FOLDER_TEST(a_damaged_file_is_replaced),
        FOLDER_TEST(nothing_else_is_left_in_the_folder),
        FOLDER_TEST(an_unwritable_place_gives_a_number_and_the_reason),
        FOLDER_TEST(a_path_that_is_too_long_gives_a_number_too),
    };
    return cmocka_run_group_tests_name("edge/boot", tests, NULL, NULL);
}
