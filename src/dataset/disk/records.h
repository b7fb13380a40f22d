// SPDX-License-Identifier: Apache-2.0
#ifndef TD_DATASET_DISK_RECORDS_H
#define TD_DATASET_DISK_RECORDS_H

// A file of records that is only ever appended to: {u32 size, u32 crc, size
// bytes}, in the machine's byte order, the crc (zlib's) over size and bytes.
//
// A reader stops at the first record that is not whole, and so after a crash
// sees every record that was written before it and nothing else. A record whose
// append failed is overwritten by the next.

#include "base/err.h"

#include <stdint.h>
#include <sys/types.h>

#define TD_DATASET_RECORDS_MAX_BYTES (64u << 20)
#define TD_DATASET_RECORDS_MAX_HEAD 64
#define TD_DATASET_RECORDS_FRAME_BYTES 8 // around each record

typedef struct td_dataset_records {
    int fd;    // owned; -1: none
    off_t end; // where the next record goes
} td_dataset_records;

// A new, empty file. EXISTS, FULL, DENIED, IO.
TD_NODISCARD td_err td_dataset_records_new(const char *path,
                                           td_dataset_records *ret_records,
                                           td_errinfo *info);
void td_dataset_records_done(td_dataset_records *records);

// Appends one record, `head` and `body` joined. Blocks. LIMIT, FULL, IO.
TD_NODISCARD td_err td_dataset_records_add(td_dataset_records *records,
                                           td_slice head, td_slice body);

typedef struct td_dataset_records_reader {
    int fd;        // owned; -1: none
    uint64_t at;   // where the next record begins
    uint64_t size; // of the file
    uint8_t *bytes;
    size_t capacity;
} td_dataset_records_reader;

// NOTFOUND, DENIED, IO.
TD_NODISCARD td_err td_dataset_records_open(
    const char *path, td_dataset_records_reader *ret_reader, td_errinfo *info);
void td_dataset_records_close(td_dataset_records_reader *reader);

// The next record, borrowed until the next call. EMPTY after the last whole
// one, IO (it cannot be read now, and may be whole), NOMEM.
TD_NODISCARD td_err td_dataset_records_next(td_dataset_records_reader *reader,
                                            td_slice *ret_record);

#endif
