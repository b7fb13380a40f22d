// SPDX-License-Identifier: Apache-2.0
#include "dataset/table/table.h"

#include "dataset/table/collect.h"
#include "dataset/table/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

td_err td_dataset_table_load(td_errinfo *info)
{
    const tdr_parquet_ops *ops = NULL;
    return td_dataset_parquet_load(&ops, info);
}

size_t td_dataset_type_size(td_dataset_type type)
{
    switch (type) {
    case TD_DATASET_BOOL:
        return sizeof(uint8_t);
    case TD_DATASET_I64:
        return sizeof(int64_t);
    case TD_DATASET_F32:
        return sizeof(float);
    case TD_DATASET_F64:
        return sizeof(double);
    case TD_DATASET_TEXT:
    case TD_DATASET_BYTES:
        return sizeof(td_slice);
    }
    return 0;
}

static td_err open_file(const char *path, int *ret_fd, td_errinfo *info)
{
    struct stat about;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return td_fail(info, errno == ENOENT ? TD_ERR_NOTFOUND : TD_ERR_IO,
                       "%s: %s", path, strerror(errno));
    *ret_fd = fd;
    if (fstat(fd, &about) == 0 && S_ISREG(about.st_mode)) return TD_OK;
    return td_fail(info, TD_ERR_IO, "%s: is no file", path);
}

// Where the rows of each group begin, and where the last of them ends.
static td_err count_rows(td_dataset_table *table)
{
    size_t groups = table->ops->groups(table->parquet);
    table->begins = calloc(groups + 1, sizeof *table->begins);
    if (!table->begins) return TD_ERR_NOMEM;
    for (size_t i = 0; i < groups; i++)
        table->begins[i + 1] =
            table->begins[i] + table->ops->rows(table->parquet, i);
    table->rows = table->begins[groups];
    return TD_OK;
}

td_err td_dataset_table_open(const char *path, td_dataset_table **ret_table,
                             td_errinfo *info)
{
    TD_AUTO(td_dataset_table) *table = calloc(1, sizeof *table);
    if (!table) return td_fail(info, TD_ERR_NOMEM, "%s: out of memory", path);
    table->fd = -1;
    table->path = strdup(path);
    if (!table->path)
        return td_fail(info, TD_ERR_NOMEM, "%s: out of memory", path);
    TD_TRY(open_file(path, &table->fd, info));
    TD_TRY(td_dataset_parquet_load(&table->ops, info));
    char text[256] = "";
    int code = table->ops->open(table->fd, &table->parquet, text, sizeof text);
    if (code != TDR_OK)
        return td_fail(info, td_dataset_parquet_code(code), "%s: %s", path,
                       text);
    if (count_rows(table) != TD_OK)
        return td_fail(info, TD_ERR_NOMEM, "%s: out of memory", path);
    *ret_table = TD_TAKE(table);
    return TD_OK;
}

void td_dataset_table_close(td_dataset_table *table)
{
    if (table->parquet) table->ops->close(table->parquet);
    if (table->fd >= 0) (void)close(table->fd);
    free(table->begins);
    free(table->path);
    free(table);
}

uint64_t td_dataset_table_rows(const td_dataset_table *table)
{
    return table->rows;
}

size_t td_dataset_table_columns(const td_dataset_table *table)
{
    return table->ops->columns(table->parquet);
}

const char *td_dataset_table_name(const td_dataset_table *table, size_t column)
{
    return table->ops->name(table->parquet, column);
}

td_err td_dataset_table_find(const td_dataset_table *table, const char *name,
                             size_t *ret_column)
{
    size_t count = td_dataset_table_columns(table);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(td_dataset_table_name(table, i), name) != 0) continue;
        *ret_column = i;
        return TD_OK;
    }
    return TD_ERR_NOTFOUND;
}

// Rows of one column of one group.
static td_err read_part(const td_dataset_table *table, size_t group,
                        size_t column, size_t first, size_t rows,
                        td_dataset_collect *collect, td_errinfo *info)
{
    struct ArrowArray array;
    struct ArrowSchema schema;
    char text[256] = "";
    int code = table->ops->read(table->parquet, group, column, first, rows,
                                &array, &schema, text, sizeof text);
    if (code != TDR_OK)
        return td_fail(info, td_dataset_parquet_code(code), "%s", text);
    td_err err = td_dataset_collect_add(collect, &array, &schema, info);
    array.release(&array);
    schema.release(&schema);
    return err;
}

