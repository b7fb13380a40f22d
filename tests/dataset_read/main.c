// SPDX-License-Identifier: Apache-2.0
// dataset_read FOLDER OUT: every row of a dataset, a line of JSON each; the
// pictures of row R go to OUT/KEY-R.rgb.
#include "dataset/read/reader.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static json_t *value_of(td_dataset_type type, const void *values, size_t i)
{
    const td_slice *texts = values;
    switch (type) {
    case TD_DATASET_BOOL:
        return json_boolean(((const uint8_t *)values)[i]);
    case TD_DATASET_I64:
        return json_integer(((const int64_t *)values)[i]);
    case TD_DATASET_F32:
        return json_real((double)((const float *)values)[i]);
    case TD_DATASET_F64:
        return json_real(((const double *)values)[i]);
    case TD_DATASET_TEXT:
        return json_stringn(texts[i].data, texts[i].size);
    default:
        return json_null();
    }
}

static td_err add_values(td_dataset_reader *reader, const char *key,
                         json_t *line)
{
    td_dataset_type type;
    const void *values;
    size_t count;
    TD_TRY(td_dataset_reader_values(reader, key, &type, &values, &count));
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(list, value_of(type, values, i));
    json_object_set_new(line, key, list);
    return TD_OK;
}

static td_err save_picture(td_dataset_reader *reader,
                           const td_dataset_feature *feature, const char *out,
                           uint64_t row, td_errinfo *info)
{
    uint32_t height, width;
    TD_TRY(td_dataset_feature_picture(feature, &height, &width));
    size_t size = (size_t)height * width * 3;
    uint8_t *rgb = malloc(size);
    if (!rgb) return TD_ERR_NOMEM;
    td_err err = td_dataset_reader_picture(reader, feature->key, rgb, info);
    char path[4096];
    (void)snprintf(path, sizeof path, "%s/%s-%" PRIu64 ".rgb", out,
                   feature->key, row);
    FILE *file = err == TD_OK ? fopen(path, "wbe") : NULL;
    if (err == TD_OK && (!file || fwrite(rgb, 1, size, file) != size))
        err = td_fail(info, TD_ERR_IO, "%s: cannot be written", path);
    if (file) (void)fclose(file);
    free(rgb);
    return err;
}

static td_err print_row(td_dataset_reader *reader, uint64_t row,
                        const char *out, td_errinfo *info)
{
    const td_dataset_info *dataset = td_dataset_reader_info(reader);
    td_dataset_reading reading;
    TD_TRY(td_dataset_reader_seek(reader, row, &reading, info));
    json_t *line = json_object();
    td_err err = TD_OK;
    for (size_t i = 0; err == TD_OK && i < dataset->feature_count; i++) {
        const td_dataset_feature *feature = &dataset->features[i];
        err = td_dataset_feature_is_picture(feature)
                  ? save_picture(reader, feature, out, row, info)
                  : add_values(reader, feature->key, line);
    }
    json_object_set_new(line, "task", json_string(reading.task));
    if (err == TD_OK && json_dumpf(line, stdout, 0) == 0) (void)puts("");
    json_decref(line);
    return err;
}

static td_err run(const char *folder, const char *out, td_errinfo *info)
{
    TD_AUTO(td_dataset_reader) *reader = NULL;
    TD_TRY(td_dataset_reader_open(folder, &reader, info));
    uint64_t rows = td_dataset_reader_info(reader)->total_frames;
    for (uint64_t row = 0; row < rows; row++)
        TD_TRY(print_row(reader, row, out, info));
    return TD_OK;
}

int main(int argc, char **argv)
{
    td_errinfo info = {""};
    if (argc != 3) return 2;
    td_err err = run(argv[1], argv[2], &info);
    if (err == TD_OK) return 0;
    (void)fprintf(stderr, "%s: %s\n", td_err_name(err), info.text);
    return 1;
}
