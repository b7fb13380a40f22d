// SPDX-License-Identifier: Apache-2.0
#include "dataset/read/csv.h"

#include "dataset/disk/disk.h"

#include <inttypes.h>
#include <string.h>

td_err td_dataset_csv_open(const char *path, td_dataset_csv *ret_csv,
                           td_errinfo *info)
{
    FILE *out = fopen(path, "wxe");
    if (!out) return td_dataset_disk_fail(path, info);
    *ret_csv = (td_dataset_csv){.out = out};
    return TD_OK;
}

td_err td_dataset_csv_close(td_dataset_csv *csv, const char *path,
                            td_errinfo *info)
{
    if (!csv->out) return TD_OK;
    int failed = ferror(csv->out);
    failed |= fclose(csv->out);
    csv->out = NULL;
    return failed ? td_dataset_disk_fail(path, info) : TD_OK;
}

static void next_cell(td_dataset_csv *csv)
{
    if (csv->inside) (void)fputc(',', csv->out);
    csv->inside = true;
}

void td_dataset_csv_text(td_dataset_csv *csv, td_slice text)
{
    const char *bytes = text.data;
    bool plain = true;
    for (size_t i = 0; i < text.size; i++)
        if (strchr(",\"\r\n", bytes[i])) plain = false;
    next_cell(csv);
    if (!plain) (void)fputc('"', csv->out);
    for (size_t i = 0; i < text.size; i++) {
        if (bytes[i] == '"') (void)fputc('"', csv->out);
        (void)fputc(bytes[i], csv->out);
    }
    if (!plain) (void)fputc('"', csv->out);
}

void td_dataset_csv_whole(td_dataset_csv *csv, int64_t value)
{
    next_cell(csv);
    (void)fprintf(csv->out, "%" PRId64, value);
}

void td_dataset_csv_single(td_dataset_csv *csv, float value)
{
    next_cell(csv);
    (void)fprintf(csv->out, "%.9g", (double)value);
}

void td_dataset_csv_double(td_dataset_csv *csv, double value)
{
    next_cell(csv);
    (void)fprintf(csv->out, "%.17g", value);
}

void td_dataset_csv_value(td_dataset_csv *csv, td_dataset_type type,
                          const void *values, size_t i)
{
    switch (type) {
    case TD_DATASET_BOOL:
        td_dataset_csv_whole(csv, ((const uint8_t *)values)[i] != 0);
        break;
    case TD_DATASET_I64:
        td_dataset_csv_whole(csv, ((const int64_t *)values)[i]);
        break;
    case TD_DATASET_F32:
        td_dataset_csv_single(csv, ((const float *)values)[i]);
        break;
    case TD_DATASET_F64:
        td_dataset_csv_double(csv, ((const double *)values)[i]);
        break;
    case TD_DATASET_TEXT:
        td_dataset_csv_text(csv, ((const td_slice *)values)[i]);
        break;
    case TD_DATASET_BYTES: // a picture, which is a file of its own
        break;
    }
}

void td_dataset_csv_end_line(td_dataset_csv *csv)
{
    (void)fputs("\r\n", csv->out);
    csv->inside = false;
}
