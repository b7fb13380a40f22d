// SPDX-License-Identifier: Apache-2.0
#ifndef TD_DATASET_JOURNAL_ENTRIES_H
#define TD_DATASET_JOURNAL_ENTRIES_H

// A file of entries that is only ever appended to: {u32 size, u32 crc, size
// bytes}, in the machine's byte order, the crc (zlib's) over size and bytes.
//
// A reader stops at the first entry that is not whole, and so after a crash
// sees every entry that was written before it and nothing else. A entry whose
// append failed is overwritten by the next.

#include "base/err.h"

#include <stdint.h>
#include <sys/types.h>

#define TD_DATASET_ENTRIES_MAX_BYTES (64u << 20)
#define TD_DATASET_ENTRIES_MAX_HEAD 64
#define TD_DATASET_ENTRIES_FRAME_BYTES 8 // around each entry

typedef struct td_dataset_entries {
    int fd;    // owned; -1: none
    off_t end; // where the next entry goes
} td_dataset_entries;

// A new, empty file. EXISTS, FULL, DENIED, IO.
TD_NODISCARD td_err td_dataset_entries_new(const char *path,
                                           td_dataset_entries *ret_entries,
                                           td_errinfo *info);
void td_dataset_entries_done(td_dataset_entries *entries);

// Appends one entry, `head` and `body` joined. Blocks. LIMIT, FULL, IO.
TD_NODISCARD td_err td_dataset_entries_add(td_dataset_entries *entries,
                                           td_slice head, td_slice body);

typedef struct td_dataset_entries_reader {
    int fd;        // owned; -1: none
    uint64_t at;   // where the next entry begins
    uint64_t size; // of the file
    uint8_t *bytes;
    size_t capacity;
} td_dataset_entries_reader;

// NOTFOUND, DENIED, IO.
TD_NODISCARD td_err td_dataset_entries_open(
    const char *path, td_dataset_entries_reader *ret_reader, td_errinfo *info);
void td_dataset_entries_close(td_dataset_entries_reader *reader);

// The next entry, borrowed until the next call. EMPTY after the last whole
// one, IO (it cannot be read now, and may be whole), NOMEM.
TD_NODISCARD td_err td_dataset_entries_next(td_dataset_entries_reader *reader,
                                            td_slice *ret_entry);

#endif
