// SPDX-License-Identifier: Apache-2.0
#include "base/json/read.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
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

static td_err check_size(const char *file, size_t size, size_t most_bytes,
                         td_errinfo *info)
{
    if (size <= most_bytes) return TD_OK;
    return td_fail(info, TD_ERR_LIMIT, "%s: has %zu bytes, at most %zu", file,
                   size, most_bytes);
}

td_err td_json_read_bytes(td_slice bytes, size_t most_bytes, const char *file,
                          json_t **ret_json, td_errinfo *info)
{
    TD_TRY(check_size(file, bytes.size, most_bytes, info));
    if (depth_of(bytes) > TD_JSON_READ_MAX_DEPTH)
        return td_fail(info, TD_ERR_LIMIT, "%s: is nested deeper than %d", file,
                       TD_JSON_READ_MAX_DEPTH);
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
    TD_TRY(check_size(path, size, most_bytes, info));
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

td_err td_json_read_file(const char *path, size_t most_bytes, json_t **ret_json,
                         td_errinfo *info)
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
    err = td_json_read_bytes((td_slice){text, size}, most_bytes, path, ret_json,
                             info);
    free(text);
    return err;
}

td_err td_json_read_fail(const td_json_at *at, const char *name,
                         td_errinfo *info, td_err err, const char *fmt, ...)
{
    char text[300];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return td_fail(info, err, "%s: %s%s: %s", at->file, at->where, name, text);
}

bool td_json_read_is_null(const td_json_at *at, const char *name)
{
    const json_t *value = json_object_get(at->object, name);
    return !value || json_is_null(value);
}

static td_err get(const td_json_at *at, const char *name, json_t **ret_value,
                  td_errinfo *info)
{
    json_t *value = json_object_get(at->object, name);
    if (!value)
        return td_json_read_fail(at, name, info, TD_ERR_FORMAT, "is missing");
    *ret_value = value;
    return TD_OK;
}

static td_err wrong_kind(const td_json_at *at, const char *name,
                         const char *kind, td_errinfo *info)
{
    return td_json_read_fail(at, name, info, TD_ERR_FORMAT, "must be %s", kind);
}

td_err td_json_read_whole(const td_json_at *at, const char *name,
                          uint32_t least, uint32_t most, uint32_t *ret_value,
                          td_errinfo *info)
{
    json_t *value = NULL;
    TD_TRY(get(at, name, &value, info));
    if (!json_is_integer(value))
        return wrong_kind(at, name, "a whole number", info);
    json_int_t whole = json_integer_value(value);
    if (whole < (json_int_t)least || whole > (json_int_t)most)
        return td_json_read_fail(at, name, info, TD_ERR_LIMIT,
                                 "must be %u to %u, got %lld", least, most,
                                 (long long)whole);
    *ret_value = (uint32_t)whole;
    return TD_OK;
}

td_err td_json_read_number(const td_json_at *at, const char *name,
                           double *ret_value, td_errinfo *info)
{
    json_t *value = NULL;
    TD_TRY(get(at, name, &value, info));
    if (!json_is_number(value) || !isfinite(json_number_value(value)))
        return wrong_kind(at, name, "a number", info);
    *ret_value = json_number_value(value);
    return TD_OK;
}

td_err td_json_read_bool(const td_json_at *at, const char *name,
                         bool *ret_value, td_errinfo *info)
{
    json_t *value = NULL;
    TD_TRY(get(at, name, &value, info));
    if (!json_is_boolean(value))
        return wrong_kind(at, name, "true or false", info);
    *ret_value = json_is_true(value);
    return TD_OK;
}

td_err td_json_read_text(const td_json_at *at, const char *name,
                         const char **ret_value, td_errinfo *info)
{
    json_t *value = NULL;
    TD_TRY(get(at, name, &value, info));
    if (!json_is_string(value)) return wrong_kind(at, name, "a text", info);
    *ret_value = json_string_value(value);
    return TD_OK;
}

td_err td_json_read_object(const td_json_at *at, const char *name,
                           json_t **ret_value, td_errinfo *info)
{
    json_t *value = NULL;
    TD_TRY(get(at, name, &value, info));
    if (!json_is_object(value)) return wrong_kind(at, name, "an object", info);
    *ret_value = value;
    return TD_OK;
}

td_err td_json_read_array(const td_json_at *at, const char *name,
                          json_t **ret_value, td_errinfo *info)
{
    json_t *value = NULL;
    TD_TRY(get(at, name, &value, info));
    if (!json_is_array(value)) return wrong_kind(at, name, "a list", info);
    *ret_value = value;
    return TD_OK;
}
