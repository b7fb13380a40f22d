// SPDX-License-Identifier: Apache-2.0
#ifndef TD_DATASET_DISK_SCRATCH_H
#define TD_DATASET_DISK_SCRATCH_H

// Memory in many pieces that is freed at once.

#include "base/err.h"

typedef struct td_dataset_scratch {
    struct td_dataset_piece *pieces; // NULL: none yet
} td_dataset_scratch;

// Zeroed; NULL when there is no memory. Borrowed from the scratch.
void *td_dataset_scratch_take(td_dataset_scratch *scratch, size_t count,
                              size_t size);
// A text, ended by NUL.
char *td_dataset_scratch_text(td_dataset_scratch *scratch, td_slice text);

void td_dataset_scratch_done(td_dataset_scratch *scratch);

#endif
