// SPDX-License-Identifier: Apache-2.0
#include "base/json/json.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>

void td_json_init(td_json *json, FILE *out)
{
    *json = (td_json){out, ""};
}

// How many bytes the character at `text` has; 0 if it is none. A byte that
// goes on is never the end of the text.
static size_t utf8_size(const unsigned char *text)
{
    static const struct {
        unsigned char from, to;  // the first byte
        unsigned char low, high; // the second
        size_t size;
    } rows[] = {
        {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
        {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3},
        {0xee, 0xef, 0x80, 0xbf, 3}, {0xf0, 0xf0, 0x90, 0xbf, 4},
        {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
    };
    if (*text < 0x80) return 1;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (*text < rows[i].from || *text > rows[i].to) continue;
        if (text[1] < rows[i].low || text[1] > rows[i].high) return 0;
        for (size_t j = 2; j < rows[i].size; j++)
            if ((text[j] & 0xc0) != 0x80) return 0;
        return rows[i].size;
    }
    return 0;
}

static void put_text(FILE *out, const char *text)
{
    const unsigned char *at = (const unsigned char *)text;
    (void)fputc('"', out);
    while (*at != '\0') {
        size_t size = utf8_size(at);
        if (size == 0)
            (void)fputs("\\ufffd", out);
        else if (*at < ' ' || *at == 0x7f)
            (void)fprintf(out, "\\u%04x", *at);
        else if (*at == '"' || *at == '\\')
            (void)fprintf(out, "\\%c", *at);
        else
            (void)fwrite(at, 1, size, out);
        at += size ? size : 1;
    }
    (void)fputc('"', out);
}

static void begin(td_json *json, const char *name)
{
    (void)fputs(json->before, json->out);
    json->before = ",";
    if (!name) return;
    put_text(json->out, name);
    (void)fputc(':', json->out);
}

static void open_with(td_json *json, const char *name, char bracket)
{
    begin(json, name);
    (void)fputc(bracket, json->out);
    json->before = "";
}

static void close_with(td_json *json, char bracket)
{
    (void)fputc(bracket, json->out);
    json->before = ",";
}

void td_json_object(td_json *json, const char *name)
{
    open_with(json, name, '{');
}

void td_json_end_object(td_json *json)
{
    close_with(json, '}');
}

void td_json_array(td_json *json, const char *name)
{
    open_with(json, name, '[');
}

void td_json_end_array(td_json *json)
{
    close_with(json, ']');
}

void td_json_text(td_json *json, const char *name, const char *text)
{
    begin(json, name);
    if (text)
        put_text(json->out, text);
    else
        (void)fputs("null", json->out);
}

void td_json_whole(td_json *json, const char *name, uint64_t value)
{
    begin(json, name);
    (void)fprintf(json->out, "%" PRIu64, value);
}

void td_json_number(td_json *json, const char *name, double value)
{
    begin(json, name);
    if (isfinite(value))
        (void)fprintf(json->out, "%.6g", value);
    else
        (void)fputs("null", json->out);
}

void td_json_bool(td_json *json, const char *name, bool value)
{
    begin(json, name);
    (void)fputs(value ? "true" : "false", json->out);
}
