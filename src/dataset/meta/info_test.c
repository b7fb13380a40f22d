// SPDX-License-Identifier: Apache-2.0
#include "dataset/meta/info.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define PATHS                                                                  \
    "\"data_path\": \"data/{chunk_index:03d}/{file_index:03d}.parquet\", "     \
    "\"video_path\": \"videos/{video_key}/{chunk_index}/{file_index}.mp4\""
#define NUMBERS                                                                \
    "\"fps\": 30, \"total_episodes\": 2, \"total_frames\": 5, "                \
    "\"total_tasks\": 1, \"chunks_size\": 1000, "                              \
    "\"data_files_size_in_mb\": 100, \"video_files_size_in_mb\": 200"
#define VERSION "\"codebase_version\": \"v3.0\""
#define FEATURES(features) "\"features\": {" features "}"
#define FILE_OF(features)                                                      \
    "{" VERSION ", " NUMBERS ", " PATHS ", " FEATURES(features) "}"

static td_err parse(const char *text, td_dataset_info **ret_dataset,
                    td_errinfo *info)
{
    return td_dataset_info_parse((td_slice){text, strlen(text)}, ret_dataset,
                                 info);
}

static td_dataset_info *make(void)
{
    td_dataset_info *dataset = NULL;
    const uint32_t six = 6, one = 1, size[] = {480, 640, 3};
    const char *const joints[] = {"a", "b", "c", "d", "e", "f"};
    const char *const sides[] = {"height", "width", "channels"};
    assert_int_equal(td_dataset_info_new(30, "so100", &dataset, NULL), TD_OK);
    assert_int_equal(td_dataset_info_add(dataset, "observation.state",
                                         TD_DATASET_DTYPE_F32, &six, 1, joints,
                                         NULL),
                     TD_OK);
    assert_int_equal(td_dataset_info_add(dataset, "observation.images.top",
                                         TD_DATASET_DTYPE_VIDEO, size, 3, sides,
                                         NULL),
                     TD_OK);
    assert_int_equal(td_dataset_info_add(dataset, "tendon.held",
                                         TD_DATASET_DTYPE_BOOL, &one, 1, NULL,
                                         NULL),
                     TD_OK);
    assert_int_equal(td_dataset_info_add_defaults(dataset, NULL), TD_OK);
    assert_int_equal(td_dataset_info_set_video(
                         dataset, "observation.images.top", "av1", NULL),
                     TD_OK);
    return dataset;
}

static void what_was_made_is_read_again(void **state)
{
    (void)state;
    TD_AUTO(td_dataset_info) *made = make();
    made->total_episodes = 3;
    made->total_frames = 70;
    made->total_tasks = 2;
    made->data_file_mb = 1;
    char *text = NULL;
    assert_int_equal(td_dataset_info_text(made, &text), TD_OK);
    assert_non_null(strstr(text, "\"train\": \"0:3\""));
    TD_AUTO(td_dataset_info) *read = NULL;
    assert_int_equal(parse(text, &read, NULL), TD_OK);
    free(text);
    assert_int_equal(read->fps, 30);
    assert_string_equal(read->robot_type, "so100");
    assert_int_equal(read->total_episodes, 3);
    assert_int_equal(read->total_frames, 70);
    assert_int_equal(read->total_tasks, 2);
    assert_int_equal(read->data_file_mb, 1);
    assert_int_equal(read->video_file_mb, 200);
    assert_int_equal(read->feature_count, made->feature_count);
    for (size_t i = 0; i < read->feature_count; i++) {
        assert_string_equal(read->features[i].key, made->features[i].key);
        assert_int_equal(read->features[i].dtype, made->features[i].dtype);
        assert_int_equal(read->features[i].name_count,
                         made->features[i].name_count);
    }
    assert_string_equal(read->features[0].names[5], "f");
    assert_string_equal(read->features[1].codec, "av1");
    uint32_t height = 0, width = 0;
    assert_int_equal(
        td_dataset_feature_picture(&read->features[1], &height, &width), TD_OK);
    assert_int_equal(height, 480);
    assert_int_equal(width, 640);
}

