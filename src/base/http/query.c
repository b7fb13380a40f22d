// SPDX-License-Identifier: Apache-2.0
#include "base/http/query.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

// What is left to read.
struct reader {
    const char *at, *end;
};

static int hex_of(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

// One character, decoded. FORMAT for half an escape.
static td_err read_char(struct reader *in, char *ret_char)
{
    char c = *in->at++;
    if (c == '+') c = ' ';
    if (c == '%') {
        if (in->end - in->at < 2) return TD_ERR_FORMAT;
        int high = hex_of(in->at[0]), low = hex_of(in->at[1]);
        if (high < 0 || low < 0) return TD_ERR_FORMAT;
        in->at += 2;
        c = (char)(high * 16 + low);
    }
    *ret_char = c;
    return TD_OK;
}

// Decodes up to `stop` or the end of the parameter, and over it.
static td_err read_text(struct reader *in, char stop, char *ret_text,
                        size_t most, td_errinfo *info)
{
    size_t size = 0;
    while (in->at < in->end && *in->at != stop && *in->at != '&') {
        char c;
        if (read_char(in, &c) != TD_OK)
            return td_fail(info, TD_ERR_FORMAT,
                           "parameters: %% is followed by two hex digits");
        if ((unsigned char)c < ' ' || c == '\x7f')
            return td_fail(info, TD_ERR_FORMAT,
                           "parameters: a control character");
        if (size == most)
            return td_fail(info, TD_ERR_LIMIT,
                           "parameters: a name is at most %d bytes, a value %d",
                           TD_QUERY_MAX_NAME, TD_QUERY_MAX_TEXT);
        ret_text[size++] = c;
    }
    ret_text[size] = '\0';
    return TD_OK;
}

static td_err read_field(struct reader *in, td_query_field *field,
                         td_errinfo *info)
{
    TD_TRY(read_text(in, '=', field->name, TD_QUERY_MAX_NAME, info));
    if (field->name[0] == '\0' || in->at == in->end || *in->at != '=')
        return td_fail(info, TD_ERR_FORMAT,
                       "parameters: must be name=value, joined by &");
    in->at++;
    return read_text(in, '&', field->text, TD_QUERY_MAX_TEXT, info);
}

static td_err add_field(td_query *query, struct reader *in, td_errinfo *info)
{
    if (query->count == TD_QUERY_MAX)
        return td_fail(info, TD_ERR_LIMIT, "parameters: at most %d",
                       TD_QUERY_MAX);
    td_query_field *field = &query->fields[query->count];
    TD_TRY(read_field(in, field, info));
    if (td_query_text(query, field->name))
        return td_fail(info, TD_ERR_FORMAT, "%s: is there twice", field->name);
    query->count++;
    return TD_OK;
}

td_err td_query_parse(const char *text, size_t size, td_query *ret_query,
                      td_errinfo *info)
{
    struct reader in = {text, text + size};
    td_query query = {.count = 0};
    while (in.at < in.end) {
        TD_TRY(add_field(&query, &in, info));
        if (in.at < in.end) in.at++; // the '&'
    }
    *ret_query = query;
    return TD_OK;
}

static bool is_among(const char *name, const char *const *names)
{
    for (; *names; names++)
        if (strcmp(*names, name) == 0) return true;
    return false;
}

td_err td_query_only(const td_query *query, const char *const *names,
                     td_errinfo *info)
{
    for (size_t i = 0; i < query->count; i++) {
        if (is_among(query->fields[i].name, names)) continue;
        char all[128] = "";
        for (const char *const *name = names; *name; name++) {
            size_t size = strlen(all);
            (void)snprintf(all + size, sizeof all - size, " %s", *name);
        }
        return td_fail(info, TD_ERR_NOTFOUND,
                       "%s: no such parameter; there are:%s",
                       query->fields[i].name, all);
    }
    return TD_OK;
}

const char *td_query_text(const td_query *query, const char *name)
{
    for (size_t i = 0; i < query->count; i++)
        if (strcmp(query->fields[i].name, name) == 0)
            return query->fields[i].text;
    return NULL;
}

// -1 for what is no number, or one above `most`.
static int64_t number_of(const char *text, int64_t most)
{
    int64_t number = 0;
    if (*text == '\0') return -1;
    for (; *text != '\0'; text++) {
        if (*text < '0' || *text > '9') return -1;
        int64_t digit = *text - '0';
        if (number > (most - digit) / 10) return -1;
        number = 10 * number + digit;
    }
    return number;
}

td_err td_query_number(const td_query *query, const char *name, int64_t least,
                       int64_t most, int64_t *ret_number, td_errinfo *info)
{
    const char *text = td_query_text(query, name);
    if (!text) return TD_OK;
    int64_t number = number_of(text, most);
    if (number < least)
        return td_fail(info, TD_ERR_INVALID,
                       "%s: must be a whole number from %lld to %lld, got "
                       "\"%s\"",
                       name, (long long)least, (long long)most, text);
    *ret_number = number;
    return TD_OK;
}
