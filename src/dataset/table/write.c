// SPDX-License-Identifier: Apache-2.0
// Writes columns into a Parquet file: columns to Arrow's C data interface, and
// from there into the file by the Rust library.
//
// A column is a flat array of values. What Arrow sees of it, a tree of
// ArrowSchema and ArrowArray that describes plain values, lists, lists of fixed
// size and lists within lists, is built here around that array without copying
// it; bits and texts are the exceptions, since Arrow lays them out otherwise.
//
// Everything that Arrow sees stands in an arena that lives as long as the call:
// the library is done with it when the call returns, so that `release` has
// nothing to free.
//
// The writer keeps a copy of the fields and checks each group of columns
// against them before anything is written. A file is whole when
// td_dataset_table_finish() has written its footer; one that was not finished
// is no Parquet file, and whoever opened the fd removes it.
#include "base/arena.h"
#include "dataset/table/file.h"
#include "dataset/table/table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct td_dataset_table_writer {
    const tdr_parquet_ops *ops;
    tdr_parquet_writer *parquet;
    size_t count;
    td_dataset_field *fields;
    td_arena kept; // the fields and their names
};

static td_err no_memory(td_errinfo *info)
{
    return td_fail(info, TD_ERR_NOMEM, "out of memory");
}

static const char *format_of(td_dataset_type type)
{
    switch (type) {
    case TD_DATASET_BOOL:
        return "b";
    case TD_DATASET_I64:
        return "l";
    case TD_DATASET_F32:
        return "f";
    case TD_DATASET_F64:
        return "g";
    case TD_DATASET_TEXT:
        return "u";
    case TD_DATASET_BYTES:
        return "z";
    }
    return "";
}

static td_err check_field(const td_dataset_field *field, td_errinfo *info)
{
    bool plain = field->depth == 0 && field->width == 1 && !field->fixed;
    bool list = field->depth == 1 && (field->width > 0 || !field->fixed);
    bool nested = field->depth == 3 && !field->fixed;
    if ((plain || list || nested) && field->type != TD_DATASET_BYTES)
        return TD_OK;
    return td_fail(info, TD_ERR_INVALID, "column %s: cannot be written",
                   field->name);
}

static void release_schema(struct ArrowSchema *schema)
{
    schema->release = NULL;
}

// A part of the schema with one child, or none.
static struct ArrowSchema *make_part(td_arena *scratch, const char *name,
                                     const char *format,
                                     struct ArrowSchema *child)
{
    struct ArrowSchema *part = td_arena_alloc(scratch, 1, sizeof *part);
    struct ArrowSchema **children =
        td_arena_alloc(scratch, 1, sizeof(struct ArrowSchema *));
    if (!part || !children) return NULL;
    children[0] = child;
    *part = (struct ArrowSchema){
        .format = format,
        .name = name,
        .flags = ARROW_FLAG_NULLABLE,
        .n_children = child ? 1 : 0,
        .children = children,
        .release = release_schema,
    };
    return part;
}

static struct ArrowSchema *make_field(td_arena *scratch,
                                      const td_dataset_field *field)
{
    char *fixed = td_arena_alloc(scratch, 16, 1);
    if (!fixed) return NULL;
    (void)snprintf(fixed, 16, "+w:%u", field->width);
    const char *list = field->fixed ? fixed : "+l";
    struct ArrowSchema *part =
        make_part(scratch, field->depth == 0 ? field->name : "element",
                  format_of(field->type), NULL);
    for (uint32_t i = 0; part && i < field->depth; i++)
        part =
            make_part(scratch, i + 1 == field->depth ? field->name : "element",
                      list, part);
    return part;
}

static td_err make_schema(td_arena *scratch, const td_dataset_field *fields,
                          size_t count, struct ArrowSchema *ret_schema,
                          td_errinfo *info)
{
    struct ArrowSchema **children =
        td_arena_alloc(scratch, count, sizeof(struct ArrowSchema *));
    if (!children) return no_memory(info);
    for (size_t i = 0; i < count; i++) {
        TD_TRY(check_field(&fields[i], info));
        children[i] = make_field(scratch, &fields[i]);
        if (!children[i]) return no_memory(info);
    }
    *ret_schema = (struct ArrowSchema){
        .format = "+s",
        .name = "",
        .n_children = (int64_t)count,
        .children = children,
        .release = release_schema,
    };
    return TD_OK;
}

