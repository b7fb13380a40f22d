// SPDX-License-Identifier: Apache-2.0
#ifndef TD_DATASET_WRITE_SAVE_H
#define TD_DATASET_WRITE_SAVE_H

// From a journal to an episode of its dataset: what a recorder does at the end
// of an episode, what the next one does when it died in the middle of that, and
// what repair does.

#include "dataset/write/append.h"

typedef struct td_dataset_saved {
    uint32_t episode;
    uint32_t frames; // 0: there was nothing to finish
    bool dropped;    // a journal without a frame was there, and is gone
} td_dataset_saved;

// Adds the journal in `staging->episode`, which this process has just
// completed, to the dataset and removes it. FULL, IO (it does not come back
// whole), and what td_dataset_append_episode() returns.
TD_NODISCARD td_err td_dataset_save_episode(td_dataset_staging *staging,
                                            td_dataset_append *append,
                                            td_errinfo *info);

// Deals with a journal that a recorder left behind: one that has its end is
// saved, unless it is in the dataset already; one without a frame goes; any
// other is put aside, one of another version too. FULL, IO, FORMAT.
TD_NODISCARD td_err td_dataset_save_ended(td_dataset_staging *staging,
                                          td_dataset_saved *ret_saved,
                                          td_errinfo *info);

// Finishes the oldest journal that was put aside, as far as it was written.
// EMPTY (there is none), MISMATCH (the dataset has another schema: it is aside
// again, behind the others), VERSION (of the journal; likewise), FULL, IO.
TD_NODISCARD td_err td_dataset_save_unfinished(td_dataset_staging *staging,
                                               td_dataset_saved *ret_saved,
                                               td_errinfo *info);

typedef struct td_dataset_save_hooks {
    // An episode was saved: its number in the dataset and its frames.
    void (*saved)(void *user, uint32_t episode, uint32_t frames);
    // One had no frame in it, and is gone.
    void (*dropped)(void *user);
    // One could not be saved, and is still where it was.
    void (*left)(void *user, const char *why);
    void *user;
    // (optional) How far the present one is.
    void (*progress)(void *user, uint64_t done, uint64_t total);
} td_dataset_save_hooks;

// Saves what recorders left unfinished, as `tendon dataset repair` does: every
// episode of which anything was written whole becomes an episode of its
// dataset, one commit each, so that stopping anywhere loses nothing. Does
// nothing where nothing is left. Blocks. BUSY (it is being recorded),
// FULL, IO, DENIED; what was saved by then is saved.
TD_NODISCARD td_err td_dataset_save_leftovers(
    const char *folder, const td_dataset_save_hooks *hooks, td_errinfo *info);

#endif
