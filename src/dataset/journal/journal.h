// SPDX-License-Identifier: Apache-2.0
#ifndef TD_DATASET_JOURNAL_JOURNAL_H
#define TD_DATASET_JOURNAL_JOURNAL_H

// The journal of an episode under way: a folder of files of entries
// (dataset/journal/entries.h), from which the episode can be saved by another
// process as far as it was written (dataset/journal/unsaved.h).
//
//   rows      the schema; then each frame, and each new task before its frames;
//             at last where the episode shall stand in the dataset
//   K.video   what camera K's video says before its packets, then the packets
//   K.pixels  the pixels that the statistics look at, an entry a frame
//
// One thread at a time; every call blocks on the disk.

#include "dataset/meta/frame.h"

typedef struct td_dataset_journal td_dataset_journal;

// Makes the folder and its files; their names are on the disk when it returns.
// Owned by the caller. EXISTS, FULL, IO.
TD_NODISCARD td_err td_dataset_journal_new(const char *folder,
                                           const td_dataset_schema *schema,
                                           td_dataset_journal **ret_journal,
                                           td_errinfo *info);

// Closes the files and leaves them.
void td_dataset_journal_close(td_dataset_journal *journal);
TD_AUTO_FREE(td_dataset_journal, td_dataset_journal_close)

// A row as it stands on the disk, followed by state and action.
typedef struct td_dataset_journal_row {
    int64_t missing;
    int64_t chunk;
    int64_t step;
    float age_s;
    uint8_t held;
    uint8_t clamped;
    uint8_t failsafe;
    uint8_t unused;
} td_dataset_journal_row;

// Appends a frame's row, whose task is the last one named. FULL, IO.
TD_NODISCARD td_err td_dataset_journal_row_add(
    td_dataset_journal *journal, const td_dataset_journal_row *row,
    const float *state, const float *action, td_errinfo *info);
TD_NODISCARD td_err td_dataset_journal_task_add(td_dataset_journal *journal,
                                                const char *task,
                                                td_errinfo *info);

// For each camera once, before its packets; then what belongs to the frames, in
// their order. FULL, IO.
TD_NODISCARD td_err td_dataset_journal_video_begin(td_dataset_journal *journal,
                                                   uint32_t camera,
                                                   td_slice head,
                                                   td_errinfo *info);
TD_NODISCARD td_err td_dataset_journal_packet_add(
    td_dataset_journal *journal, uint32_t camera,
    const td_media_video_packet *packet, td_errinfo *info);
TD_NODISCARD td_err td_dataset_journal_pixels_add(td_dataset_journal *journal,
                                                  uint32_t camera,
                                                  td_slice pixels,
                                                  td_errinfo *info);

// How many bytes of a camera's picture the statistics look at.
size_t td_dataset_journal_pixel_bytes(const td_dataset_camera *camera);

// Written so far, and what of it a dataset keeps: all but the pixels.
uint64_t td_dataset_journal_bytes(const td_dataset_journal *journal);
uint64_t td_dataset_journal_kept_bytes(const td_dataset_journal *journal);

// What was written is on the disk when it returns. IO.
TD_NODISCARD td_err td_dataset_journal_sync(td_dataset_journal *journal,
                                            td_errinfo *info);

// The episode is complete and shall be number `episode` of its dataset: from
// here on it will be finished, by whoever opens the dataset next. Synced. FULL,
// IO.
TD_NODISCARD td_err td_dataset_journal_end(td_dataset_journal *journal,
                                           uint32_t episode, td_errinfo *info);

// The same for a journal whose recorder is gone: what is not whole of its rows
// is cut off first. FORMAT (no row is whole), FULL, IO.
TD_NODISCARD td_err td_dataset_journal_seal(const char *folder,
                                            uint32_t episode, td_errinfo *info);

// The kinds of entry in `rows`: a u32 before each.
typedef enum td_dataset_journal_kind {
    TD_DATASET_JOURNAL_HEAD = 1, // JSON: {"version": 1, "schema": {…}}
    TD_DATASET_JOURNAL_TASK,     // text
    TD_DATASET_JOURNAL_ROW,      // td_dataset_journal_row, state, action
    TD_DATASET_JOURNAL_END,      // u32: the episode's number
} td_dataset_journal_kind;

#define TD_DATASET_JOURNAL_VERSION 1

// What stands before each packet in K.video.
typedef struct td_dataset_journal_packet {
    int64_t frame; // -1: what the file says before its packets
    uint32_t key;
    uint32_t unused;
} td_dataset_journal_packet;

#endif
