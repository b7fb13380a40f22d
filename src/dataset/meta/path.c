// SPDX-License-Identifier: Apache-2.0
#include "dataset/meta/path.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

bool td_dataset_path_is_inside(const char *path)
{
    for (;;) {
        size_t size = strcspn(path, "/");
        if (size == 0 || (size <= 2 && strspn(path, ".") == size)) return false;
        if (path[size] == '\0') return true;
        path += size + 1;
    }
}

typedef struct filling {
    const char *video_key;
    uint32_t chunk;
    uint32_t file;
} filling;

// One field, from its '{' on: what it says, and its length; 0 when it is none.
static size_t fill_field(const char *field, const filling *with, char *ret_text,
                         size_t size)
{
    const struct {
        const char *text;
        const char *key; // or else the number
        uint32_t number;
        int digits;
    } fields[] = {
        {"{video_key}", with->video_key, 0, 0},
        {"{chunk_index}", NULL, with->chunk, 1},
        {"{chunk_index:03d}", NULL, with->chunk, 3},
        {"{file_index}", NULL, with->file, 1},
        {"{file_index:03d}", NULL, with->file, 3},
    };
    for (size_t i = 0; i < TD_COUNT_OF(fields); i++) {
        size_t length = strlen(fields[i].text);
        if (strncmp(field, fields[i].text, length) != 0) continue;
        if (fields[i].digits > 0)
            (void)snprintf(ret_text, size, "%0*" PRIu32, fields[i].digits,
                           fields[i].number);
        else if (fields[i].key)
            (void)snprintf(ret_text, size, "%s", fields[i].key);
        else
            return 0;
        return length;
    }
    return 0;
}

td_err td_dataset_path_fill(const char *pattern, const char *video_key,
                            uint32_t chunk, uint32_t file,
                            char ret_path[TD_DATASET_MAX_PATH],
                            td_errinfo *info)
{
    const filling with = {video_key, chunk, file};
    char path[TD_DATASET_MAX_PATH];
    size_t size = 0;
    for (const char *at = pattern; *at;) {
        char text[TD_DATASET_MAX_PATH] = {*at, '\0'};
        size_t length = 1;
        if (*at == '{' || *at == '}')
            length = fill_field(at, &with, text, sizeof text);
        if (length == 0)
            return td_fail(info, TD_ERR_FORMAT,
                           "%.200s: has a field that no path has", pattern);
        size_t more = strlen(text);
        if (size + more >= sizeof path)
            return td_fail(info, TD_ERR_LIMIT, "%.200s...: is too long a path",
                           pattern);
        memcpy(path + size, text, more);
        size += more;
        at += length;
    }
    path[size] = '\0';
    if (!td_dataset_path_is_inside(path))
        return td_fail(info, TD_ERR_FORMAT, "%.200s: leads out of the folder",
                       path);
    memcpy(ret_path, path, size + 1);
    return TD_OK;
}
