// SPDX-License-Identifier: Apache-2.0
#include "engine/native/checkpoint/hub.h"

#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#define REPOSITORY "/hub/models--robots--arm-1.0"

static char home[64];

static void make(const char *path, const char *text)
{
    char whole[512];
    (void)snprintf(whole, sizeof whole, "%s%s", home, path);
    for (char *at = whole + strlen(home) + 1; (at = strchr(at, '/')); at++) {
        *at = '\0';
        (void)mkdir(whole, 0700);
        *at = '/';
    }
    FILE *file = fopen(whole, "we");
    if (!file) abort();
    (void)fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static int open_home(void **state)
{
    (void)state;
    (void)snprintf(home, sizeof home, "/tmp/tendon-hub-XXXXXX");
    if (!mkdtemp(home)) return -1;
    (void)unsetenv("HF_HUB_CACHE");
    (void)unsetenv("HUGGINGFACE_HUB_CACHE");
    return setenv("HF_HOME", home, 1);
}

static int drop(const char *path, const struct stat *about, int kind,
                struct FTW *where)
{
    (void)about;
    (void)kind;
    (void)where;
    return remove(path);
}

static int close_home(void **state)
{
    (void)state;
    return nftw(home, drop, 8, FTW_DEPTH | FTW_PHYS);
}

static td_err find(const char *name, char *ret_path)
{
    td_errinfo info = {.text = ""};
    td_err err = td_native_hub_find(name, "tokenizer.json", ret_path, &info);
    if (err != TD_OK) assert_true(info.text[0] != '\0');
    return err;
}

static void main_is_what_it_was_last(void **state)
{
    (void)state;
    char path[TD_NATIVE_MAX_PATH];
    make(REPOSITORY "/snapshots/aaa/tokenizer.json", "old");
    make(REPOSITORY "/snapshots/bbb/tokenizer.json", "new");
    assert_int_equal(find("robots/arm-1.0", path), TD_ERR_NOTFOUND);
    make(REPOSITORY "/refs/main", "bbb\n");
    assert_int_equal(find("robots/arm-1.0", path), TD_OK);
    assert_non_null(strstr(path, REPOSITORY "/snapshots/bbb/tokenizer.json"));
    make(REPOSITORY "/refs/main", "ccc");
    assert_int_equal(find("robots/arm-1.0", path), TD_ERR_NOTFOUND);
}

static void an_only_revision_will_do(void **state)
{
    (void)state;
    char path[TD_NATIVE_MAX_PATH];
    make(REPOSITORY "/snapshots/aaa/tokenizer.json", "it");
    assert_int_equal(find("robots/arm-1.0", path), TD_OK);
    assert_non_null(strstr(path, "/snapshots/aaa/tokenizer.json"));
}

static void a_folder_is_looked_at_first(void **state)
{
    (void)state;
    char path[TD_NATIVE_MAX_PATH], folder[128];
    make("/mine/tokenizer.json", "it");
    (void)snprintf(folder, sizeof folder, "%s/mine", home);
    assert_int_equal(find(folder, path), TD_OK);
    assert_int_equal(strncmp(path, folder, strlen(folder)), 0);
    (void)snprintf(folder, sizeof folder, "%s/others", home);
    assert_int_equal(find(folder, path), TD_ERR_NOTFOUND);
}

static void no_name_leads_out_of_the_cache(void **state)
{
    (void)state;
    static const char *const bad[] = {"..",    "../..",  "a/../b", "a//b",
                                      "a/b/c", "a b/c",  "",       "a/",
                                      ".a/b",  "a/.b/c", "a%2e/b", "a\nb"};
    char path[TD_NATIVE_MAX_PATH];
    make("/hub/tokenizer.json", "not for you");
    for (size_t i = 0; i < TD_COUNT_OF(bad); i++)
        assert_int_equal(find(bad[i], path), TD_ERR_INVALID);
    make(REPOSITORY "/refs/main", "../../..");
    assert_int_equal(find("robots/arm-1.0", path), TD_ERR_NOTFOUND);
}

int main(void)
{
#define AT_HOME(test)                                                          \
    cmocka_unit_test_setup_teardown(test, open_home, close_home)
    const struct CMUnitTest tests[] = {
        AT_HOME(main_is_what_it_was_last),
        AT_HOME(an_only_revision_will_do),
        AT_HOME(a_folder_is_looked_at_first),
        AT_HOME(no_name_leads_out_of_the_cache),
    };
    return cmocka_run_group_tests_name("hub", tests, NULL, NULL);
}
