// SPDX-License-Identifier: Apache-2.0
#include "dataset/meta/tasks.h"
#include "base/arena.h"
#include "dataset/disk/disk.h"
#include "dataset/table/table.h"

#include <stdlib.h>
#include <string.h>

// What pandas writes beside an index of texts.
#define PANDAS                                                                 \
    "{\"index_columns\": [\"task\"], \"column_indexes\": [{\"name\": null, "   \
    "\"field_name\": null, \"pandas_type\": \"unicode\", \"numpy_type\": "     \
    "\"object\", \"metadata\": {\"encoding\": \"UTF-8\"}}], \"columns\": "     \
    "[{\"name\": \"task_index\", \"field_name\": \"task_index\", "             \
    "\"pandas_type\": \"int64\", \"numpy_type\": \"int64\", \"metadata\": "    \
    "null}, {\"name\": \"task\", \"field_name\": \"task\", \"pandas_type\": "  \
    "\"unicode\", \"numpy_type\": \"object\", \"metadata\": null}], "          \
    "\"creator\": {\"library\": \"tendon\", \"version\": \"1\"}, "             \
    "\"pandas_version\": \"2.0.0\"}"

static td_err no_memory(td_errinfo *info)
{
    return td_fail(info, TD_ERR_NOMEM, "out of memory");
}

void td_dataset_tasks_free(td_dataset_tasks *tasks)
{
    for (size_t i = 0; i < tasks->count; i++)
        free(tasks->texts[i]);
    free(tasks->texts);
    free(tasks);
}

static td_err take_texts(td_dataset_tasks *tasks,
                         const td_dataset_column *column, size_t rows,
                         td_errinfo *info)
{
    if (column->type != TD_DATASET_TEXT || column->count != rows)
        return td_fail(info, TD_ERR_FORMAT, "tasks.parquet: has no texts");
    const td_slice *texts = column->values;
    tasks->texts = calloc(rows, sizeof(char *));
    if (!tasks->texts) return no_memory(info);
    for (size_t i = 0; i < rows; i++) {
        tasks->texts[i] = strndup(texts[i].data, texts[i].size);
        if (!tasks->texts[i]) return no_memory(info);
        tasks->count = i + 1;
    }
    return TD_OK;
}

// LeRobot finds a task by the row it stands in; its text is pandas' index,
// which has a name of its own in older datasets.
static td_err read_table(const td_dataset_table *table, td_dataset_tasks *tasks,
                         td_errinfo *info)
{
    size_t column;
    uint64_t rows = td_dataset_table_rows(table);
    const char *name = "task";
    if (td_dataset_table_find(table, name, &column) != TD_OK)
        name = "__index_level_0__";
    if (rows > TD_DATASET_MAX_TASKS)
        return td_fail(info, TD_ERR_LIMIT, "tasks.parquet: more than %u tasks",
                       TD_DATASET_MAX_TASKS);
    if (rows == 0) return TD_OK;
    TD_AUTO(td_dataset_rows) *read = NULL;
    TD_TRY(
        td_dataset_table_read(table, 0, (size_t)rows, &name, 1, &read, info));
    return take_texts(tasks, &read->columns[0], read->rows, info);
}

td_err td_dataset_tasks_read(const char *folder, td_dataset_tasks **ret_tasks,
                             td_errinfo *info)
{
    td_dataset_disk_path path;
    TD_TRY(td_dataset_disk_join(folder, "meta/tasks.parquet", &path, info));
    TD_AUTO(td_dataset_table) *table = NULL;
    TD_TRY(td_dataset_table_open(path.text, &table, info));
    TD_AUTO(td_dataset_tasks) *tasks = calloc(1, sizeof *tasks);
    if (!tasks) return no_memory(info);
    TD_TRY(read_table(table, tasks, info));
    *ret_tasks = TD_TAKE(tasks);
    return TD_OK;
}

static td_err write_rows(const td_dataset_tasks *tasks,
                         td_dataset_table_writer *writer, td_arena *scratch,
                         td_errinfo *info)
{
    size_t count = tasks->count;
    if (count == 0) return TD_OK;
    int64_t *indices = td_arena_alloc(scratch, count, sizeof *indices);
    td_slice *texts = td_arena_alloc(scratch, count, sizeof *texts);
    if (!indices || !texts) return no_memory(info);
    for (size_t i = 0; i < count; i++) {
        indices[i] = (int64_t)i;
        texts[i] = (td_slice){tasks->texts[i], strlen(tasks->texts[i])};
    }
    const td_dataset_column columns[] = {
        {TD_DATASET_I64, count, indices, NULL},
        {TD_DATASET_TEXT, count, texts, NULL},
    };
    return td_dataset_table_append(writer, columns, count, info);
}

td_err td_dataset_tasks_write(const td_dataset_tasks *tasks, int fd,
                              td_errinfo *info)
{
    const td_dataset_field fields[] = {
        {"task_index", TD_DATASET_I64, 1, 0, false},
        {"task", TD_DATASET_TEXT, 1, 0, false},
    };
    const td_dataset_note note = {"pandas", PANDAS};
    TD_AUTO(td_dataset_table_writer) *writer = NULL;
    TD_TRY(td_dataset_table_create(fd, fields, 2, &note, 1, &writer, info));
    td_arena scratch = {0};
    td_err err = write_rows(tasks, writer, &scratch, info);
    td_arena_done(&scratch);
    TD_TRY(err);
    return td_dataset_table_finish(writer, info);
}
