// SPDX-License-Identifier: Apache-2.0
#ifndef TD_DATASET_META_INFO_INTERNAL_H
#define TD_DATASET_META_INFO_INTERNAL_H

// What a td_dataset_info keeps for itself.

#include "base/arena.h"
#include "base/json/read.h"
#include "dataset/meta/info.h"

typedef struct td_dataset_info_memory {
    json_t *json; // the file as it stands there
    td_arena kept;
} td_dataset_info_memory;

// With room for TD_DATASET_MAX_FEATURES features, and nothing else.
TD_NODISCARD td_err td_dataset_info_new_blank(td_dataset_info **ret_dataset);

// Takes a feature, which stands in the JSON, into the list. FORMAT, LIMIT,
// UNSUPPORTED, NOMEM.
TD_NODISCARD td_err td_dataset_info_add_json(td_dataset_info *dataset,
                                             const char *key, json_t *feature,
                                             td_errinfo *info);

#endif
