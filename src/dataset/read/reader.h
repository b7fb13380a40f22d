// SPDX-License-Identifier: Apache-2.0
#ifndef TD_DATASET_READ_READER_H
#define TD_DATASET_READ_READER_H

// Reads any LeRobotDataset v3.0, of ours or of LeRobot's, with pictures in
// videos or in its tables: frame after frame, or any frame.
//
// It holds one episode's rows and one open video a camera: fast where frames
// ascend. One thread at a time; each call may block.

#include "dataset/meta/episodes.h"
#include "dataset/meta/info.h"
#include "dataset/meta/tasks.h"
#include "dataset/table/table.h"

typedef struct td_dataset_reader td_dataset_reader;

// Opens a folder. Owned by the caller. NOTFOUND, IO, FORMAT, LIMIT, MISMATCH,
// UNSUPPORTED, BUSY (recorders outpace it), NOMEM.
TD_NODISCARD td_err td_dataset_reader_open(const char *folder,
                                           td_dataset_reader **ret_reader,
                                           td_errinfo *info);
void td_dataset_reader_close(td_dataset_reader *reader);
TD_AUTO_FREE(td_dataset_reader, td_dataset_reader_close)

// Borrowed from the reader.
const td_dataset_info *td_dataset_reader_info(const td_dataset_reader *reader);
const td_dataset_tasks *
td_dataset_reader_tasks(const td_dataset_reader *reader);
const td_dataset_episodes *
td_dataset_reader_episodes(const td_dataset_reader *reader);

// One row. Borrowed from the reader until the next call.
typedef struct td_dataset_reading {
    uint64_t episode;
    uint64_t frame; // in the episode
    float timestamp_s;
    const char *task;
} td_dataset_reading;

// Goes to a row of the dataset, 0 to total_frames; when it fails, to none.
// INVALID (not there), FORMAT, MISMATCH (the row does not say that it is this
// one), LIMIT, IO, NOMEM.
TD_NODISCARD td_err td_dataset_reader_seek(td_dataset_reader *reader,
                                           uint64_t row,
                                           td_dataset_reading *ret_reading,
                                           td_errinfo *info);

// The values of a feature that is neither picture nor video, of that row:
// td_dataset_feature_size() of them. Borrowed until the next seek. NOTFOUND,
// INVALID (no row is read).
TD_NODISCARD td_err td_dataset_reader_values(td_dataset_reader *reader,
                                             const char *key,
                                             td_dataset_type *ret_type,
                                             const void **ret_values,
                                             size_t *ret_count);

// The same as single precision, for those who expect just `count` numbers.
// NOTFOUND, INVALID, MISMATCH (text, or another number of them).
TD_NODISCARD td_err td_dataset_reader_floats(td_dataset_reader *reader,
                                             const char *key, size_t count,
                                             float *ret_values);

// The picture of a camera in that row, RGB, height x width x 3 bytes of the
// caller's. NOTFOUND (no such camera), FORMAT, MISMATCH (another size than the
// feature's), UNSUPPORTED (depth), LIMIT, IO, NOMEM.
TD_NODISCARD td_err td_dataset_reader_picture(td_dataset_reader *reader,
                                              const char *key, uint8_t *ret_rgb,
                                              td_errinfo *info);

// The same, or the JPEG of that size which the table has, of at most `room`
// bytes: `ret_jpeg` is how many, 0 where it is pixels.
TD_NODISCARD td_err td_dataset_reader_stored(td_dataset_reader *reader,
                                             const char *key,
                                             uint8_t *ret_bytes, size_t room,
                                             size_t *ret_jpeg,
                                             td_errinfo *info);

#endif
