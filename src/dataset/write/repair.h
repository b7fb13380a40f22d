// SPDX-License-Identifier: Apache-2.0
#ifndef TD_DATASET_WRITE_REPAIR_H
#define TD_DATASET_WRITE_REPAIR_H

// Saves what recorders left unfinished: every episode of which anything was
// written whole becomes an episode of its dataset, one commit each, so that
// stopping a repair anywhere loses nothing.

#include "base/err.h"

typedef struct td_dataset_repair_hooks {
    // An episode was saved: its number in the dataset and its frames.
    void (*saved)(void *user, uint32_t episode, uint32_t frames);
    // One had no frame in it, and is gone.
    void (*dropped)(void *user);
    // One could not be saved, and is still where it was.
    void (*left)(void *user, const char *why);
    void *user;
    // (optional) How far the present one is.
    void (*progress)(void *user, uint64_t done, uint64_t total);
} td_dataset_repair_hooks;

// Does nothing where nothing is left. Blocks. BUSY (it is being recorded),
// FULL, IO, DENIED; what was saved by then is saved.
TD_NODISCARD td_err td_dataset_repair(const char *folder,
                                      const td_dataset_repair_hooks *hooks,
                                      td_errinfo *info);

#endif
