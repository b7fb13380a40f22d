// SPDX-License-Identifier: Apache-2.0
#include "engine/native/pipeline/prompt.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define STEPS 256

td_err td_native_prompt_init(td_native_prompt *prompt, td_wire_text task,
                             td_errinfo *info)
{
    if (task.size > TD_WIRE_MAX_TEXT)
        return td_fail(info, TD_ERR_LIMIT, "task: has %u bytes, at most %d",
                       task.size, TD_WIRE_MAX_TEXT);
    if (task.size > 0) memcpy(prompt->text, task.data, task.size);
    prompt->size = task.size;
    return TD_OK;
}

void td_native_prompt_end_line(td_native_prompt *prompt)
{
    if (prompt->size > 0 && prompt->text[prompt->size - 1] == '\n') return;
    prompt->text[prompt->size++] = '\n';
}

// What Python's str.strip() takes for space.
static const char *const spaces[] = {"\t",           "\n",
                                     "\v",           "\f",
                                     "\r",           "\x1c",
                                     "\x1d",         "\x1e",
                                     "\x1f",         " ",
                                     "\xc2\x85",     "\xc2\xa0",
                                     "\xe1\x9a\x80", "\xe2\x80\x80",
                                     "\xe2\x80\x81", "\xe2\x80\x82",
                                     "\xe2\x80\x83", "\xe2\x80\x84",
                                     "\xe2\x80\x85", "\xe2\x80\x86",
                                     "\xe2\x80\x87", "\xe2\x80\x88",
                                     "\xe2\x80\x89", "\xe2\x80\x8a",
                                     "\xe2\x80\xa8", "\xe2\x80\xa9",
                                     "\xe2\x80\xaf", "\xe2\x81\x9f",
                                     "\xe3\x80\x80"};

// Bytes of the space that the text begins or ends with, or 0.
static size_t space_of(const char *text, size_t size, bool at_end)
{
    for (size_t i = 0; i < TD_COUNT_OF(spaces); i++) {
        size_t length = strlen(spaces[i]);
        if (length > size) continue;
        const char *there = at_end ? text + size - length : text;
        if (memcmp(there, spaces[i], length) == 0) return length;
    }
    return 0;
}

static void strip(td_native_prompt *prompt)
{
    size_t part = 0, begin = 0;
    while ((part = space_of(prompt->text + begin, prompt->size - begin, false)))
        begin += part;
    prompt->size -= begin;
    memmove(prompt->text, prompt->text + begin, prompt->size);
    while ((part = space_of(prompt->text, prompt->size, true)))
        prompt->size -= part;
}

static void append(td_native_prompt *prompt, const char *text)
{
    size_t size = strlen(text);
    memcpy(prompt->text + prompt->size, text, size);
    prompt->size += size;
}

// numpy's digitize() over 256 equal steps from -1 to 1, less one: -1 below.
// Each border is a multiple of 2^-7, so nothing is rounded.
static int step_of(float value)
{
    double step = floor((double)value * (STEPS / 2.0)) + STEPS / 2.0;
    if (!(step >= 0)) return -1;
    return step < STEPS ? (int)step : STEPS - 1;
}

void td_native_prompt_add_state(td_native_prompt *prompt, const float *state,
                                uint32_t count)
{
    static const char before[] = "Task: ";
    strip(prompt);
    for (size_t i = 0; i < prompt->size; i++)
        if (prompt->text[i] == '_' || prompt->text[i] == '\n')
            prompt->text[i] = ' ';
    memmove(prompt->text + sizeof before - 1, prompt->text, prompt->size);
    memcpy(prompt->text, before, sizeof before - 1);
    prompt->size += sizeof before - 1;
    append(prompt, ", State: ");
    for (uint32_t i = 0; i < count; i++) {
        char number[8];
        (void)snprintf(number, sizeof number, "%s%d", i ? " " : "",
                       step_of(state[i]));
        append(prompt, number);
    }
    append(prompt, ";\nAction: ");
}
