// SPDX-License-Identifier: Apache-2.0
#include "dataset/table/parquet.h"

#include "base/library.h"

static td_library library = {
    .name = "libtendon_formats.so",
    .variable = "TENDON_FORMATS_LIBRARY",
    .entry = "tdr_parquet_library",
    .version = TDR_FORMATS_VERSION,
    .table_bytes = sizeof(tdr_parquet_ops),
    .lack = "no datasets",
    .missing = "build it with `make all`, put it beside the program",
    .broken = "build it again with `make all`",
};

td_err td_dataset_parquet_load(const tdr_parquet_ops **ret_ops,
                               td_errinfo *info)
{
    TD_TRY(td_library_load(&library, info));
    *ret_ops = library.table;
    return TD_OK;
}

td_err td_dataset_parquet_code(int code)
{
    switch (code) {
    case TDR_OK:
        return TD_OK;
    case TDR_IO:
        return TD_ERR_IO;
    case TDR_FULL:
        return TD_ERR_FULL;
    case TDR_LIMIT:
        return TD_ERR_LIMIT;
    case TDR_MISMATCH:
        return TD_ERR_MISMATCH;
    case TDR_UNSUPPORTED:
        return TD_ERR_UNSUPPORTED;
    default:
        return TD_ERR_FORMAT;
    }
}
