// SPDX-License-Identifier: Apache-2.0
#include "media/video/boxes.h"

#include <inttypes.h>
#include <string.h>

#define MAX_TRACKS 4
#define MAX_INDEX_BYTES (64 << 20) // of everything in the file's moov
#define MAX_BOXES 4096             // at any one level
#define MAX_DEPTH 8

typedef struct mp4_box {
    char name[5];
    int64_t at;   // of its content
    int64_t size; // of its content
} mp4_box;

typedef struct mp4_walk {
    const td_media_video_place *place;
    int tracks;
    bool index; // a moov was there
    td_errinfo *info;
} mp4_walk;

static uint64_t big_endian(const uint8_t *bytes, int count)
{
    uint64_t value = 0;
    for (int i = 0; i < count; i++)
        value = value << 8 | bytes[i];
    return value;
}

static td_err cut_short(const mp4_walk *walk, const char *name, int64_t at)
{
    return td_fail(walk->info, TD_ERR_FORMAT,
                   "damaged or cut short: the box \"%s\" at %" PRId64
                   " does not fit into the file's %" PRId64 " bytes",
                   name, at, walk->place->size);
}

static td_err read_at(const mp4_walk *walk, int64_t at, uint8_t *ret_bytes,
                      size_t size, const char *name)
{
    size_t got = 0;
    TD_TRY(td_media_video_place_read(walk->place, at, ret_bytes, size, &got,
                                     walk->info));
    return got == size ? TD_OK : cut_short(walk, name, at);
}

// Only for people to read.
static void take_name(const uint8_t *bytes, char ret_name[5])
{
    memcpy(ret_name, bytes, 4);
    ret_name[4] = '\0';
    for (int i = 0; i < 4; i++)
        if (bytes[i] < ' ' || bytes[i] > '~') ret_name[i] = '?';
}

// The box that begins at `at`, inside of what ends at `end`.
static td_err read_box(const mp4_walk *walk, int64_t at, int64_t end,
                       mp4_box *ret_box)
{
    uint8_t head[16];
    mp4_box box = {"", 0, 0};
    int64_t head_bytes = 8;
    if (end - at < head_bytes) return cut_short(walk, "?", at);
    TD_TRY(read_at(walk, at, head, 8, "?"));
    take_name(head + 4, box.name);
    uint64_t size = big_endian(head, 4);
    if (size == 0) size = (uint64_t)(end - at); // up to the end
    if (size == 1) {
        head_bytes = 16;
        TD_TRY(read_at(walk, at, head, 16, box.name));
        size = big_endian(head + 8, 8);
    }
    if (size < (uint64_t)head_bytes || size > (uint64_t)(end - at))
        return cut_short(walk, box.name, at);
    box.at = at + head_bytes;
    box.size = (int64_t)size - head_bytes;
    *ret_box = box;
    return TD_OK;
}

// A sample has a byte at least.
static td_err check_sizes(mp4_walk *walk, const mp4_box *box)
{
    uint8_t head[12];
    if (box->size < (int64_t)sizeof head)
        return cut_short(walk, box->name, box->at);
    TD_TRY(read_at(walk, box->at, head, sizeof head, box->name));
    uint64_t samples = big_endian(head + 8, 4);
    if (samples > (uint64_t)walk->place->size)
        return td_fail(walk->info, TD_ERR_LIMIT,
                       "%" PRIu64 " samples in a file of %" PRId64 " bytes",
                       samples, walk->place->size);
    return TD_OK;
}

static td_err check_track(mp4_walk *walk, const mp4_box *box)
{
    (void)box;
    if (++walk->tracks <= MAX_TRACKS) return TD_OK;
    return td_fail(walk->info, TD_ERR_LIMIT, "more than %d tracks", MAX_TRACKS);
}

static td_err check_index(mp4_walk *walk, const mp4_box *box)
{
    walk->index = true;
    if (box->size <= MAX_INDEX_BYTES) return TD_OK;
    return td_fail(walk->info, TD_ERR_LIMIT,
                   "an index of %" PRId64 " bytes, at most %d", box->size,
                   MAX_INDEX_BYTES);
}

static td_err refuse(mp4_walk *walk, const mp4_box *box)
{
    return td_fail(walk->info, TD_ERR_UNSUPPORTED,
                   "an MP4 in fragments or with a compressed index (\"%s\")",
                   box->name);
}

static const struct {
    const char *name;
    td_err (*check)(mp4_walk *walk, const mp4_box *box);
    bool holds_boxes;
} rules[] = {
    {"moov", check_index, true},  {"trak", check_track, true},
    {"mdia", NULL, true},         {"minf", NULL, true},
    {"stbl", NULL, true},         {"stsz", check_sizes, false},
    {"stz2", check_sizes, false}, {"cmov", refuse, false},
    {"mvex", refuse, false},      {"moof", refuse, false},
};

static td_err check_boxes(mp4_walk *walk, int64_t at, int64_t end, int depth);

static td_err check_box(mp4_walk *walk, const mp4_box *box, int depth)
{
    for (size_t i = 0; i < TD_COUNT_OF(rules); i++) {
        if (strcmp(rules[i].name, box->name) != 0) continue;
        if (rules[i].check) TD_TRY(rules[i].check(walk, box));
        if (rules[i].holds_boxes)
            TD_TRY(check_boxes(walk, box->at, box->at + box->size, depth + 1));
    }
    return TD_OK;
}

static td_err check_boxes(mp4_walk *walk, int64_t at, int64_t end, int depth)
{
    if (depth > MAX_DEPTH)
        return td_fail(walk->info, TD_ERR_LIMIT, "boxes in boxes, too deep");
    for (int i = 0; at < end; i++) {
        mp4_box box = {"", 0, 0};
        if (i == MAX_BOXES)
            return td_fail(walk->info, TD_ERR_LIMIT, "more than %d boxes",
                           MAX_BOXES);
        TD_TRY(read_box(walk, at, end, &box));
        TD_TRY(check_box(walk, &box, depth));
        at = box.at + box.size;
    }
    return TD_OK;
}

td_err td_media_video_boxes_check(const td_media_video_place *place,
                                  td_errinfo *info)
{
    mp4_walk walk = {.place = place, .info = info};
    TD_TRY(check_boxes(&walk, 0, place->size, 0));
    if (walk.index) return TD_OK;
    return td_fail(info, TD_ERR_FORMAT,
                   "damaged or cut short: no index (\"moov\") in the file's "
                   "%" PRId64 " bytes",
                   place->size);
}
