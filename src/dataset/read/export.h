// SPDX-License-Identifier: Apache-2.0
#ifndef TD_DATASET_READ_EXPORT_H
#define TD_DATASET_READ_EXPORT_H

// A dataset as files that people open: a table of episodes, a table of frames
// for each episode, and a JPEG for each picture.
//
//   OUT/episodes.csv
//   OUT/episode-000000.csv
//   OUT/observation.images.front/episode-000000/frame-000000.jpg

#include "base/err.h"

#include <stdbool.h>

typedef struct td_dataset_export_config {
    const char *folder;
    const char *out;      // absent, or an empty folder
    const char *episodes; // NULL: all; else one, or "FIRST:LAST"
    bool no_pictures;
    int quality; // of a JPEG, 1 to 100

    // (optional) Called with the frames done, of how many; false stops there.
    bool (*progress)(void *user, uint64_t done, uint64_t total);
    void *user;
} td_dataset_export_config;

typedef struct td_dataset_export_sums {
    uint64_t episodes;
    uint64_t frames;
    uint64_t pictures;
} td_dataset_export_sums;

// Blocks. EXISTS (something is in `out`), INVALID (episodes that are not
// there), CANCELLED (by progress), UNSUPPORTED (a camera whose name cannot be
// that of a folder; no videos on this machine), and the errors of a dataset
// that cannot be read or of files that cannot be written: what was written
// until then stays.
TD_NODISCARD td_err td_dataset_export(const td_dataset_export_config *config,
                                      td_dataset_export_sums *ret_sums,
                                      td_errinfo *info);

#endif
