// SPDX-License-Identifier: Apache-2.0
// dataset_copy FROM TO: the tables of a dataset without pictures, read and
// written again, one row group an episode; the folders of TO are there.
#include "dataset/read/reader.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct copying {
    td_dataset_reader *reader;
    const char *to;
    td_errinfo *info;
};

static td_err create(const char *to, const char *name, int *ret_fd)
{
    char path[4096];
    (void)snprintf(path, sizeof path, "%s/%s", to, name);
    *ret_fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    return *ret_fd < 0 ? TD_ERR_IO : TD_OK;
}

// An episode's rows, column by column, as the table takes them.
struct sheet {
    td_dataset_column *columns;
    void **values;
    size_t count;
};

static void sheet_done(struct sheet *sheet)
{
    for (size_t i = 0; i < sheet->count; i++)
        free(sheet->values[i]);
    free(sheet->values);
    free(sheet->columns);
}

static td_err sheet_init(struct sheet *sheet, const td_dataset_field *fields,
                         size_t count, size_t rows)
{
    sheet->columns = calloc(count, sizeof *sheet->columns);
    sheet->values = calloc(count, sizeof(void *));
    if (!sheet->columns || !sheet->values) return TD_ERR_NOMEM;
    sheet->count = count;
    for (size_t i = 0; i < count; i++) {
        size_t values = rows * fields[i].width;
        sheet->values[i] = calloc(values, td_dataset_type_size(fields[i].type));
        if (!sheet->values[i]) return TD_ERR_NOMEM;
        sheet->columns[i] =
            (td_dataset_column){fields[i].type, values, sheet->values[i], NULL};
    }
    return TD_OK;
}

static td_err fill(const struct copying *copying,
                   const td_dataset_field *fields,
                   const td_dataset_episode *episode, struct sheet *sheet)
{
    for (size_t row = 0; row < episode->length; row++) {
        td_dataset_reading reading;
        TD_TRY(td_dataset_reader_seek(copying->reader, episode->from + row,
                                      &reading, copying->info));
        for (size_t i = 0; i < sheet->count; i++) {
            td_dataset_type type;
            const void *values;
            size_t count;
            TD_TRY(td_dataset_reader_values(copying->reader, fields[i].name,
                                            &type, &values, &count));
            size_t size = count * td_dataset_type_size(type);
            memcpy((char *)sheet->values[i] + row * size, values, size);
        }
    }
    return TD_OK;
}

static td_err write_episode(const struct copying *copying,
                            const td_dataset_field *fields, size_t count,
                            const td_dataset_episode *episode,
                            td_dataset_table_writer *writer)
{
    struct sheet sheet = {0};
    td_err err = sheet_init(&sheet, fields, count, episode->length);
    if (err == TD_OK) err = fill(copying, fields, episode, &sheet);
    if (err == TD_OK)
        err = td_dataset_table_append(writer, sheet.columns, episode->length,
                                      copying->info);
    sheet_done(&sheet);
    return err;
}

static td_err write_data(const struct copying *copying,
                         const td_dataset_field *fields, size_t count,
                         const char *note)
{
    const td_dataset_episodes *episodes =
        td_dataset_reader_episodes(copying->reader);
    const td_dataset_note notes = {"huggingface", note};
    TD_AUTO(td_dataset_table_writer) *writer = NULL;
    int fd;
    TD_TRY(create(copying->to, "data/chunk-000/file-000.parquet", &fd));
    TD_TRY(td_dataset_table_create(fd, fields, count, &notes, 1, &writer,
                                   copying->info));
    for (size_t i = 0; i < episodes->count; i++)
        TD_TRY(
            write_episode(copying, fields, count, &episodes->items[i], writer));
    TD_TRY(td_dataset_table_finish(writer, copying->info));
    return close(fd) == 0 ? TD_OK : TD_ERR_IO;
}

// Rewrites the file each time, as a recorder does.
static td_err write_episodes(const struct copying *copying)
{
    const td_dataset_info *dataset = td_dataset_reader_info(copying->reader);
    const td_dataset_episodes *episodes =
        td_dataset_reader_episodes(copying->reader);
    const td_dataset_stats *none[TD_DATASET_MAX_FEATURES] = {NULL};
    char old[4096], path[4096];
    (void)snprintf(path, sizeof path,
                   "%s/meta/episodes/chunk-000/file-000.parquet", copying->to);
    (void)snprintf(old, sizeof old, "%s/old", copying->to);
    for (size_t i = 0; i < episodes->count; i++) {
        int fd;
        TD_TRY(create(copying->to, "meta/episodes/chunk-000/file-000.parquet",
                      &fd));
        TD_TRY(td_dataset_episodes_append(i > 0 ? old : NULL, NULL, dataset, i,
                                          &episodes->items[i], none, fd,
                                          copying->info));
        (void)unlink(old);
        if (close(fd) != 0 || link(path, old) != 0 || unlink(path) != 0)
            return TD_ERR_IO;
    }
    return rename(old, path) == 0 ? TD_OK : TD_ERR_IO;
}

static td_err write_rest(const struct copying *copying)
{
    char *text = NULL;
    int fd;
    TD_TRY(
        td_dataset_info_text(td_dataset_reader_info(copying->reader), &text));
    td_err err = create(copying->to, "meta/info.json", &fd);
    size_t size = strlen(text);
    if (err == TD_OK && write(fd, text, size) != (ssize_t)size) err = TD_ERR_IO;
    free(text);
    if (err == TD_OK) (void)close(fd);
    if (err == TD_OK) err = create(copying->to, "meta/tasks.parquet", &fd);
    if (err == TD_OK)
        err = td_dataset_tasks_write(td_dataset_reader_tasks(copying->reader),
                                     fd, copying->info);
    return err;
}

static td_err run(const char *from, const char *to, td_errinfo *info)
{
    TD_AUTO(td_dataset_reader) *reader = NULL;
    TD_TRY(td_dataset_reader_open(from, &reader, info));
    const struct copying copying = {reader, to, info};
    td_dataset_field *fields = NULL;
    char *note = NULL;
    size_t count = 0;
    td_err err = td_dataset_info_fields(td_dataset_reader_info(reader), &fields,
                                        &count, info);
    if (err == TD_OK)
        err = td_dataset_info_note(td_dataset_reader_info(reader), &note);
    if (err == TD_OK) err = write_data(&copying, fields, count, note);
    if (err == TD_OK) err = write_episodes(&copying);
    if (err == TD_OK) err = write_rest(&copying);
    free(fields);
    free(note);
    return err;
}

int main(int argc, char **argv)
{
    td_errinfo info = {""};
    if (argc != 3) return 2;
    td_err err = run(argv[1], argv[2], &info);
    if (err == TD_OK) return 0;
    (void)fprintf(stderr, "%s: %s\n", td_err_name(err), info.text);
    return 1;
}
