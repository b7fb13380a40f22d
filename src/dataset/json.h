// SPDX-License-Identifier: Apache-2.0
#ifndef TD_DATASET_JSON_H
#define TD_DATASET_JSON_H

// The JSON files of a dataset, read with limits.

#include "base/err.h"

#include <jansson.h>

#define TD_DATASET_JSON_MAX_DEPTH 32

static inline void td_dataset_json_drop(json_t *json)
{
    json_decref(json);
}
TD_AUTO_FREE(json_t, td_dataset_json_drop)

// A file whose top is an object; its size is looked at before it is read.
// Owned: json_decref(). Blocks. NOTFOUND, IO, LIMIT, FORMAT, NOMEM.
TD_NODISCARD td_err td_dataset_json_load(const char *path, size_t most_bytes,
                                         json_t **ret_json, td_errinfo *info);

// The same of bytes; `file` is what errors call them.
TD_NODISCARD td_err td_dataset_json_parse(td_slice bytes, const char *file,
                                          json_t **ret_json, td_errinfo *info);

#endif
