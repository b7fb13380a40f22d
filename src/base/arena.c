// SPDX-License-Identifier: Apache-2.0
#include "base/arena.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_BYTES 4096

struct td_arena_block {
    struct td_arena_block *next;
    size_t used, size;
    max_align_t data[];
};
typedef struct td_arena_block block;

void td_arena_done(td_arena *arena)
{
    for (block *at = arena->blocks, *next; at; at = next) {
        next = at->next;
        free(at);
    }
    arena->blocks = NULL;
}

td_err td_arena_new(td_arena **ret_arena)
{
    td_arena *arena = calloc(1, sizeof *arena);
    if (!arena) return TD_ERR_NOMEM;
    *ret_arena = arena;
    return TD_OK;
}

void td_arena_free(td_arena *arena)
{
    td_arena_done(arena);
    free(arena);
}

static block *add_block(td_arena *arena, size_t bytes)
{
    size_t size = bytes > BLOCK_BYTES ? bytes : BLOCK_BYTES;
    block *fresh = calloc(1, sizeof *fresh + size);
    if (!fresh) return NULL;
    fresh->size = size;
    fresh->next = arena->blocks;
    arena->blocks = fresh;
    return fresh;
}

void *td_arena_alloc(td_arena *arena, size_t count, size_t bytes)
{
    size_t align = _Alignof(max_align_t), total;
    if (__builtin_mul_overflow(count, bytes, &total)) return NULL;
    if (total > SIZE_MAX / 2) return NULL;
    total = (total + align - 1) / align * align;

    block *at = arena->blocks;
    if (!at || at->size - at->used < total) at = add_block(arena, total);
    if (!at) return NULL;
    void *place = (char *)at->data + at->used;
    at->used += total;
    return place;
}

char *td_arena_copy(td_arena *arena, const char *text, size_t bytes)
{
    char *copy = td_arena_alloc(arena, bytes + 1, 1);
    if (copy && bytes > 0) memcpy(copy, text, bytes);
    return copy;
}

char *td_arena_print(td_arena *arena, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int size = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    char *text = td_arena_alloc(arena, (size_t)size + 1, 1);
    if (!text) return NULL;
    va_start(args, fmt);
    vsnprintf(text, (size_t)size + 1, fmt, args);
    va_end(args);
    return text;
}
