// SPDX-License-Identifier: Apache-2.0
#ifndef TD_DATASET_TABLE_CODE_H
#define TD_DATASET_TABLE_CODE_H

#include "base/err.h"

// The crate's outcome as ours; what it could not make sense of is FORMAT, even
// where it gave up in the middle.
td_err td_dataset_table_code(int code);

#endif
