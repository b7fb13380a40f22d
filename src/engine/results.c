// SPDX-License-Identifier: Apache-2.0
#include "engine/results.h"

#include "wire/msgpack/text.h"
#include "wire/wire.h"

#include <stdlib.h>
#include <string.h>

#define ALIGN 16
#define LEAST_ROOM 4096

void td_engine_results_clear(td_engine_results *results)
{
    results->text = (td_wire_text){0};
    results->count = 0;
    results->used = 0;
}

void td_engine_results_done(td_engine_results *results)
{
    free(results->memory);
    *results = (td_engine_results){0};
}

// What is there looks into the new memory from now on.
static void move(td_engine_results *results, uint8_t *memory, size_t room)
{
    const uint8_t *from = results->memory;
    if (from) memcpy(memory, from, results->used);
    for (uint32_t i = 0; i < results->count; i++) {
        td_wire_named *named = &results->named[i];
        named->name.data =
            (const char *)memory + ((const uint8_t *)named->name.data - from);
        named->tensor.data =
            memory + ((const uint8_t *)named->tensor.data - from);
    }
    if (results->text.data)
        results->text.data =
            (const char *)memory + ((const uint8_t *)results->text.data - from);
    free(results->memory);
    results->memory = memory;
    results->room = room;
}

static td_err grow(td_engine_results *results, size_t least)
{
    size_t room = results->room ? results->room : LEAST_ROOM;
    while (room < least)
        room *= 2;
    uint8_t *memory = malloc(room);
    if (!memory) return TD_ERR_NOMEM;
    move(results, memory, room);
    return TD_OK;
}

// A place for so many bytes, which is taken once `used` says so.
static td_err reserve(td_engine_results *results, size_t size, size_t *ret_at,
                      td_errinfo *info)
{
    size_t at = (results->used + ALIGN - 1) / ALIGN * ALIGN;
    if (size > TD_ENGINE_RESULTS_MOST_BYTES ||
        at > TD_ENGINE_RESULTS_MOST_BYTES - size)
        return td_fail(info, TD_ERR_LIMIT,
                       "results: %zu bytes more than the %zu there are, at "
                       "most %u",
                       size, results->used, TD_ENGINE_RESULTS_MOST_BYTES);
    if (!results->memory || at + size > results->room)
        TD_TRY(grow(results, at + size));
    *ret_at = at;
    return TD_OK;
}

static td_err check(const td_engine_results *results, td_wire_text name,
                    const td_wire_tensor *tensor, td_errinfo *info)
{
    const td_wire_at at = {.name = td_wire_text_of("results"), .info = info};
    if (results->count == TD_WIRE_MAX_TENSORS)
        return td_wire_fail(&at, TD_ERR_LIMIT, "more than %u",
                            TD_WIRE_MAX_TENSORS);
    TD_TRY(td_wire_text_check_name(&at, name));
    const td_wire_at in = td_wire_at_in(&at, name);
    for (uint32_t i = 0; i < results->count; i++)
        if (td_wire_text_same(results->named[i].name, name))
            return td_wire_fail(&in, TD_ERR_FORMAT, "is there twice");
    if ((unsigned)tensor->dtype > TD_WIRE_BOOL || tensor->rank < 1 ||
        tensor->rank > TD_WIRE_MAX_RANK)
        return td_wire_fail(&in, TD_ERR_FORMAT, "dtype %u of rank %u",
                            (unsigned)tensor->dtype, tensor->rank);
    size_t bytes = td_wire_tensor_bytes(tensor);
    if (bytes != tensor->size)
        return td_wire_fail(&in, TD_ERR_FORMAT,
                            "its shape needs %zu bytes, got %zu", bytes,
                            tensor->size);
    return TD_OK;
}

td_err td_engine_results_add(td_engine_results *results, td_wire_text name,
                             const td_wire_tensor *tensor, td_errinfo *info)
{
    size_t at = 0;
    TD_TRY(check(results, name, tensor, info));
    TD_TRY(reserve(results, tensor->size + name.size, &at, info));
    uint8_t *values = results->memory + at;
    char *letters = (char *)values + tensor->size;
    if (tensor->size > 0) memcpy(values, tensor->data, tensor->size);
    memcpy(letters, name.data, name.size);
    td_wire_named *named = &results->named[results->count++];
    *named = (td_wire_named){{letters, name.size}, *tensor};
    named->tensor.data = values;
    results->used = at + tensor->size + name.size;
    return TD_OK;
}

// Whoever owns the text may change it at any time: the copy is what is checked.
td_err td_engine_results_set_text(td_engine_results *results, td_wire_text text,
                                  td_errinfo *info)
{
    const td_wire_at in = {.name = td_wire_text_of("text"), .info = info};
    size_t at = 0;
    TD_TRY(reserve(results, text.size, &at, info));
    char *letters = (char *)results->memory + at;
    if (text.size > 0) memcpy(letters, text.data, text.size);
    const td_wire_text copy = {letters, text.size};
    TD_TRY(td_wire_text_check(&in, copy));
    results->text = copy;
    results->used = at + text.size;
    return TD_OK;
}