static td_err read_column(const td_dataset_table *table, size_t column,
                          uint64_t first, size_t rows,
                          td_dataset_collect *collect, td_errinfo *info)
{
    if (td_dataset_collect_init(collect, rows) != TD_OK)
        return td_fail(info, TD_ERR_NOMEM, "out of memory");
    uint64_t end = first + rows;
    size_t groups = table->ops->groups(table->parquet);
    for (size_t group = 0; group < groups; group++) {
        uint64_t begin = table->begins[group];
        uint64_t to = table->begins[group + 1];
        uint64_t from = first > begin ? first : begin;
        if (to > end) to = end;
        if (from >= to) continue;
        TD_TRY(read_part(table, group, column, (size_t)(from - begin),
                         (size_t)(to - from), collect, info));
    }
    return TD_OK;
}

// The rows as the caller sees them, with what holds them.
typedef struct box {
    td_dataset_rows rows;
    td_dataset_collect *collects;
} box;

static td_err box_new(size_t count, td_dataset_rows **ret_rows)
{
    box *made = calloc(1, sizeof *made);
    if (!made) return TD_ERR_NOMEM;
    TD_AUTO(td_dataset_rows) *rows = &made->rows;
    made->collects = calloc(count, sizeof *made->collects);
    rows->columns = calloc(count, sizeof *rows->columns);
    if (!made->collects || !rows->columns) return TD_ERR_NOMEM;
    rows->count = count;
    *ret_rows = TD_TAKE(rows);
    return TD_OK;
}

void td_dataset_rows_free(td_dataset_rows *rows)
{
    box *whole = (box *)rows;
    for (size_t i = 0; i < rows->count; i++)
        td_dataset_collect_done(&whole->collects[i]);
    free(whole->collects);
    free(rows->columns);
    free(whole);
}

static td_err read_named(const td_dataset_table *table, const char *name,
                         uint64_t first, size_t rows,
                         td_dataset_collect *collect,
                         td_dataset_column *ret_column, td_errinfo *info)
{
    size_t column = 0;
    td_errinfo why = {""};
    if (td_dataset_table_find(table, name, &column) != TD_OK)
        return td_fail(info, TD_ERR_NOTFOUND, "%s: has no column %s",
                       table->path, name);
    td_err err = read_column(table, column, first, rows, collect, &why);
    if (err != TD_OK)
        return td_fail(info, err, "%s: column %s: %s", table->path, name,
                       why.text);
    *ret_column = (td_dataset_column){collect->type, collect->count,
                                      collect->values, collect->ends};
    return TD_OK;
}

td_err td_dataset_table_read(const td_dataset_table *table, uint64_t first,
                             size_t rows, const char *const *names,
                             size_t count, td_dataset_rows **ret_rows,
                             td_errinfo *info)
{
    if (rows == 0 || count == 0 || rows > table->rows ||
        first > table->rows - rows)
        return td_fail(info, TD_ERR_INVALID, "%s: those rows are not there",
                       table->path);
    TD_AUTO(td_dataset_rows) *read = NULL;
    if (box_new(count, &read) != TD_OK)
        return td_fail(info, TD_ERR_NOMEM, "%s: out of memory", table->path);
    read->rows = rows;
    for (size_t i = 0; i < count; i++)
        TD_TRY(read_named(table, names[i], first, rows,
                          &((box *)read)->collects[i], &read->columns[i],
                          info));
    *ret_rows = TD_TAKE(read);
    return TD_OK;
}

const void *td_dataset_row(const td_dataset_column *column, size_t row,
                           size_t *ret_count)
{
    size_t begin = row == 0 ? 0 : column->ends[row - 1];
    *ret_count = column->ends[row] - begin;
    if (column->count == 0) return NULL;
    return (const char *)column->values +
           begin * td_dataset_type_size(column->type);
}
