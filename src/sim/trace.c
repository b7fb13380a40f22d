// SPDX-License-Identifier: Apache-2.0
#include "sim/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void append(td_sim_trace *trace, const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++)
        trace->hash = (trace->hash ^ (unsigned char)text[i]) * 0x100000001b3U;
    if (trace->err != TD_OK) return;
    if (trace->size + size > trace->room) {
        size_t room = 2 * (trace->room + size);
        char *grown = realloc(trace->text, room);
        if (!grown) {
            trace->err = TD_ERR_NOMEM;
            return;
        }
        trace->text = grown;
        trace->room = room;
    }
    memcpy(trace->text + trace->size, text, size);
    trace->size += size;
}

void td_sim_trace_line(td_sim_trace *trace, int64_t now_ns, const char *fmt,
                       ...)
{
    char line[512];
    if (!trace->keep) return;
    int head = snprintf(line, sizeof line, "%lld ", (long long)now_ns);
    va_list args;
    va_start(args, fmt);
    int body =
        vsnprintf(line + head, sizeof line - (size_t)head - 1, fmt, args);
    va_end(args);
    size_t size = (size_t)head + (size_t)body;
    if (size > sizeof line - 2) size = sizeof line - 2;
    line[size] = '\n';
    append(trace, line, size + 1);
}

// The bits themselves: two runs agree or they do not.
void td_sim_trace_floats(td_sim_trace *trace, const float *values,
                         uint32_t count)
{
    for (uint32_t i = 0; trace->keep && i < count; i++) {
        uint32_t bits;
        char text[10];
        memcpy(&bits, &values[i], sizeof bits);
        (void)snprintf(text, sizeof text, "%08x%c", bits,
                       i + 1 < count ? ' ' : '\n');
        append(trace, text, 9);
    }
}
