// SPDX-License-Identifier: Apache-2.0
#include "dataset/table/table.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_column(const td_dataset_table *table, size_t column,
                        size_t rows)
{
    TD_AUTO(td_dataset_rows) *read = NULL;
    td_errinfo info = {""};
    const char *name = td_dataset_table_name(table, column);
    if (td_dataset_table_read(table, 0, rows, &name, 1, &read, &info)) {
        if (info.text[0] == '\0') abort();
        return;
    }
    for (size_t i = 0; i < rows; i++) {
        size_t count = 0;
        (void)td_dataset_row(&read->columns[0], i, &count);
        if (count > read->columns[0].count) abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int fd = memfd_create("table", MFD_CLOEXEC);
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size) abort();
    td_dataset_table *table = NULL;
    td_errinfo info = {""};
    if (td_dataset_table_open(path, &table, &info) == TD_OK) {
        uint64_t rows = td_dataset_table_rows(table);
        size_t columns = td_dataset_table_columns(table);
        if (rows > 0)
            for (size_t i = 0; i < columns && i < 32; i++)
                read_column(table, i, rows < 64 ? (size_t)rows : 64);
        td_dataset_table_close(table);
    } else if (info.text[0] == '\0') {
        abort();
    }
    (void)close(fd);
    return 0;
}
