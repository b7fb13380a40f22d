// SPDX-License-Identifier: Apache-2.0
#ifndef TD_DATASET_TABLE_COLLECT_H
#define TD_DATASET_TABLE_COLLECT_H

// The values of a column, collected from Arrow's arrays: lists are laid flat,
// numbers widened, texts copied.

#include "base/arena.h"
#include "dataset/table/table.h"

#include "tendon_formats.h"

// Texts and pictures of one td_dataset_table_read().
#define TD_DATASET_MAX_TEXT_BYTES (512u << 20)

typedef struct td_dataset_collect {
    size_t rows; // collected so far
    size_t *ends;
    td_dataset_type type; // of the first array, and so of all
    size_t count;
    size_t capacity;
    void *values;
    size_t text_bytes;
    td_arena texts;
} td_dataset_collect;

// For `rows` rows in all. All zero before; td_dataset_collect_done() after,
// even when this fails. NOMEM.
TD_NODISCARD td_err td_dataset_collect_init(td_dataset_collect *collect,
                                            size_t rows);
void td_dataset_collect_done(td_dataset_collect *collect);

// All rows of an array; there is room for them. FORMAT (a value is missing),
// UNSUPPORTED (another type), LIMIT, NOMEM.
TD_NODISCARD td_err td_dataset_collect_add(td_dataset_collect *collect,
                                           const struct ArrowArray *array,
                                           const struct ArrowSchema *schema,
                                           td_errinfo *info);

#endif
