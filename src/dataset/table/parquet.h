// SPDX-License-Identifier: Apache-2.0
#ifndef TD_DATASET_TABLE_PARQUET_H
#define TD_DATASET_TABLE_PARQUET_H

// Parquet, which is in libtendon_formats.so: loaded with the first table, so
// that processes without datasets do without it.

#include "base/err.h"

#include "tendon_formats.h"

// Loads the library, once; it stays. What failed may be tried again. Any
// thread; blocks. UNSUPPORTED, VERSION: with what to do.
TD_NODISCARD td_err td_dataset_parquet_load(const tdr_parquet_ops **ret_ops,
                                            td_errinfo *info);

// The crate's outcome as ours; what it could not make sense of is FORMAT, even
// where it gave up in the middle.
td_err td_dataset_parquet_code(int code);

#endif