static void what_is_not_ours_is_kept(void **state)
{
    (void)state;
    TD_AUTO(td_dataset_info) *read = NULL;
    assert_int_equal(
        parse("{" VERSION ", " NUMBERS ", " PATHS
              ", \"tools\": [{\"name\": \"say\"}], \"splits\": {\"train\": "
              "\"0:2\"}, " FEATURES(
                  "\"action\": {\"dtype\": \"float32\", \"shape\": [2], "
                  "\"names\": {\"motors\": [\"a\", \"b\"]}, \"unit\": "
                  "\"rad\"}") "}",
              &read, NULL),
        TD_OK);
    assert_int_equal(read->features[0].name_count, 2);
    assert_string_equal(read->features[0].names[1], "b");
    char *text = NULL;
    assert_int_equal(td_dataset_info_text(read, &text), TD_OK);
    assert_non_null(strstr(text, "\"say\""));
    assert_non_null(strstr(text, "\"motors\""));
    assert_non_null(strstr(text, "\"unit\": \"rad\""));
    free(text);
}

static void columns_of_a_data_file_leave_videos_out(void **state)
{
    (void)state;
    TD_AUTO(td_dataset_info) *dataset = make();
    td_dataset_field *fields = NULL;
    size_t count = 0;
    assert_int_equal(td_dataset_info_fields(dataset, &fields, &count, NULL),
                     TD_OK);
    assert_int_equal(count, 7);
    assert_string_equal(fields[0].name, "observation.state");
    assert_true(fields[0].fixed && fields[0].width == 6);
    assert_string_equal(fields[1].name, "tendon.held");
    assert_true(!fields[1].fixed && fields[1].depth == 0);
    assert_string_equal(fields[6].name, "task_index");
    free(fields);
    char *note = NULL;
    assert_int_equal(td_dataset_info_note(dataset, &note), TD_OK);
    assert_non_null(strstr(
        note, "\"observation.state\": {\"feature\": {\"dtype\": \"float32\", "
              "\"_type\": \"Value\"}, \"length\": 6, \"_type\": \"List\"}"));
    assert_null(strstr(note, "images"));
    free(note);
}

static void pictures_may_have_their_channels_first(void **state)
{
    (void)state;
    TD_AUTO(td_dataset_info) *read = NULL;
    assert_int_equal(parse(FILE_OF("\"top\": {\"dtype\": \"image\", \"shape\": "
                                   "[3, 48, 64], \"names\": [\"channels\", "
                                   "\"height\", \"width\"]}"),
                           &read, NULL),
                     TD_OK);
    uint32_t height = 0, width = 0;
    assert_int_equal(
        td_dataset_feature_picture(&read->features[0], &height, &width), TD_OK);
    assert_int_equal(height, 48);
    assert_int_equal(width, 64);
}

static const struct {
    const char *name;
    const char *text;
    td_err err;
} refusals[] = {
    {"nothing", "", TD_ERR_FORMAT},
    {"a list", "[]", TD_ERR_FORMAT},
    {"cut short", "{\"fps\": 3", TD_ERR_FORMAT},
    {"no members", "{}", TD_ERR_FORMAT},
    {"an older version", "{\"codebase_version\": \"v2.1\"}",
     TD_ERR_UNSUPPORTED},
    {"0 fps", "{" VERSION ", \"fps\": 0}", TD_ERR_LIMIT},
    {"half a frame", "{" VERSION ", \"fps\": 0.5}", TD_ERR_FORMAT},
    {"fps as text", "{" VERSION ", \"fps\": \"30\"}", TD_ERR_FORMAT},
    {"no features", "{" VERSION ", " NUMBERS ", " PATHS "}", TD_ERR_FORMAT},
    {"a feature that is a number", FILE_OF("\"a\": 1"), TD_ERR_FORMAT},
    {"a feature without a name",
     FILE_OF("\"\": {\"dtype\": \"bool\", \"shape\": [1]}"), TD_ERR_LIMIT},
    {"an unknown dtype",
     FILE_OF("\"a\": {\"dtype\": \"complex64\", \"shape\": [1]}"),
     TD_ERR_UNSUPPORTED},
    {"no shape", FILE_OF("\"a\": {\"dtype\": \"bool\"}"), TD_ERR_FORMAT},
    {"a side of nothing",
     FILE_OF("\"a\": {\"dtype\": \"bool\", \"shape\": [0]}"), TD_ERR_LIMIT},
    {"a huge row",
     FILE_OF("\"a\": {\"dtype\": \"bool\", \"shape\": [65536, 65536]}"),
     TD_ERR_LIMIT},
    {"six dimensions",
     FILE_OF("\"a\": {\"dtype\": \"bool\", \"shape\": [1, 1, 1, 1, 1, 1]}"),
     TD_ERR_FORMAT},
    {"a flat picture",
     FILE_OF("\"a\": {\"dtype\": \"video\", \"shape\": [480, 640]}"),
     TD_ERR_FORMAT},
    {"a video whose key climbs",
     FILE_OF("\"../../x\": {\"dtype\": \"video\", \"shape\": [48, 64, 3]}"),
     TD_ERR_FORMAT},
    {"data outside",
     "{" VERSION ", " NUMBERS
     ", \"data_path\": \"../{chunk_index}/{file_index}\", " FEATURES("") "}",
     TD_ERR_FORMAT},
    {"videos without a path",
     "{" VERSION ", " NUMBERS
     ", \"data_path\": \"d/{chunk_index}/{file_index}\", " FEATURES(
         "\"a\": {\"dtype\": \"video\", \"shape\": [48, 64, 3]}") "}",
     TD_ERR_FORMAT},
};

