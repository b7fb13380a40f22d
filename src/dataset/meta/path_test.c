// SPDX-License-Identifier: Apache-2.0
#include "dataset/meta/path.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void fields_are_filled_in(void **state)
{
    (void)state;
    char path[TD_DATASET_MAX_PATH];
    assert_int_equal(
        td_dataset_path_fill(
            "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index}.mp4",
            "observation.images.top", 7, 1234, path, NULL),
        TD_OK);
    assert_string_equal(
        path, "videos/observation.images.top/chunk-007/file-1234.mp4");
}

static const struct {
    const char *name;
    const char *pattern;
    const char *key;
    td_err err;
} refusals[] = {
    {"a root", "/etc/{file_index}", NULL, TD_ERR_FORMAT},
    {"the folder above", "../{file_index}", NULL, TD_ERR_FORMAT},
    {"the folder above, inside", "data/../../{file_index}", NULL,
     TD_ERR_FORMAT},
    {"the folder itself", "data/./{file_index}", NULL, TD_ERR_FORMAT},
    {"the folder above, at the end", "data/..", NULL, TD_ERR_FORMAT},
    {"an empty part", "data//{file_index}", NULL, TD_ERR_FORMAT},
    {"nothing", "", NULL, TD_ERR_FORMAT},
    {"a folder", "data/", NULL, TD_ERR_FORMAT},
    {"a key that climbs", "v/{video_key}/f", "../..", TD_ERR_FORMAT},
    {"a key that is a root", "{video_key}/f", "/etc", TD_ERR_FORMAT},
    {"no key", "v/{video_key}/f", NULL, TD_ERR_FORMAT},
    {"an unknown field", "data/{episode_index}", NULL, TD_ERR_FORMAT},
    {"another format", "data/{file_index:4096d}", NULL, TD_ERR_FORMAT},
    {"an open field", "data/{file_index", NULL, TD_ERR_FORMAT},
    {"a closing brace", "data/}", NULL, TD_ERR_FORMAT},
};

static void paths_out_of_the_folder_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < TD_COUNT_OF(refusals); i++) {
        char path[TD_DATASET_MAX_PATH] = "untouched";
        td_errinfo info = {""};
        td_err err = td_dataset_path_fill(refusals[i].pattern, refusals[i].key,
                                          0, 0, path, &info);
        if (err != refusals[i].err || info.text[0] == '\0' ||
            strcmp(path, "untouched") != 0)
            fail_msg("%s: %s, %s", refusals[i].name, td_err_name(err), path);
    }
}

static void dots_inside_a_name_are_fine(void **state)
{
    (void)state;
    assert_true(td_dataset_path_is_inside("..a/b..c/..."));
    assert_true(td_dataset_path_is_inside("a"));
    assert_false(td_dataset_path_is_inside("a/.."));
    assert_false(td_dataset_path_is_inside("."));
}

static void a_long_path_is_refused(void **state)
{
    (void)state;
    char key[2 * TD_DATASET_MAX_PATH];
    memset(key, 'k', sizeof key - 1);
    key[sizeof key - 1] = '\0';
    char path[TD_DATASET_MAX_PATH];
    td_errinfo info;
    assert_int_equal(
        td_dataset_path_fill("v/{video_key}", key, 0, 0, path, &info),
        TD_ERR_LIMIT);
    assert_int_equal(td_dataset_path_fill(key, NULL, 0, 0, path, &info),
                     TD_ERR_LIMIT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_are_filled_in),
        cmocka_unit_test(paths_out_of_the_folder_are_refused),
        cmocka_unit_test(dots_inside_a_name_are_fine),
        cmocka_unit_test(a_long_path_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
