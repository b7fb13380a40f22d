// SPDX-License-Identifier: Apache-2.0
#ifndef TD_DATASET_TABLE_FILE_H
#define TD_DATASET_TABLE_FILE_H

// An open file, as table.c reads it and write.c copies it.

#include "dataset/table/parquet.h"
#include "dataset/table/table.h"

struct td_dataset_table {
    char *path;
    int fd;
    const tdr_parquet_ops *ops;
    tdr_parquet *parquet;
    uint64_t rows;
    uint64_t *begins; // of each row group, and the end of the last
};

#endif
