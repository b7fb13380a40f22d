// SPDX-License-Identifier: Apache-2.0
#include "dataset/json.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// How deep objects and arrays stand in each other; the parser recurses.
static int depth_of(td_slice bytes)
{
    const char *text = bytes.data;
    int depth = 0, most = 0;
    bool quoted = false;
    for (size_t i = 0; i < bytes.size; i++) {
        char c = text[i];
        if (c == '"') quoted = !quoted;
        if (c == '\\' && quoted) i++;
        if (quoted) continue;
        if (c == '{' || c == '[') depth++;
        if (c == '}' || c == ']') depth--;
        if (depth > most) most = depth;
    }
    return most;
}

td_err td_dataset_json_parse(td_slice bytes, const char *file,
                             json_t **ret_json, td_errinfo *info)
{
    if (depth_of(bytes) > TD_DATASET_JSON_MAX_DEPTH)
        return td_fail(info, TD_ERR_LIMIT, "%s: is nested deeper than %d", file,
                       TD_DATASET_JSON_MAX_DEPTH);
    json_error_t error = {0};
    TD_AUTO(json_t) *json =
        json_loadb(bytes.data, bytes.size, JSON_REJECT_DUPLICATES, &error);
    if (!json)
        return td_fail(info, TD_ERR_FORMAT, "%s:%d: %s", file, error.line,
                       error.text);
    if (!json_is_object(json))
        return td_fail(info, TD_ERR_FORMAT, "%s: is no JSON object", file);
    *ret_json = TD_TAKE(json);
    return TD_OK;
}

static td_err read_all(int fd, const char *path, size_t most_bytes,
                       char **ret_text, size_t *ret_size, td_errinfo *info)
{
    struct stat about;
    if (fstat(fd, &about) != 0 || !S_ISREG(about.st_mode))
        return td_fail(info, TD_ERR_IO, "%s: is no file", path);
    size_t size = (size_t)about.st_size;
    if (size > most_bytes)
        return td_fail(info, TD_ERR_LIMIT, "%s: has %zu bytes, at most %zu",
                       path, size, most_bytes);
    char *text = malloc(size + 1);
    if (!text) return td_fail(info, TD_ERR_NOMEM, "%s: out of memory", path);
    size_t have = 0;
    while (have < size) {
        ssize_t got = read(fd, text + have, size - have);
        if (got <= 0) {
            free(text);
            return td_fail(info, TD_ERR_IO, "%s: cannot be read", path);
        }
        have += (size_t)got;
    }
    *ret_text = text;
    *ret_size = size;
    return TD_OK;
}

td_err td_dataset_json_load(const char *path, size_t most_bytes,
                            json_t **ret_json, td_errinfo *info)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return td_fail(info, errno == ENOENT ? TD_ERR_NOTFOUND : TD_ERR_IO,
                       "%s: %s", path, strerror(errno));
    char *text = NULL;
    size_t size = 0;
    td_err err = read_all(fd, path, most_bytes, &text, &size, info);
    (void)close(fd);
    TD_TRY(err);
    err = td_dataset_json_parse((td_slice){text, size}, path, ret_json, info);
    free(text);
    return err;
}
