// SPDX-License-Identifier: Apache-2.0
#ifndef TD_CLI_DATASET_DRIVE_H
#define TD_CLI_DATASET_DRIVE_H

// Asks a policy what it would have done at the frames of a dataset.

#include "dataset/compare.h"
#include "dataset/reader.h"
#include "tendon/engine.h"

typedef struct td_cli_drive_config {
    td_engine *engine; // READY; borrowed, as is all of this
    td_dataset_reader *reader;
    int64_t episode;    // -1: all
    uint32_t every;     // ask at every so many frames, at least 1
    bool (*stop)(void); // asked before each
    // After each, of an episode's `frame`: what was recorded for it and what
    // the first row of the chunk says.
    void (*on_frame)(void *user, uint64_t row, uint32_t episode,
                     const float *recorded, const float *predicted);
    void *user;
} td_cli_drive_config;

// Adds every row of every chunk that its episode still has a recorded action
// for. `compare` has the engine's channels and chunk rows. Blocks. CANCELLED,
// MISMATCH (the dataset is not what the policy takes; names it), or the
// engine's own.
TD_NODISCARD td_err td_cli_drive(const td_cli_drive_config *config,
                                 td_dataset_compare *compare, td_errinfo *info);

#endif
