// SPDX-License-Identifier: Apache-2.0
#include "engine/worker/ring/segments.h"

#include "base/err.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FOLDER "/dev/shm/"

_Static_assert(TD_WORKER_SEGMENTS <= 32, "a bit each in `gone`");

static bool holds(const td_engine_worker_segment *segment, const void *data,
                  size_t size)
{
    uintptr_t at = (uintptr_t)data;
    return segment->file.number != 0 && at >= segment->begin &&
           at < segment->end && size <= segment->end - at;
}

// One that was removed reads "PATH (deleted)".
static bool is_there(const td_engine_worker_segment *segment)
{
    char link[64], path[sizeof segment->file.path];
    (void)snprintf(link, sizeof link,
                   "/proc/self/map_files/%" PRIxPTR "-%" PRIxPTR,
                   segment->begin, segment->end);
    ssize_t length = readlink(link, path, sizeof path);
    return length == (ssize_t)strlen(segment->file.path) &&
           memcmp(path, segment->file.path, (size_t)length) == 0;
}

static bool is_mapped(const td_worker_hello *hello, uint32_t index,
                      uint64_t number)
{
    return __atomic_load_n(&hello->segments[index], __ATOMIC_ACQUIRE) == number;
}

// `asked` is the last that was there, and stays: the message is in it.
static uint64_t place_of(td_engine_worker_segments *segments,
                         const td_worker_hello *hello,
                         const td_wire_image *image,
                         const td_engine_worker_segment **asked)
{
    bool waits = false; // for the worker
    for (uint32_t i = 0; i < TD_WORKER_SEGMENTS; i++) {
        const td_engine_worker_segment *segment = &segments->known[i];
        if (!holds(segment, image->data, image->size)) continue;
        if (!is_mapped(hello, i, segment->file.number)) {
            waits = true;
            continue;
        }
        if (segment != *asked && !is_there(segment)) continue;
        *asked = segment;
        return (uint64_t)(i + 1) << TD_WORKER_SEGMENT_SHIFT |
               ((uintptr_t)image->data - segment->begin);
    }
    if (!waits) atomic_store(&segments->wanted, (uintptr_t)image->data);
    return 0;
}

void td_engine_worker_segments_place(td_engine_worker_segments *segments,
                                     const td_worker_hello *hello,
                                     const td_wire_obs *obs,
                                     uint64_t ret_places[TD_WIRE_MAX_IMAGES])
{
    const td_engine_worker_segment *asked = NULL;
    for (uint32_t i = 0; obs && i < obs->image_count; i++) {
        const td_wire_image *image = &obs->images[i];
        bool shown = image->codec == TD_WIRE_RAW && image->data;
        ret_places[i] = shown ? place_of(segments, hello, image, &asked) : 0;
    }
}

// A line of /proc/self/maps: "BEGIN-END rw-s OFFSET DEVICE INODE   PATH\n".
static bool read_line(char *line, uintptr_t wanted,
                      td_engine_worker_segment *ret_segment)
{
    td_engine_worker_segment segment = {0};
    char access[5] = "";
    uint64_t offset = 0;
    int path = 0;
    line[strcspn(line, "\n")] = '\0';
    if (sscanf(line,
               "%" SCNxPTR "-%" SCNxPTR " %4s %" SCNx64 " %*s %" SCNu64 " %n",
               &segment.begin, &segment.end, access, &offset,
               &segment.file.inode, &path) < 5)
        return false;
    size_t length = strlen(line + path);
    if (wanted < segment.begin || wanted >= segment.end || offset != 0 ||
        access[3] != 's' || length >= sizeof segment.file.path ||
        strncmp(line + path, FOLDER, sizeof FOLDER - 1) != 0)
        return false;
    memcpy(segment.file.path, line + path, length);
    struct stat file; // there is none where it was removed
    if (stat(segment.file.path, &file) != 0 ||
        file.st_ino != segment.file.inode)
        return false;
    *ret_segment = segment;
    return true;
}

static bool search(uintptr_t wanted, td_engine_worker_segment *ret_segment)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    if (!maps) return false;
    char *line = NULL;
    size_t room = 0;
    bool found = false;
    while (!found && getline(&line, &room, maps) > 0)
        found = read_line(line, wanted, ret_segment);
    free(line);
    (void)fclose(maps);
    return found;
}

static bool is_known(const td_engine_worker_segments *segments,
                     const td_engine_worker_segment *segment)
{
    for (uint32_t i = 0; i < TD_WORKER_SEGMENTS; i++) {
        const td_engine_worker_segment *known = &segments->known[i];
        if (known->file.number && known->begin == segment->begin &&
            known->end == segment->end &&
            known->file.inode == segment->file.inode)
            return true;
    }
    return false;
}

void td_engine_worker_segments_scan(
    td_engine_worker_segments *segments,
    td_engine_worker_segments_change *ret_change)
{
    td_engine_worker_segments_change change = {0};
    for (uint32_t i = 0; i < TD_WORKER_SEGMENTS; i++)
        if (segments->known[i].file.number && !is_there(&segments->known[i]))
            change.gone |= UINT32_C(1) << i;
    uintptr_t wanted = atomic_exchange(&segments->wanted, 0);
    change.has_found = wanted && search(wanted, &change.found) &&
                       !is_known(segments, &change.found);
    *ret_change = change;
}

static void set_number(td_worker_segment *shared, uint64_t number)
{
    __atomic_store_n(&shared->number, number, __ATOMIC_RELEASE);
}

// When all places are taken its frames are copied, until a robot leaves.
static void add(td_engine_worker_segments *segments,
                const td_engine_worker_segment *found, td_worker_offer *offer)
{
    uint32_t i = 0;
    while (segments->known[i].file.number)
        if (++i == TD_WORKER_SEGMENTS) return;
    segments->known[i] = *found;
    offer->segments[i] = found->file;
    segments->known[i].file.number = ++segments->numbers;
    set_number(&offer->segments[i], segments->numbers);
}

bool td_engine_worker_segments_apply(
    td_engine_worker_segments *segments,
    const td_engine_worker_segments_change *change, td_worker_offer *offer)
{
    if (!change->gone && !change->has_found) return false;
    for (uint32_t i = 0; i < TD_WORKER_SEGMENTS; i++) {
        if (!(change->gone >> i & 1)) continue;
        segments->known[i].file.number = 0;
        set_number(&offer->segments[i], 0);
    }
    if (change->has_found) add(segments, &change->found, offer);
    __atomic_store_n(&offer->segments_changed, offer->segments_changed + 1,
                     __ATOMIC_RELEASE);
    return true;
}

void td_engine_worker_segments_forget(td_engine_worker_segments *segments)
{
    memset(segments->known, 0, sizeof segments->known);
}
