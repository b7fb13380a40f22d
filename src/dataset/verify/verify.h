// SPDX-License-Identifier: Apache-2.0
#ifndef TD_DATASET_VERIFY_VERIFY_H
#define TD_DATASET_VERIFY_VERIFY_H

// Holds a dataset to everything that the format promises: what info.json says
// against the files, counts, rows without a gap, times, lengths of videos,
// statistics. It reads all rows, and of videos what they say of themselves.

#include "base/err.h"

#include <stdbool.h>

typedef struct td_dataset_fault {
    char file[256];   // in the dataset
    char what[512];   // is wrong
    char remedy[128]; // what to do
} td_dataset_fault;

typedef struct td_dataset_verify_hooks {
    void (*fault)(void *user, const td_dataset_fault *fault);
    // (optional) How far it is, and false to stop.
    bool (*progress)(void *user, uint64_t done, uint64_t total);
    void *user;
} td_dataset_verify_hooks;

// Reports each fault. Takes nothing and changes nothing. Blocks for as long as
// reading takes. NOTFOUND (no dataset there), BUSY (it is being recorded: names
// the process), UNSUPPORTED (it has videos, and this machine cannot read any),
// CANCELLED, NOMEM.
TD_NODISCARD td_err td_dataset_verify(const char *folder,
                                      const td_dataset_verify_hooks *hooks,
                                      uint32_t *ret_faults, td_errinfo *info);

#endif
