// SPDX-License-Identifier: Apache-2.0
#ifndef TD_DATASET_META_SCHEMA_H
#define TD_DATASET_META_SCHEMA_H

// A copy of a schema, and a schema as text: what the journal of an episode
// begins with, so that it can be saved without its recorder.

#include "dataset/meta/frame.h"

#include <jansson.h>

// A copy with all its texts. Owned by the caller. NOMEM.
TD_NODISCARD td_err td_dataset_schema_copy(const td_dataset_schema *schema,
                                           td_dataset_schema **ret_schema);
void td_dataset_schema_free(td_dataset_schema *schema);
TD_AUTO_FREE(td_dataset_schema, td_dataset_schema_free)

// As JSON. Owned by the caller. NOMEM.
TD_NODISCARD td_err td_dataset_schema_write(const td_dataset_schema *schema,
                                            json_t **ret_json);

// Out of JSON, checked. Owned by the caller. FORMAT, INVALID, NOMEM.
TD_NODISCARD td_err td_dataset_schema_read(const json_t *json,
                                           td_dataset_schema **ret_schema,
                                           td_errinfo *info);

#endif
