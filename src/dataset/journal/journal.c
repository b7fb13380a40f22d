// SPDX-License-Identifier: Apache-2.0
// Writes the journal of an episode while it is recorded.
//
// Three kinds of files, each a file of entries (dataset/journal/entries.h):
// `rows`, and for each camera `K.video` and `K.pixels`. They are only appended
// to, and an entry whose write failed is overwritten by the next, so that a
// reader sees whole entries and nothing else. What the entries hold is
// TD_DATASET_JOURNAL_VERSION; journals on disks outlive the program that wrote
// them, so a change of it is a new version and the old one is still read.
//
// The first entry of `rows` is the schema as JSON, so that the episode can be
// saved without its recorder. A row is the td_dataset_journal_row, then state
// and action as floats; a task is written once, before the first row that has
// it.
//
// An episode ends in two steps: first everything is synced, then the END entry
// is written and synced. Whoever finds END in a journal may rely on all that
// stands before it. td_dataset_journal_seal() does the same for a journal whose
// recorder is gone: it cuts `rows` after its last whole entry and appends END
// there.
//
// Closing leaves the files where they are; who removes them is decided by
// dataset/write/save.c.
#include "dataset/journal/journal.h"
#include "dataset/disk/disk.h"
#include "dataset/journal/entries.h"
#include "dataset/meta/schema.h"
#include "dataset/stats/pictures.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct camera_files {
    td_dataset_entries video;
    td_dataset_entries pixels;
} camera_files;

struct td_dataset_journal {
    td_dataset_disk_path folder;
    td_dataset_entries rows;
    uint32_t state_count;
    uint32_t action_count;
    float *values; // of one row
    uint32_t camera_count;
    camera_files cameras[];
};

static td_err failed(const td_dataset_journal *journal, td_err err,
                     td_errinfo *info)
{
    return td_fail(info, err, "%s: %s", journal->folder.text,
                   err == TD_ERR_FULL ? "the disk is full" : td_err_text(err));
}

static td_err add_kind(td_dataset_entries *rows, td_dataset_journal_kind kind,
                       td_slice body)
{
    uint32_t head = kind;
    return td_dataset_entries_add(rows, (td_slice){&head, sizeof head}, body);
}

static td_err new_file(const td_dataset_journal *journal, const char *name,
                       td_dataset_entries *ret_entries, td_errinfo *info)
{
    td_dataset_disk_path path;
    TD_TRY(td_dataset_disk_join(journal->folder.text, name, &path, info));
    return td_dataset_entries_new(path.text, ret_entries, info);
}

static td_err new_files(td_dataset_journal *journal, td_errinfo *info)
{
    TD_TRY(new_file(journal, "rows", &journal->rows, info));
    for (uint32_t i = 0; i < journal->camera_count; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "%u.video", i);
        TD_TRY(new_file(journal, name, &journal->cameras[i].video, info));
        (void)snprintf(name, sizeof name, "%u.pixels", i);
        TD_TRY(new_file(journal, name, &journal->cameras[i].pixels, info));
    }
    return TD_OK;
}

static td_err add_head(td_dataset_journal *journal,
                       const td_dataset_schema *schema, td_errinfo *info)
{
    json_t *body = NULL;
    TD_TRY(td_dataset_schema_write(schema, &body));
    json_t *head = json_pack("{s:i, s:o}", "version",
                             TD_DATASET_JOURNAL_VERSION, "schema", body);
    char *text = head ? json_dumps(head, JSON_COMPACT) : NULL;
    json_decref(head);
    if (!text) return TD_ERR_NOMEM;
    td_err err = add_kind(&journal->rows, TD_DATASET_JOURNAL_HEAD,
                          (td_slice){text, strlen(text)});
    free(text);
    return err == TD_OK ? TD_OK : failed(journal, err, info);
}

