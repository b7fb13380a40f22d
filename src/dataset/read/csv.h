// SPDX-License-Identifier: Apache-2.0
#ifndef TD_DATASET_READ_CSV_H
#define TD_DATASET_READ_CSV_H

// A CSV file, cell after cell, as RFC 4180 has it. Writing returns nothing; ask
// at the end.

#include "base/err.h"
#include "dataset/table/table.h"

#include <stdio.h>

typedef struct td_dataset_csv {
    FILE *out;
    bool inside; // a line has begun
} td_dataset_csv;

// Makes the file. Owned by the caller. IO, FULL.
TD_NODISCARD td_err td_dataset_csv_open(const char *path,
                                        td_dataset_csv *ret_csv,
                                        td_errinfo *info);

// Writes what is left. IO, FULL. Nothing for one that is not open.
TD_NODISCARD td_err td_dataset_csv_close(td_dataset_csv *csv, const char *path,
                                         td_errinfo *info);

void td_dataset_csv_text(td_dataset_csv *csv, td_slice text);
void td_dataset_csv_whole(td_dataset_csv *csv, int64_t value);
// With all its digits: read again it is the same number.
void td_dataset_csv_single(td_dataset_csv *csv, float value);
void td_dataset_csv_double(td_dataset_csv *csv, double value);
// The i-th value of a reading.
void td_dataset_csv_value(td_dataset_csv *csv, td_dataset_type type,
                          const void *values, size_t i);
void td_dataset_csv_end_line(td_dataset_csv *csv);

#endif
