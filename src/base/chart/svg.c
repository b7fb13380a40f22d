// SPDX-License-Identifier: Apache-2.0
#include "base/chart/svg.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

static bool is_xml_char(uint32_t code)
{
    if (code < 0x20) return code == '\t' || code == '\n' || code == '\r';
    return code < 0xd800 || (code >= 0xe000 && code < 0xfffe) ||
           (code >= 0x10000 && code < 0x110000);
}

// By the first byte alone; 0 if no character begins with it.
static size_t size_of_lead(unsigned char lead)
{
    if (lead < 0x80) return 1;
    if (lead < 0xc0) return 0;
    if (lead < 0xe0) return 2;
    if (lead < 0xf0) return 3;
    return lead < 0xf8 ? 4 : 0;
}

// The size of the character at `p`, or 0 if there is none that XML allows.
static size_t char_size(const unsigned char *p, size_t bytes)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t size = size_of_lead(p[0]);
    if (size == 0 || size > bytes) return 0;

    uint32_t code = size == 1 ? p[0] : p[0] & (0x7fU >> size);
    for (size_t i = 1; i < size; i++) {
        if ((p[i] & 0xc0) != 0x80) return 0;
        code = code << 6 | (p[i] & 0x3f);
    }
    return code >= least[size] && is_xml_char(code) ? size : 0;
}

static const char *escape_of(char c)
{
    switch (c) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    case '\'':
        return "&#39;";
    default:
        return NULL;
    }
}

void td_chart_svg_text(const char *text, size_t bytes, FILE *file)
{
    for (size_t at = 0; at < bytes;) {
        size_t size = char_size((const unsigned char *)text + at, bytes - at);
        const char *escape = escape_of(text[at]);
        if (size == 0)
            fputc('?', file);
        else if (escape)
            fputs(escape, file);
        else
            fwrite(text + at, 1, size, file);
        at += size ? size : 1;
    }
}

size_t td_chart_svg_length(const char *text, size_t bytes)
{
    size_t length = 0;
    for (size_t at = 0; at < bytes; length++) {
        size_t size = char_size((const unsigned char *)text + at, bytes - at);
        at += size ? size : 1;
    }
    return length;
}

void td_chart_svg_number(double px, FILE *file)
{
    long tenths = lround(px * 10);
    fprintf(file, "%s%ld", tenths < 0 ? "-" : "", labs(tenths / 10));
    if (tenths % 10) fprintf(file, ".%ld", labs(tenths % 10));
}

void td_chart_svg_shape(const char *format, const double *px, FILE *file)
{
    for (; *format; format++) {
        if (*format == '#')
            td_chart_svg_number(*px++, file);
        else
            fputc(*format, file);
    }
}
