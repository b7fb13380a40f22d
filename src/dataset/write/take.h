// SPDX-License-Identifier: Apache-2.0
#ifndef TD_DATASET_WRITE_TAKE_H
#define TD_DATASET_WRITE_TAKE_H

// One episode while it is recorded: an encoder for each camera, and the journal
// that all of it goes into. One thread at a time; each call may block on the
// disk or in the encoders.

#include "dataset/meta/frame.h"

typedef struct td_dataset_take td_dataset_take;

// Pictures that were repeated, by camera, and those of them that could not be
// decoded.
typedef struct td_dataset_take_missed {
    uint64_t camera[TD_DATASET_MAX_CAMERAS];
    uint64_t bad[TD_DATASET_MAX_CAMERAS]; // of them, that no decoder takes
} td_dataset_take_missed;

// Begins a journal in `folder`, which is not there. The schema and `missed`,
// which is counted up, are borrowed until the take is closed. Owned by the
// caller. UNSUPPORTED (no such encoder), FULL, IO.
TD_NODISCARD td_err td_dataset_take_open(const char *folder,
                                         const td_dataset_schema *schema,
                                         td_dataset_take_missed *missed,
                                         td_dataset_take **ret_take,
                                         td_errinfo *info);

// Leaves the journal as it is.
void td_dataset_take_close(td_dataset_take *take);
TD_AUTO_FREE(td_dataset_take, td_dataset_take_close)

// See td_dataset_writer_add(). After FULL and IO only td_dataset_take_close().
TD_NODISCARD td_err td_dataset_take_add(td_dataset_take *take,
                                        const td_dataset_frame *frame,
                                        td_errinfo *info);

uint64_t td_dataset_take_frames(const td_dataset_take *take);

// See td_dataset_journal_bytes().
uint64_t td_dataset_take_bytes(const td_dataset_take *take);
uint64_t td_dataset_take_kept_bytes(const td_dataset_take *take);

TD_NODISCARD td_err td_dataset_take_sync(td_dataset_take *take,
                                         td_errinfo *info);

// Completes the journal: it shall be episode `number` of its dataset. FULL, IO.
TD_NODISCARD td_err td_dataset_take_end(td_dataset_take *take, uint32_t number,
                                        td_errinfo *info);

#endif
