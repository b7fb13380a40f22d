// SPDX-License-Identifier: Apache-2.0
#include "dataset/table/collect.h"

#include <stdlib.h>
#include <string.h>

#define MAX_LISTS 8

td_err td_dataset_collect_init(td_dataset_collect *collect, size_t rows)
{
    collect->ends = calloc(rows, sizeof *collect->ends);
    return collect->ends ? TD_OK : TD_ERR_NOMEM;
}

void td_dataset_collect_done(td_dataset_collect *collect)
{
    free(collect->ends);
    free(collect->values);
    td_arena_done(&collect->texts);
}

// A column as it is nested: lists in lists, and the values in the last of them.
typedef struct nesting {
    const struct ArrowArray *lists[MAX_LISTS];
    size_t depth;
    const struct ArrowArray *leaf;
    const char *format;
} nesting;

static td_err refuse_missing(const struct ArrowArray *array, td_errinfo *info)
{
    if (array->null_count == 0) return TD_OK;
    return td_fail(info, TD_ERR_FORMAT, "a value is missing");
}

// A picture is a structure of its bytes and of the path that it once had.
static td_err find_bytes(const struct ArrowArray **array,
                         const struct ArrowSchema **schema, td_errinfo *info)
{
    for (int64_t i = 0; i < (*schema)->n_children; i++) {
        if (strcmp((*schema)->children[i]->name, "bytes") != 0) continue;
        *array = (*array)->children[i];
        *schema = (*schema)->children[i];
        return refuse_missing(*array, info);
    }
    return td_fail(info, TD_ERR_UNSUPPORTED,
                   "is a structure, and no picture's");
}

static td_err unfold(const struct ArrowArray *array,
                     const struct ArrowSchema *schema, nesting *ret_nest,
                     td_errinfo *info)
{
    nesting found = {0};
    TD_TRY(refuse_missing(array, info));
    while (strcmp(schema->format, "+l") == 0) {
        if (found.depth == MAX_LISTS)
            return td_fail(info, TD_ERR_LIMIT,
                           "is nested more than %d lists deep", MAX_LISTS);
        found.lists[found.depth++] = array;
        array = array->children[0];
        schema = schema->children[0];
        TD_TRY(refuse_missing(array, info));
    }
    if (strcmp(schema->format, "+s") == 0)
        TD_TRY(find_bytes(&array, &schema, info));
    found.leaf = array;
    found.format = schema->format;
    *ret_nest = found;
    return TD_OK;
}

// Where the values of a row begin; of the row after the last, where all end.
static size_t begin_of(const nesting *nest, size_t row)
{
    for (size_t i = 0; i < nest->depth; i++) {
        const int32_t *begins = nest->lists[i]->buffers[1];
        row = (size_t)begins[(size_t)nest->lists[i]->offset + row];
    }
    return row;
}

#define WIDEN(name, type, wide)                                                \
    static void name(const void *from, size_t start, size_t count, void *to)   \
    {                                                                          \
        const type *values = (const type *)from + start;                       \
        wide *out = to;                                                        \
        for (size_t i = 0; i < count; i++)                                     \
            out[i] = (wide)values[i];                                          \
    }

WIDEN(widen_i8, int8_t, int64_t)
WIDEN(widen_u8, uint8_t, int64_t)
WIDEN(widen_i16, int16_t, int64_t)
WIDEN(widen_u16, uint16_t, int64_t)
WIDEN(widen_i32, int32_t, int64_t)
WIDEN(widen_u32, uint32_t, int64_t)
WIDEN(widen_i64, int64_t, int64_t)
WIDEN(widen_f32, float, float)
WIDEN(widen_f64, double, double)

static void widen_bits(const void *from, size_t start, size_t count, void *to)
{
    const uint8_t *bits = from;
    uint8_t *out = to;
    for (size_t i = 0; i < count; i++) {
        size_t at = start + i;
        out[i] = bits[at / 8] >> at % 8 & 1;
    }
}

