// SPDX-License-Identifier: Apache-2.0
#ifndef TD_DATASET_WRITE_RECORDING_H
#define TD_DATASET_WRITE_RECORDING_H

// One episode while it is recorded: an encoder for each camera, and the journal
// that all of it goes into. One thread at a time; each call may block on the
// disk or in the encoders.

#include "dataset/meta/frame.h"

typedef struct td_dataset_recording td_dataset_recording;

// Pictures that were repeated, by camera, and those of them that could not be
// decoded.
typedef struct td_dataset_recording_missed {
    uint64_t camera[TD_DATASET_MAX_CAMERAS];
    uint64_t bad[TD_DATASET_MAX_CAMERAS]; // of them, that no decoder takes
} td_dataset_recording_missed;

// Begins a journal in `folder`, which is not there. The schema and `missed`,
// which is counted up, are borrowed until the recording is closed. Owned by the
// caller. UNSUPPORTED (no such encoder), FULL, IO.
TD_NODISCARD td_err td_dataset_recording_open(
    const char *folder, const td_dataset_schema *schema,
    td_dataset_recording_missed *missed, td_dataset_recording **ret_recording,
    td_errinfo *info);

// Leaves the journal as it is.
void td_dataset_recording_close(td_dataset_recording *recording);
TD_AUTO_FREE(td_dataset_recording, td_dataset_recording_close)

// See td_dataset_writer_add(). After FULL and IO only
// td_dataset_recording_close().
TD_NODISCARD td_err td_dataset_recording_add(td_dataset_recording *recording,
                                             const td_dataset_frame *frame,
                                             td_errinfo *info);

uint64_t td_dataset_recording_frames(const td_dataset_recording *recording);

// See td_dataset_journal_bytes().
uint64_t td_dataset_recording_bytes(const td_dataset_recording *recording);
uint64_t td_dataset_recording_kept_bytes(const td_dataset_recording *recording);

TD_NODISCARD td_err td_dataset_recording_sync(td_dataset_recording *recording,
                                              td_errinfo *info);

// Completes the journal: it shall be episode `number` of its dataset. FULL, IO.
TD_NODISCARD td_err td_dataset_recording_end(td_dataset_recording *recording,
                                             uint32_t number, td_errinfo *info);

#endif