td_err td_dataset_journal_new(const char *folder,
                              const td_dataset_schema *schema,
                              td_dataset_journal **ret_journal,
                              td_errinfo *info)
{
    TD_AUTO(td_dataset_journal) *journal = calloc(
        1, sizeof *journal + schema->camera_count * sizeof journal->cameras[0]);
    if (!journal) return TD_ERR_NOMEM;
    journal->rows.fd = -1;
    journal->camera_count = schema->camera_count;
    for (uint32_t i = 0; i < schema->camera_count; i++)
        journal->cameras[i] = (camera_files){{.fd = -1}, {.fd = -1}};
    TD_TRY(td_dataset_disk_join(folder, ".", &journal->folder, info));
    journal->state_count = schema->state_count;
    journal->action_count = schema->action_count;
    journal->values = calloc((size_t)schema->state_count + schema->action_count,
                             sizeof *journal->values);
    if (!journal->values) return TD_ERR_NOMEM;

    TD_TRY(td_dataset_disk_make_folder_synced(folder, info));
    TD_TRY(new_files(journal, info));
    TD_TRY(td_dataset_disk_sync(journal->folder.text, info));
    TD_TRY(add_head(journal, schema, info));
    *ret_journal = TD_TAKE(journal);
    return TD_OK;
}

void td_dataset_journal_close(td_dataset_journal *journal)
{
    td_dataset_entries_done(&journal->rows);
    for (uint32_t i = 0; i < journal->camera_count; i++) {
        td_dataset_entries_done(&journal->cameras[i].video);
        td_dataset_entries_done(&journal->cameras[i].pixels);
    }
    free(journal->values);
    free(journal);
}

td_err td_dataset_journal_row_add(td_dataset_journal *journal,
                                  const td_dataset_journal_row *row,
                                  const float *state, const float *action,
                                  td_errinfo *info)
{
    struct __attribute__((packed)) {
        uint32_t kind;
        td_dataset_journal_row row;
    } head = {TD_DATASET_JOURNAL_ROW, *row};
    size_t count = (size_t)journal->state_count + journal->action_count;
    memcpy(journal->values, state, journal->state_count * sizeof *state);
    memcpy(journal->values + journal->state_count, action,
           journal->action_count * sizeof *action);
    td_err err = td_dataset_entries_add(
        &journal->rows, (td_slice){&head, sizeof head},
        (td_slice){journal->values, count * sizeof *journal->values});
    return err == TD_OK ? TD_OK : failed(journal, err, info);
}

td_err td_dataset_journal_task_add(td_dataset_journal *journal,
                                   const char *task, td_errinfo *info)
{
    td_err err = add_kind(&journal->rows, TD_DATASET_JOURNAL_TASK,
                          (td_slice){task, strlen(task)});
    return err == TD_OK ? TD_OK : failed(journal, err, info);
}

static td_err add_video(td_dataset_journal *journal, uint32_t camera,
                        td_dataset_journal_packet head, td_slice data,
                        td_errinfo *info)
{
    td_err err = td_dataset_entries_add(&journal->cameras[camera].video,
                                        (td_slice){&head, sizeof head}, data);
    return err == TD_OK ? TD_OK : failed(journal, err, info);
}

td_err td_dataset_journal_video_begin(td_dataset_journal *journal,
                                      uint32_t camera, td_slice head,
                                      td_errinfo *info)
{
    return add_video(journal, camera, (td_dataset_journal_packet){.frame = -1},
                     head, info);
}

td_err td_dataset_journal_packet_add(td_dataset_journal *journal,
                                     uint32_t camera,
                                     const td_media_video_packet *packet,
                                     td_errinfo *info)
{
    td_dataset_journal_packet head = {packet->frame, packet->key, 0};
    return add_video(journal, camera, head, packet->data, info);
}

td_err td_dataset_journal_pixels_add(td_dataset_journal *journal,
                                     uint32_t camera, td_slice pixels,
                                     td_errinfo *info)
{
    td_err err = td_dataset_entries_add(&journal->cameras[camera].pixels,
                                        (td_slice){0}, pixels);
    return err == TD_OK ? TD_OK : failed(journal, err, info);
}

