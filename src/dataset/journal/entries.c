// SPDX-License-Identifier: Apache-2.0
#include "dataset/journal/entries.h"
#include "dataset/disk/disk.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

typedef struct frame_head {
    uint32_t size;
    uint32_t crc;
} frame_head;
static_assert(sizeof(frame_head) == TD_DATASET_ENTRIES_FRAME_BYTES, "no gap");

// zlib starts over where there is nothing to look at.
static uint32_t crc_of(uint32_t size, td_slice head, td_slice body)
{
    uLong crc = crc32_z(0, (const Bytef *)&size, sizeof size);
    if (head.size > 0) crc = crc32_z(crc, head.data, head.size);
    if (body.size > 0) crc = crc32_z(crc, body.data, body.size);
    return (uint32_t)crc;
}

td_err td_dataset_entries_new(const char *path, td_dataset_entries *ret_entries,
                              td_errinfo *info)
{
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0) return td_dataset_disk_fail(path, info);
    *ret_entries = (td_dataset_entries){.fd = fd};
    return TD_OK;
}

void td_dataset_entries_done(td_dataset_entries *entries)
{
    if (entries->fd >= 0) (void)close(entries->fd);
    entries->fd = -1;
}

td_err td_dataset_entries_add(td_dataset_entries *entries, td_slice head,
                              td_slice body)
{
    assert(head.size <= TD_DATASET_ENTRIES_MAX_HEAD);
    size_t size = head.size + body.size;
    if (size > TD_DATASET_ENTRIES_MAX_BYTES) return TD_ERR_LIMIT;

    uint8_t first[sizeof(frame_head) + TD_DATASET_ENTRIES_MAX_HEAD];
    frame_head frame = {(uint32_t)size, crc_of((uint32_t)size, head, body)};
    memcpy(first, &frame, sizeof frame);
    if (head.size > 0) memcpy(first + sizeof frame, head.data, head.size);

    td_slice start = {first, sizeof frame + head.size};
    off_t rest = entries->end + (off_t)start.size;
    TD_TRY(td_dataset_disk_write(entries->fd, start, entries->end));
    TD_TRY(td_dataset_disk_write(entries->fd, body, rest));
    entries->end = rest + (off_t)body.size;
    return TD_OK;
}

td_err td_dataset_entries_open(const char *path,
                               td_dataset_entries_reader *ret_reader,
                               td_errinfo *info)
{
    struct stat found;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) return td_dataset_disk_fail(path, info);
    if (fstat(fd, &found) != 0 || !S_ISREG(found.st_mode)) {
        (void)close(fd);
        return td_fail(info, TD_ERR_IO, "%s: is no file", path);
    }
    *ret_reader =
        (td_dataset_entries_reader){.fd = fd, .size = (uint64_t)found.st_size};
    return TD_OK;
}

void td_dataset_entries_close(td_dataset_entries_reader *reader)
{
    if (reader->fd >= 0) (void)close(reader->fd);
    free(reader->bytes);
    *reader = (td_dataset_entries_reader){.fd = -1};
}

// EMPTY where the file ends before.
static td_err read_all(int fd, void *to, size_t size, uint64_t offset)
{
    uint8_t *at = to;
    while (size > 0) {
        ssize_t got = pread(fd, at, size, (off_t)offset);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return TD_ERR_IO;
        if (got == 0) return TD_ERR_EMPTY;
        at += got;
        offset += (uint64_t)got;
        size -= (size_t)got;
    }
    return TD_OK;
}

static td_err grow(td_dataset_entries_reader *reader, size_t size)
{
    if (size <= reader->capacity) return TD_OK;
    uint8_t *bytes = realloc(reader->bytes, size);
    if (!bytes) return TD_ERR_NOMEM;
    reader->bytes = bytes;
    reader->capacity = size;
    return TD_OK;
}

td_err td_dataset_entries_next(td_dataset_entries_reader *reader,
                               td_slice *ret_entry)
{
    frame_head frame;
    uint64_t left = reader->size - reader->at;
    if (left < sizeof frame) return TD_ERR_EMPTY;
    TD_TRY(read_all(reader->fd, &frame, sizeof frame, reader->at));
    if (frame.size == 0 || frame.size > TD_DATASET_ENTRIES_MAX_BYTES ||
        frame.size > left - sizeof frame)
        return TD_ERR_EMPTY;

    TD_TRY(grow(reader, frame.size));
    TD_TRY(read_all(reader->fd, reader->bytes, frame.size,
                    reader->at + sizeof frame));
    td_slice entry = {reader->bytes, frame.size};
    if (crc_of(frame.size, entry, (td_slice){0}) != frame.crc)
        return TD_ERR_EMPTY;
    reader->at += sizeof frame + frame.size;
    *ret_entry = entry;
    return TD_OK;
}
