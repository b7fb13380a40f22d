// SPDX-License-Identifier: Apache-2.0
#ifndef TD_DATASET_META_INFO_OWN_H
#define TD_DATASET_META_INFO_OWN_H

// What a td_dataset_info keeps for itself.

#include "base/arena.h"
#include "base/json/read.h"
#include "dataset/meta/info.h"

typedef struct td_dataset_info_own {
    json_t *json; // the file as it stands there
    td_arena kept;
} td_dataset_info_own;

// With room for TD_DATASET_MAX_FEATURES features, and nothing else.
TD_NODISCARD td_err td_dataset_info_make(td_dataset_info **ret_dataset);

// Takes a feature, which stands in the JSON, into the list. FORMAT, LIMIT,
// UNSUPPORTED, NOMEM.
TD_NODISCARD td_err td_dataset_info_take(td_dataset_info *dataset,
                                         const char *key, json_t *feature,
                                         td_errinfo *info);

#endif