size_t td_dataset_journal_pixel_bytes(const td_dataset_camera *camera)
{
    uint32_t step = td_dataset_pictures_step(camera->height, camera->width);
    size_t rows = (camera->height + step - 1) / step;
    return rows * ((camera->width + step - 1) / step) * 3;
}

uint64_t td_dataset_journal_kept_bytes(const td_dataset_journal *journal)
{
    off_t sum = journal->rows.end;
    for (uint32_t i = 0; i < journal->camera_count; i++)
        sum += journal->cameras[i].video.end;
    return (uint64_t)sum;
}

uint64_t td_dataset_journal_bytes(const td_dataset_journal *journal)
{
    uint64_t sum = td_dataset_journal_kept_bytes(journal);
    for (uint32_t i = 0; i < journal->camera_count; i++)
        sum += (uint64_t)journal->cameras[i].pixels.end;
    return sum;
}

static td_err sync_one(const td_dataset_journal *journal, int fd,
                       td_errinfo *info)
{
    if (fdatasync(fd) == 0) return TD_OK;
    return td_dataset_disk_fail(journal->folder.text, info);
}

td_err td_dataset_journal_sync(td_dataset_journal *journal, td_errinfo *info)
{
    for (uint32_t i = 0; i < journal->camera_count; i++) {
        TD_TRY(sync_one(journal, journal->cameras[i].video.fd, info));
        TD_TRY(sync_one(journal, journal->cameras[i].pixels.fd, info));
    }
    return sync_one(journal, journal->rows.fd, info);
}

// Everything else is on the disk before the entry that says that it is.
td_err td_dataset_journal_end(td_dataset_journal *journal, uint32_t episode,
                              td_errinfo *info)
{
    TD_TRY(td_dataset_journal_sync(journal, info));
    td_err err = add_kind(&journal->rows, TD_DATASET_JOURNAL_END,
                          (td_slice){&episode, sizeof episode});
    if (err != TD_OK) return failed(journal, err, info);
    return sync_one(journal, journal->rows.fd, info);
}

static bool is_end(td_slice entry)
{
    uint32_t kind = 0;
    if (entry.size < sizeof kind) return false;
    memcpy(&kind, entry.data, sizeof kind);
    return kind == TD_DATASET_JOURNAL_END;
}

// Where the rows of a journal stop being whole, or an end of theirs begins.
static td_err find_end(const char *rows, off_t *ret_end, td_errinfo *info)
{
    td_dataset_entries_reader reader;
    td_slice entry = {0};
    TD_TRY(td_dataset_entries_open(rows, &reader, info));
    td_err err = TD_OK;
    while (err == TD_OK && !is_end(entry)) {
        *ret_end = (off_t)reader.at;
        err = td_dataset_entries_next(&reader, &entry);
    }
    td_dataset_entries_close(&reader);
    return err == TD_ERR_EMPTY ? TD_OK : err;
}

static td_err add_end(const char *rows, off_t end, uint32_t episode,
                      td_errinfo *info)
{
    td_dataset_entries entries = {.fd = open(rows, O_RDWR | O_CLOEXEC),
                                  .end = end};
    if (entries.fd < 0) return td_dataset_disk_fail(rows, info);
    td_err err = TD_OK;
    if (ftruncate(entries.fd, end) != 0) err = td_dataset_disk_fail(rows, info);
    if (err == TD_OK)
        err = add_kind(&entries, TD_DATASET_JOURNAL_END,
                       (td_slice){&episode, sizeof episode});
    td_dataset_entries_done(&entries);
    return err;
}

td_err td_dataset_journal_seal(const char *folder, uint32_t episode,
                               td_errinfo *info)
{
    off_t end = 0;
    td_dataset_disk_path rows;
    TD_TRY(td_dataset_disk_join(folder, "rows", &rows, info));
    TD_TRY(find_end(rows.text, &end, info));
    if (end == 0)
        return td_fail(info, TD_ERR_FORMAT, "%s: no entry is whole", rows.text);
    TD_TRY(td_dataset_disk_sync_tree(folder, info));
    TD_TRY(add_end(rows.text, end, episode, info));
    return td_dataset_disk_sync(rows.text, info);
}