static void what_is_no_dataset_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < TD_COUNT_OF(refusals); i++) {
        td_dataset_info *read = NULL;
        td_errinfo info = {""};
        td_err err = parse(refusals[i].text, &read, &info);
        if (err != refusals[i].err || read || info.text[0] == '\0')
            fail_msg("%s: %s (%s)", refusals[i].name, td_err_name(err),
                     info.text);
    }
}

static void a_file_of_two_gigabytes_is_refused_unread(void **state)
{
    (void)state;
    char folder[] = "/tmp/td-info-XXXXXX", meta[64], path[96];
    assert_non_null(mkdtemp(folder));
    (void)snprintf(meta, sizeof meta, "%s/meta", folder);
    (void)snprintf(path, sizeof path, "%s/info.json", meta);
    assert_int_equal(mkdir(meta, 0700), 0);
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_int_equal(ftruncate(fileno(file), (off_t)2 << 30), 0);
    assert_int_equal(fclose(file), 0);
    td_dataset_info *read = NULL;
    td_errinfo info = {""};
    td_err err = td_dataset_info_read(folder, &read, &info);
    (void)unlink(path);
    td_err gone = td_dataset_info_read(folder, &read, &info);
    (void)rmdir(meta);
    (void)rmdir(folder);
    assert_int_equal(err, TD_ERR_LIMIT);
    assert_int_equal(gone, TD_ERR_NOTFOUND);
}

static void deep_json_is_refused(void **state)
{
    (void)state;
    enum { DEEP = 100000 };
    char *text = malloc(DEEP);
    assert_non_null(text);
    memset(text, '[', DEEP);
    td_dataset_info *read = NULL;
    td_errinfo info = {""};
    td_err err = td_dataset_info_parse((td_slice){text, DEEP}, &read, &info);
    free(text);
    assert_int_equal(err, TD_ERR_LIMIT);
}

static void a_feature_cannot_be_there_twice(void **state)
{
    (void)state;
    TD_AUTO(td_dataset_info) *dataset = make();
    const uint32_t one = 1;
    td_errinfo info = {""};
    assert_int_equal(td_dataset_info_add(dataset, "index", TD_DATASET_DTYPE_I64,
                                         &one, 1, NULL, &info),
                     TD_ERR_EXISTS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_made_is_read_again),
        cmocka_unit_test(what_is_not_ours_is_kept),
        cmocka_unit_test(columns_of_a_data_file_leave_videos_out),
        cmocka_unit_test(pictures_may_have_their_channels_first),
        cmocka_unit_test(what_is_no_dataset_is_refused),
        cmocka_unit_test(a_file_of_two_gigabytes_is_refused_unread),
        cmocka_unit_test(deep_json_is_refused),
        cmocka_unit_test(a_feature_cannot_be_there_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
