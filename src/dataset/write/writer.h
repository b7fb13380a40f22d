// SPDX-License-Identifier: Apache-2.0
#ifndef TD_DATASET_WRITE_WRITER_H
#define TD_DATASET_WRITE_WRITER_H

// Records episodes into a LeRobotDataset v3.0 that survives a kill and a power
// cut at any instant (docs/dataset.md).
//
// The folder holds finished episodes only: an episode is finished when
// td_dataset_writer_end() has returned TD_OK, and until then it grows in a
// journal beside the folder, out of which `tendon dataset repair` saves it.
// A failed write ends the recording, never the process: what is finished stays,
// and every later call returns the first error. One thread at a time; each call
// may block on the disk or in the encoder, so none belongs on a control tick.

#include "base/clock.h"
#include "dataset/meta/frame.h"

typedef struct td_dataset_writer td_dataset_writer;

typedef struct td_dataset_writer_config {
    const char *folder; // absent, empty, or a dataset that fits the schema
    td_dataset_schema schema; // borrowed until open has returned
    int64_t sync_ns; // what a power cut may cost of an episode; 0: a second
    uint64_t reserve_bytes; // of the disk, never used; 0: 256 MiB
    uint32_t data_file_mb;  // a new file from there on; 0: 100 or as it was
    uint32_t video_file_mb; // 0: 200 or as it was
    const td_clock *clock;  // NULL: the machine's; borrowed
} td_dataset_writer_config;

// Takes the folder for this process and opens or resumes it. An episode whose
// end was under way when its recorder died is finished now; an unfinished one
// is put aside for repair, and said. Owned by the caller. INVALID (schema),
// BUSY (another process records here; names it), MISMATCH (the dataset there
// has another schema; names the field and both values), FORMAT (what is there
// is not a v3.0 dataset), UNSUPPORTED (a file system that cannot swap folders;
// no videos on this machine, see media/video.h), FULL (the disk), IO.
TD_NODISCARD td_err
td_dataset_writer_open(const td_dataset_writer_config *config,
                       td_dataset_writer **ret_writer, td_errinfo *info);

// An episode that is still open stays in the journal, for repair.
void td_dataset_writer_close(td_dataset_writer *writer);
TD_AUTO_FREE(td_dataset_writer, td_dataset_writer_close)

// Opens an episode. BUSY (one is open), FULL, IO.
TD_NODISCARD td_err td_dataset_writer_begin(td_dataset_writer *writer,
                                            td_errinfo *info);

// Adds a frame, and is done with all of it when it returns. A picture that
// cannot be decoded counts as missing; before the first one there is black.
// INVALID (no episode is open; a task that is empty or too long), FULL (the
// disk is nearly full: the frame is not taken, but there is room to end the
// episode), IO.
TD_NODISCARD td_err td_dataset_writer_add(td_dataset_writer *writer,
                                          const td_dataset_frame *frame,
                                          td_errinfo *info);

// Finishes the episode: it is in the dataset when this returns TD_OK. One
// without frames is discarded, and EMPTY returned. INVALID, FULL, IO.
TD_NODISCARD td_err td_dataset_writer_end(td_dataset_writer *writer,
                                          uint32_t *ret_episode,
                                          td_errinfo *info);

// Throws the open episode away; nothing where none is.
TD_NODISCARD td_err td_dataset_writer_discard(td_dataset_writer *writer,
                                              td_errinfo *info);

typedef struct td_dataset_writer_state {
    uint32_t episodes;     // finished, those before this run too
    uint64_t total_frames; // in them
    bool recording;        // an episode is open
    uint64_t frames;       // in the open episode
    uint64_t missing[TD_DATASET_MAX_CAMERAS]; // pictures, since open
    uint64_t bad[TD_DATASET_MAX_CAMERAS];     // of them, that no decoder takes
    uint64_t bytes;      // that the open episode takes so far: in its journal
                         // and, at its end, in the dataset
    uint64_t free_bytes; // of the disk, beyond the reserve and what the end
                         // of this episode needs; as of the last frame
    td_err stopped;      // why nothing more is recorded, or TD_OK
} td_dataset_writer_state;

// Never blocks.
td_dataset_writer_state
td_dataset_writer_report(const td_dataset_writer *writer);

#endif
