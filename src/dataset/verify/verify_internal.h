// SPDX-License-Identifier: Apache-2.0
#ifndef TD_DATASET_VERIFY_VERIFY_INTERNAL_H
#define TD_DATASET_VERIFY_VERIFY_INTERNAL_H

// One verification at work; for verify.c and its parts alone.

#include "dataset/meta/episodes.h"
#include "dataset/meta/tasks.h"
#include "dataset/verify/verify.h"

#define TD_DATASET_VERIFY_MAX_FAULTS 1000

typedef struct td_dataset_verification {
    const char *folder;
    const td_dataset_verify_hooks *hooks;
    td_errinfo why; // of an error that ends it, where there is more to say
    uint32_t faults;
    uint64_t done; // episodes, once for their rows and once for each video
    uint64_t total;
    td_dataset_info *dataset;
    td_dataset_tasks *tasks;
    td_dataset_episodes *episodes;
} td_dataset_verification;

#define TD_DATASET_REMEDY_COPY "copy the file again from where it was made"
#define TD_DATASET_REMEDY_RECORD "take the episode out with LeRobot's tools"

// Reports a fault. LIMIT when there have been too many to go on.
td_err td_dataset_verify_fault(td_dataset_verification *check, const char *file,
                               const char *remedy, const char *fmt, ...)
    TD_PRINTF(4, 5);

// Another episode is looked at. CANCELLED.
TD_NODISCARD td_err td_dataset_verify_step(td_dataset_verification *check);

// The parts. What they find is reported; LIMIT, CANCELLED and NOMEM end them,
// and UNSUPPORTED where this machine has no videos.
TD_NODISCARD td_err td_dataset_verify_meta(td_dataset_verification *check);
TD_NODISCARD td_err td_dataset_verify_rows(td_dataset_verification *check);
TD_NODISCARD td_err td_dataset_verify_videos(td_dataset_verification *check);

#endif