static td_err keep_fields(td_dataset_table_writer *writer,
                          const td_dataset_field *fields, size_t count)
{
    writer->count = count;
    writer->fields =
        td_arena_alloc(&writer->kept, count, sizeof *writer->fields);
    if (!writer->fields) return TD_ERR_NOMEM;
    for (size_t i = 0; i < count; i++) {
        writer->fields[i] = fields[i];
        writer->fields[i].name = td_arena_copy(&writer->kept, fields[i].name,
                                               strlen(fields[i].name));
        if (!writer->fields[i].name) return TD_ERR_NOMEM;
    }
    return TD_OK;
}

static td_err create(int fd, td_dataset_table_writer *writer, td_arena *scratch,
                     const td_dataset_note *notes, size_t note_count,
                     td_errinfo *info)
{
    struct ArrowSchema schema;
    TD_TRY(td_dataset_parquet_load(&writer->ops, info));
    TD_TRY(make_schema(scratch, writer->fields, writer->count, &schema, info));
    tdr_note *given = td_arena_alloc(scratch, note_count, sizeof *given);
    if (!given) return no_memory(info);
    for (size_t i = 0; i < note_count; i++)
        given[i] = (tdr_note){notes[i].key, notes[i].value};
    char text[256] = "";
    int code = writer->ops->create(fd, &schema, given, note_count,
                                   &writer->parquet, text, sizeof text);
    return code == TDR_OK
               ? TD_OK
               : td_fail(info, td_dataset_parquet_code(code), "%s", text);
}

td_err td_dataset_table_create(int fd, const td_dataset_field *fields,
                               size_t count, const td_dataset_note *notes,
                               size_t note_count,
                               td_dataset_table_writer **ret_writer,
                               td_errinfo *info)
{
    if (count == 0 || count > TD_DATASET_MAX_COLUMNS)
        return td_fail(info, TD_ERR_INVALID, "%zu columns, 1 to %d", count,
                       TD_DATASET_MAX_COLUMNS);
    TD_AUTO(td_dataset_table_writer) *writer = calloc(1, sizeof *writer);
    if (!writer || keep_fields(writer, fields, count) != TD_OK)
        return no_memory(info);
    td_arena scratch = {0};
    td_err err = create(fd, writer, &scratch, notes, note_count, info);
    td_arena_done(&scratch);
    TD_TRY(err);
    *ret_writer = TD_TAKE(writer);
    return TD_OK;
}

void td_dataset_table_writer_free(td_dataset_table_writer *writer)
{
    if (writer->parquet) writer->ops->abandon(writer->parquet);
    td_arena_done(&writer->kept);
    free(writer);
}

static void release_array(struct ArrowArray *array)
{
    array->release = NULL;
}

// `content` are the buffers after the first, which would say what is missing.
static struct ArrowArray *make_array(td_arena *scratch, size_t length,
                                     const void *const *content, size_t count,
                                     struct ArrowArray *child)
{
    struct ArrowArray *array = td_arena_alloc(scratch, 1, sizeof *array);
    struct ArrowArray **children =
        td_arena_alloc(scratch, 1, sizeof(struct ArrowArray *));
    const void **buffers =
        td_arena_alloc(scratch, count + 1, sizeof(const void *));
    if (!array || !children || !buffers) return NULL;
    for (size_t i = 0; i < count; i++)
        buffers[i + 1] = content[i];
    children[0] = child;
    *array = (struct ArrowArray){
        .length = (int64_t)length,
        .n_buffers = (int64_t)count + 1,
        .n_children = child ? 1 : 0,
        .buffers = buffers,
        .children = children,
        .release = release_array,
    };
    return array;
}

static struct ArrowArray *make_bits(td_arena *scratch,
                                    const td_dataset_column *column)
{
    const uint8_t *values = column->values;
    uint8_t *bits = td_arena_alloc(scratch, column->count / 8 + 1, 1);
    if (!bits) return NULL;
    for (size_t i = 0; i < column->count; i++)
        if (values[i]) bits[i / 8] |= (uint8_t)(1u << i % 8);
    const void *content[] = {bits};
    return make_array(scratch, column->count, content, 1, NULL);
}

static struct ArrowArray *make_texts(td_arena *scratch,
                                     const td_dataset_column *column)
{
    const td_slice *texts = column->values;
    size_t size = 0;
    for (size_t i = 0; i < column->count; i++)
        size += texts[i].size;
    int32_t *begins =
        td_arena_alloc(scratch, column->count + 1, sizeof *begins);
    char *bytes = td_arena_alloc(scratch, size + 1, 1);
    if (!begins || !bytes || size > INT32_MAX) return NULL;
    for (size_t i = 0; i < column->count; i++) {
        if (texts[i].size > 0)
            memcpy(bytes + begins[i], texts[i].data, texts[i].size);
        begins[i + 1] = begins[i] + (int32_t)texts[i].size;
    }
    const void *content[] = {begins, bytes};
    return make_array(scratch, column->count, content, 2, NULL);
}

