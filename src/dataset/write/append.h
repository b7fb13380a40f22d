// SPDX-License-Identifier: Apache-2.0
#ifndef TD_DATASET_WRITE_APPEND_H
#define TD_DATASET_WRITE_APPEND_H

// Adds whole episodes to a dataset, one commit each.
//
// Files that were there before are never written again: the first episode
// begins new ones, and the next go on in those until they are large enough.
// One thread at a time; each call blocks.

#include "dataset/disk/staging.h"
#include "dataset/journal/unsaved.h"

typedef struct td_dataset_append td_dataset_append;

typedef struct td_dataset_append_config {
    td_dataset_staging *staging;     // borrowed until closed
    const td_dataset_schema *schema; // borrowed until closed
    uint32_t data_file_mb;           // 0: as the dataset says, else LeRobot's
    uint32_t video_file_mb;
} td_dataset_append_config;

// Reads what is there. Owned by the caller. MISMATCH (the dataset has another
// schema: names the field and both values), EXISTS (a file that no episode is
// in stands where the next one goes: names it), FORMAT, VERSION, LIMIT,
// UNSUPPORTED (no videos on this machine), NOMEM, IO.
TD_NODISCARD td_err
td_dataset_append_open(const td_dataset_append_config *config,
                       td_dataset_append **ret_append, td_errinfo *info);
void td_dataset_append_close(td_dataset_append *append);
TD_AUTO_FREE(td_dataset_append, td_dataset_append_close)

uint32_t td_dataset_append_episodes(const td_dataset_append *append);
uint64_t td_dataset_append_frames(const td_dataset_append *append);

// Whether the dataset had an episode of that number and length when it was
// opened.
bool td_dataset_append_had(const td_dataset_append *append, uint32_t number,
                           uint32_t frames);

// What adding an episode of so many bytes writes at most, while everything that
// is there is still there.
uint64_t td_dataset_append_need(const td_dataset_append *append,
                                uint64_t episode_bytes);

// Makes the episode the next one of the dataset. MISMATCH (another schema),
// FULL, IO, NOMEM; the dataset is then as before or has it, and nothing more
// can be added.
TD_NODISCARD td_err td_dataset_append_episode(td_dataset_append *append,
                                              const td_dataset_unsaved *unsaved,
                                              td_errinfo *info);

#endif
