// SPDX-License-Identifier: Apache-2.0
#include "base/chart/wellformed.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 16 };

struct name {
    const char *at;
    size_t size;
};

struct reader {
    const char *at;
    struct name open[MAX_DEPTH];
    size_t depth;
};

static struct name read_name(struct reader *reader)
{
    struct name name = {reader->at, 0};
    while (isalnum((unsigned char)*reader->at) || *reader->at == '-')
        reader->at++;
    name.size = (size_t)(reader->at - name.at);
    return name;
}

static bool skip(struct reader *reader, const char *text)
{
    if (strncmp(reader->at, text, strlen(text)) != 0) return false;
    reader->at += strlen(text);
    return true;
}

// Up to `end`, which is not taken.
static const char *read_text(struct reader *reader, char end)
{
    static const char *const entities[] = {"&amp;", "&lt;", "&gt;", "&quot;",
                                           "&#39;"};
    while (*reader->at && *reader->at != end) {
        bool entity = false;
        for (size_t i = 0; i < sizeof entities / sizeof *entities; i++)
            entity = entity || skip(reader, entities[i]);
        if (entity) continue;
        if (*reader->at == '&') return "bare &";
        if (*reader->at == '<') return "bare <";
        if ((unsigned char)*reader->at < 0x20 && *reader->at != '\n')
            return "control character";
        reader->at++;
    }
    return NULL;
}

static const char *read_attributes(struct reader *reader)
{
    while (skip(reader, " ")) {
        if (*reader->at == ' ') continue;
        if (read_name(reader).size == 0) return "attribute without a name";
        if (!skip(reader, "=\"")) return "attribute without a value";
        const char *wrong = read_text(reader, '"');
        if (wrong) return wrong;
        if (!skip(reader, "\"")) return "value without an end";
    }
    return NULL;
}

static const char *close_tag(struct reader *reader)
{
    struct name name = read_name(reader);
    if (reader->depth == 0) return "closes what was not open";
    struct name open = reader->open[--reader->depth];
    if (open.size != name.size || memcmp(open.at, name.at, name.size) != 0)
        return "closes another tag";
    return skip(reader, ">") ? NULL : "closing tag without an end";
}

static const char *open_tag(struct reader *reader)
{
    if (reader->depth == MAX_DEPTH) return "too deep";
    struct name name = read_name(reader);
    if (name.size == 0) return "tag without a name";
    const char *wrong = read_attributes(reader);
    if (wrong) return wrong;
    if (skip(reader, "/>")) return NULL;
    reader->open[reader->depth++] = name;
    return skip(reader, ">") ? NULL : "tag without an end";
}

const char *td_chart_wellformed(const char *text)
{
    struct reader reader = {.at = text};
    do {
        if (!skip(&reader, "<")) return "no tag";
        const char *wrong =
            skip(&reader, "/") ? close_tag(&reader) : open_tag(&reader);
        if (!wrong) wrong = read_text(&reader, '<');
        if (wrong) return wrong;
    } while (reader.depth);
    return *reader.at ? "more than one root" : NULL;
}

char *td_chart_wellformed_load(const char *path, size_t *ret_size)
{
    FILE *file = fopen(path, "re");
    if (!file) return NULL;
    char *text = NULL;
    size_t size = 0;
    ssize_t got = getdelim(&text, &size, '\0', file);
    (void)fclose(file);
    if (got < 0) {
        free(text);
        return NULL;
    }
    *ret_size = (size_t)got;
    return text;
}