static const struct kind {
    const char *format;
    td_dataset_type type;
    void (*widen)(const void *from, size_t start, size_t count, void *to);
} kinds[] = {
    {"b", TD_DATASET_BOOL, widen_bits}, {"c", TD_DATASET_I64, widen_i8},
    {"C", TD_DATASET_I64, widen_u8},    {"s", TD_DATASET_I64, widen_i16},
    {"S", TD_DATASET_I64, widen_u16},   {"i", TD_DATASET_I64, widen_i32},
    {"I", TD_DATASET_I64, widen_u32},   {"l", TD_DATASET_I64, widen_i64},
    {"f", TD_DATASET_F32, widen_f32},   {"g", TD_DATASET_F64, widen_f64},
    {"vu", TD_DATASET_TEXT, NULL},      {"vz", TD_DATASET_BYTES, NULL},
};

static const struct kind *find_kind(const char *format)
{
    for (size_t i = 0; i < TD_COUNT_OF(kinds); i++)
        if (strcmp(kinds[i].format, format) == 0) return &kinds[i];
    return NULL;
}

// Arrow's view of a text: short ones stand in it, long ones in a buffer.
typedef struct text_view {
    int32_t size;
    union {
        char text[12];
        struct {
            char prefix[4];
            int32_t buffer;
            int32_t offset;
        } at;
    };
} text_view;

static const char *text_of(const struct ArrowArray *leaf, const text_view *view)
{
    if ((size_t)view->size <= sizeof view->text) return view->text;
    const char *buffer = leaf->buffers[2 + view->at.buffer];
    return buffer + view->at.offset;
}

static td_err add_texts(td_dataset_collect *collect,
                        const struct ArrowArray *leaf, size_t start,
                        size_t count, td_slice *ret_texts, td_errinfo *info)
{
    const text_view *views = (const text_view *)leaf->buffers[1] + start;
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        bytes += (size_t)views[i].size;
    if (bytes > TD_DATASET_MAX_TEXT_BYTES - collect->text_bytes)
        return td_fail(info, TD_ERR_LIMIT, "has more than %u bytes of text",
                       TD_DATASET_MAX_TEXT_BYTES);
    char *text = td_arena_alloc(&collect->texts, bytes + 1, 1);
    if (!text) return td_fail(info, TD_ERR_NOMEM, "out of memory");
    collect->text_bytes += bytes;
    for (size_t i = 0; i < count; i++) {
        size_t size = (size_t)views[i].size;
        memcpy(text, text_of(leaf, &views[i]), size);
        ret_texts[i] = (td_slice){text, size};
        text += size;
    }
    return TD_OK;
}

static td_err make_room(td_dataset_collect *collect, size_t count)
{
    size_t size = td_dataset_type_size(collect->type);
    size_t need = collect->count + count;
    if (need <= collect->capacity) return TD_OK;
    void *values = reallocarray(collect->values, need, size);
    if (!values) return TD_ERR_NOMEM;
    collect->values = values;
    collect->capacity = need;
    return TD_OK;
}

static td_err add_values(td_dataset_collect *collect, const nesting *nest,
                         size_t start, size_t count, td_errinfo *info)
{
    const struct kind *kind = find_kind(nest->format);
    if (!kind)
        return td_fail(info, TD_ERR_UNSUPPORTED,
                       "is of a type (\"%.20s\") that no feature has",
                       nest->format);
    collect->type = kind->type;
    if (count == 0) return TD_OK;
    if (make_room(collect, count) != TD_OK)
        return td_fail(info, TD_ERR_NOMEM, "out of memory");
    void *to = (char *)collect->values +
               collect->count * td_dataset_type_size(kind->type);
    size_t from = (size_t)nest->leaf->offset + start;
    if (kind->widen)
        kind->widen(nest->leaf->buffers[1], from, count, to);
    else
        TD_TRY(add_texts(collect, nest->leaf, from, count, to, info));
    collect->count += count;
    return TD_OK;
}

td_err td_dataset_collect_add(td_dataset_collect *collect,
                              const struct ArrowArray *array,
                              const struct ArrowSchema *schema,
                              td_errinfo *info)
{
    nesting nest = {0};
    TD_TRY(unfold(array, schema, &nest, info));
    size_t rows = (size_t)array->length;
    size_t start = begin_of(&nest, 0), before = collect->count;
    TD_TRY(
        add_values(collect, &nest, start, begin_of(&nest, rows) - start, info));
    for (size_t i = 0; i < rows; i++)
        collect->ends[collect->rows + i] =
            before + begin_of(&nest, i + 1) - start;
    collect->rows += rows;
    return TD_OK;
}