static struct ArrowArray *make_values(td_arena *scratch,
                                      const td_dataset_column *column)
{
    if (column->type == TD_DATASET_BOOL) return make_bits(scratch, column);
    if (column->type == TD_DATASET_TEXT) return make_texts(scratch, column);
    const void *content[] = {column->values};
    return make_array(scratch, column->count, content, 1, NULL);
}

// A list for each of `rows`; `ends` NULL: `width` values each.
static struct ArrowArray *make_lists(td_arena *scratch, size_t rows,
                                     const size_t *ends, size_t width,
                                     struct ArrowArray *values)
{
    int32_t *begins = td_arena_alloc(scratch, rows + 1, sizeof *begins);
    if (!begins) return NULL;
    for (size_t i = 0; i < rows; i++)
        begins[i + 1] = (int32_t)(ends ? ends[i] : (i + 1) * width);
    const void *content[] = {begins};
    return make_array(scratch, rows, content, 1, values);
}

static struct ArrowArray *make_column(td_arena *scratch,
                                      const td_dataset_field *field,
                                      const td_dataset_column *column,
                                      size_t rows)
{
    struct ArrowArray *array = make_values(scratch, column);
    if (array && field->fixed) return make_array(scratch, rows, NULL, 0, array);
    for (uint32_t i = 1; array && i < field->depth; i++)
        array = make_lists(scratch, column->count, NULL, 1, array);
    if (array && field->depth > 0)
        array = make_lists(scratch, rows, column->ends, field->width, array);
    return array;
}

static bool fits(const td_dataset_field *field, const td_dataset_column *column,
                 size_t rows)
{
    if (column->type != field->type || column->count > INT32_MAX) return false;
    if (!column->ends)
        return field->width > 0 && column->count == rows * field->width;
    size_t end = 0;
    for (size_t i = 0; i < rows; i++) {
        if (column->ends[i] < end) return false;
        if (field->width > 0 && column->ends[i] - end != field->width)
            return false;
        end = column->ends[i];
    }
    return end == column->count;
}

static td_err make_rows(td_arena *scratch,
                        const td_dataset_table_writer *writer,
                        const td_dataset_column *columns, size_t rows,
                        struct ArrowArray *ret_array, td_errinfo *info)
{
    struct ArrowArray **children =
        td_arena_alloc(scratch, writer->count, sizeof(struct ArrowArray *));
    const void **buffers = td_arena_alloc(scratch, 1, sizeof(const void *));
    if (!children || !buffers) return no_memory(info);
    for (size_t i = 0; i < writer->count; i++) {
        const td_dataset_field *field = &writer->fields[i];
        if (!fits(field, &columns[i], rows))
            return td_fail(info, TD_ERR_INVALID,
                           "column %s: does not have the values of %zu rows",
                           field->name, rows);
        children[i] = make_column(scratch, field, &columns[i], rows);
        if (!children[i]) return no_memory(info);
    }
    *ret_array = (struct ArrowArray){
        .length = (int64_t)rows,
        .n_buffers = 1,
        .n_children = (int64_t)writer->count,
        .buffers = buffers,
        .children = children,
        .release = release_array,
    };
    return TD_OK;
}

td_err td_dataset_table_append(td_dataset_table_writer *writer,
                               const td_dataset_column *columns, size_t rows,
                               td_errinfo *info)
{
    if (rows == 0 || rows > INT32_MAX)
        return td_fail(info, TD_ERR_INVALID, "no rows, or too many of them");
    td_arena scratch = {0};
    struct ArrowArray array;
    td_err err = make_rows(&scratch, writer, columns, rows, &array, info);
    if (err == TD_OK) {
        char text[256] = "";
        int code =
            writer->ops->append(writer->parquet, &array, text, sizeof text);
        if (code != TDR_OK)
            err = td_fail(info, td_dataset_parquet_code(code), "%s", text);
    }
    td_arena_done(&scratch);
    return err;
}

td_err td_dataset_table_copy(td_dataset_table_writer *writer,
                             const td_dataset_table *from, td_errinfo *info)
{
    char text[256] = "";
    int code =
        writer->ops->copy(writer->parquet, from->parquet, text, sizeof text);
    if (code == TDR_OK) return TD_OK;
    return td_fail(info, td_dataset_parquet_code(code), "%s: %s", from->path,
                   text);
}

td_err td_dataset_table_finish(td_dataset_table_writer *writer,
                               td_errinfo *info)
{
    char text[256] = "";
    int code = writer->ops->finish(writer->parquet, text, sizeof text);
    if (code == TDR_OK) return TD_OK;
    return td_fail(info, td_dataset_parquet_code(code), "%s", text);
}
