// SPDX-License-Identifier: Apache-2.0
// The journal of an episode. Checksums would stop a fuzzer at the first byte,
// so it gives the records, {u8 file, u16 size, bytes} each, and they are framed
// here.
#include "dataset/disk/disk.h"
#include "dataset/journal/entries.h"
#include "dataset/journal/unsaved.h"

#include <stdlib.h>
#include <string.h>

static const char *const names[] = {"rows", "0.video", "0.pixels"};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void add_records(const char *folder, const uint8_t *data, size_t size,
                        size_t file)
{
    td_dataset_disk_path path;
    td_dataset_entries records;
    if (td_dataset_disk_join(folder, names[file], &path, NULL) != TD_OK ||
        td_dataset_entries_new(path.text, &records, NULL) != TD_OK)
        abort();
    while (size >= 3) {
        size_t length = data[1] | (size_t)data[2] << 8;
        if (length > size - 3) length = size - 3;
        td_slice body = {data + 3, length};
        if (data[0] % TD_COUNT_OF(names) == file &&
            td_dataset_entries_add(&records, (td_slice){0}, body) != TD_OK)
            abort();
        data += 3 + length;
        size -= 3 + length;
    }
    td_dataset_entries_done(&records);
}

static void look_at(const td_dataset_unsaved *unsaved)
{
    for (uint32_t i = 0; i < unsaved->frames; i++)
        if (unsaved->task[i] >= unsaved->task_count) abort();
    if (unsaved->schema->camera_count == 0 || unsaved->frames == 0) return;
    TD_AUTO(td_dataset_unsaved_camera) *camera = NULL;
    td_slice pixels;
    td_errinfo info;
    if (td_dataset_unsaved_camera_open(unsaved, 0, &camera, &info) != TD_OK ||
        td_dataset_unsaved_pixels(camera, unsaved->frames - 1, &pixels,
                                  &info) != TD_OK)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char folder[] = "/dev/shm/td-journal-XXXXXX";
    TD_AUTO(td_dataset_unsaved) *unsaved = NULL;
    td_errinfo info = {""};
    if (!mkdtemp(folder)) abort();
    for (size_t i = 0; i < TD_COUNT_OF(names); i++)
        add_records(folder, data, size, i);
    if (td_dataset_unsaved_load(folder, false, NULL, &unsaved, &info) == TD_OK)
        look_at(unsaved);
    return td_dataset_disk_remove(folder, &info) == TD_OK ? 0 : -1;
}
