// SPDX-License-Identifier: Apache-2.0
#ifndef TD_DATASET_TABLE_TABLE_H
#define TD_DATASET_TABLE_TABLE_H

// Tables in Parquet files: columns with a name, one value or one list of values
// a row, as LeRobot reads and writes them.
//
// Files are not trusted: their footer and the pages of what is read are held
// against limits before memory is taken for them (docs/dataset.md). One thread
// at a time uses one of these things; each call may block on the disk.
//
// Parquet is in a library of its own, libtendon_formats.so, which the first
// table loads. UNSUPPORTED where it is missing, VERSION where it is of another
// release, with what to do.

#include "base/err.h"

#include <stdbool.h>

#define TD_DATASET_MAX_COLUMNS 4096

// Loads the library, for those who want to know ahead. Once there it stays;
// what failed may be tried again. Any thread; blocks. UNSUPPORTED, VERSION.
TD_NODISCARD td_err td_dataset_table_load(td_errinfo *info);

// What is read comes as one of these: whole numbers of any width as I64.
typedef enum td_dataset_type {
    TD_DATASET_BOOL,  // bytes, 0 or 1
    TD_DATASET_I64,   // int64_t
    TD_DATASET_F32,   // float
    TD_DATASET_F64,   // double
    TD_DATASET_TEXT,  // td_slice, UTF-8
    TD_DATASET_BYTES, // td_slice; read only: the bytes of a picture
} td_dataset_type;

// Bytes of one value in td_dataset_column's `values`.
size_t td_dataset_type_size(td_dataset_type type);

// The values of some rows, one row after the other.
typedef struct td_dataset_column {
    td_dataset_type type;
    size_t count;       // of values
    const void *values; // of the type
    const size_t *ends; // where each row's values end; NULL: one a row, or
                        // as many as the field's width says
} td_dataset_column;

// A column to be written.
typedef struct td_dataset_field {
    const char *name;
    td_dataset_type type;
    uint32_t width; // values of a row; 0: any number, given by `ends`
    uint32_t depth; // 0: a plain value (width 1); 1: a list; 3: [[[v]], …],
                    // a list whose values stand alone in two more
    bool fixed;     // a list of fixed size, which `width` is
} td_dataset_field;

typedef struct td_dataset_note {
    const char *key;
    const char *value;
} td_dataset_note;

typedef struct td_dataset_table_writer td_dataset_table_writer;

// Writes into `fd` (empty, open for writing, borrowed; neither synced nor
// closed), compressed with Snappy; the notes go into the footer. Owned by the
// caller. INVALID, NOMEM.
TD_NODISCARD td_err
td_dataset_table_create(int fd, const td_dataset_field *fields, size_t count,
                        const td_dataset_note *notes, size_t note_count,
                        td_dataset_table_writer **ret_writer, td_errinfo *info);

// One row group, of one column for each field. INVALID, FULL (the disk), IO.
TD_NODISCARD td_err td_dataset_table_append(td_dataset_table_writer *writer,
                                            const td_dataset_column *columns,
                                            size_t rows, td_errinfo *info);

typedef struct td_dataset_table td_dataset_table;

// All row groups of another file, byte for byte. MISMATCH (other columns),
// FORMAT (damaged), FULL, IO.
TD_NODISCARD td_err td_dataset_table_copy(td_dataset_table_writer *writer,
                                          const td_dataset_table *from,
                                          td_errinfo *info);

// Writes the footer: the file is whole. FULL, IO.
TD_NODISCARD td_err td_dataset_table_finish(td_dataset_table_writer *writer,
                                            td_errinfo *info);
void td_dataset_table_writer_free(td_dataset_table_writer *writer);
TD_AUTO_FREE(td_dataset_table_writer, td_dataset_table_writer_free)

// Opens a file. Owned by the caller. NOTFOUND, IO, FORMAT, LIMIT, UNSUPPORTED
// (another compression), NOMEM.
TD_NODISCARD td_err td_dataset_table_open(const char *path,
                                          td_dataset_table **ret_table,
                                          td_errinfo *info);
void td_dataset_table_close(td_dataset_table *table);
TD_AUTO_FREE(td_dataset_table, td_dataset_table_close)

uint64_t td_dataset_table_rows(const td_dataset_table *table);
size_t td_dataset_table_columns(const td_dataset_table *table);

// Borrowed from the table.
const char *td_dataset_table_name(const td_dataset_table *table, size_t column);

// NOTFOUND.
TD_NODISCARD td_err td_dataset_table_find(const td_dataset_table *table,
                                          const char *name, size_t *ret_column);

// Some rows of some columns; `columns` has one for each name, in their order.
typedef struct td_dataset_rows {
    size_t rows;
    size_t count;
    td_dataset_column *columns;
} td_dataset_rows;

// Lists come flat, and a picture as its bytes. Owned by the caller. NOTFOUND
// (no such column), INVALID (rows that are not there), FORMAT (damaged; a value
// is missing), UNSUPPORTED (a type that no feature has), LIMIT, IO, NOMEM.
TD_NODISCARD td_err td_dataset_table_read(const td_dataset_table *table,
                                          uint64_t first, size_t rows,
                                          const char *const *names,
                                          size_t count,
                                          td_dataset_rows **ret_rows,
                                          td_errinfo *info);
void td_dataset_rows_free(td_dataset_rows *rows);
TD_AUTO_FREE(td_dataset_rows, td_dataset_rows_free)

// The values of one row of a column that was read; sets their number. NULL
// where the column has none at all.
const void *td_dataset_row(const td_dataset_column *column, size_t row,
                           size_t *ret_count);

#endif
