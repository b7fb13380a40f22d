// SPDX-License-Identifier: Apache-2.0
#ifndef TENDON_FORMATS_H
#define TENDON_FORMATS_H

// What crosses between a program and libtendon_formats.so: Parquet, for
// src/dataset alone, and Hugging Face's tokenizers, for src/engine/native
// alone. It is a library of its own so that the processes that need neither do
// without, and so that nobody waits for it to be built who does not use it.
//
// It exports one function for each of the two, which gives a table of
// functions. tendon_border.h says how they fail. What they gave is freed by
// them, while the library is loaded.

#include "tendon_border.h"

#include "tendon/slice.h"

// Arrow's C data interface: columns in memory, each with a `release` that frees
// what its owner holds and that sets itself to NULL.
#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE
#define ARROW_FLAG_NULLABLE 2

struct ArrowSchema {
    const char *format;
    const char *name;
    const char *metadata;
    int64_t flags;
    int64_t n_children;
    struct ArrowSchema **children;
    struct ArrowSchema *dictionary;
    void (*release)(struct ArrowSchema *schema);
    void *private_data;
};

struct ArrowArray {
    int64_t length;
    int64_t null_count;
    int64_t offset;
    int64_t n_buffers;
    int64_t n_children;
    const void **buffers;
    struct ArrowArray **children;
    struct ArrowArray *dictionary;
    void (*release)(struct ArrowArray *array);
    void *private_data;
};
#endif

typedef struct tdr_parquet tdr_parquet;
typedef struct tdr_parquet_writer tdr_parquet_writer;

typedef struct tdr_note {
    const char *key;
    const char *value;
} tdr_note;

typedef struct tdr_parquet_ops {
    // Reads the footer of a Parquet file and holds it against limits. `fd` is
    // borrowed until closed, and its offset left alone. Owned by the caller.
    // INVALID (damaged, cut short or none), LIMIT, UNSUPPORTED, IO.
    int (*open)(int fd, tdr_parquet **ret_table, char *err, size_t err_size);
    void (*close)(tdr_parquet *table);

    // Any thread. A name is borrowed from the table; 0 and NULL where there is
    // none.
    size_t (*groups)(const tdr_parquet *table);
    uint64_t (*rows)(const tdr_parquet *table, size_t group);
    size_t (*columns)(const tdr_parquet *table);
    const char *(*name)(const tdr_parquet *table, size_t column);

    // `rows` rows, at least one, of one column in one row group. Lists come as
    // "+l", structures as "+s", texts and bytes as the views "vu" and "vz".
    // Both outputs are owned by the caller: release them. Any thread. INVALID,
    // LIMIT, IO.
    int (*read)(const tdr_parquet *table, size_t group, size_t column,
                size_t first, size_t rows, struct ArrowArray *ret_array,
                struct ArrowSchema *ret_schema, char *err, size_t err_size);

    // Writes into `fd`, which is empty, borrowed until the writer is gone, and
    // neither synced nor closed. The schema is a "+s" whose children are the
    // columns; it is consumed, on failure too. Owned by the caller. INVALID,
    // FULL (the disk), IO.
    int (*create)(int fd, struct ArrowSchema *schema, const tdr_note *notes,
                  size_t note_count, tdr_parquet_writer **ret_writer, char *err,
                  size_t err_size);

    // One row group: a "+s" of that schema, consumed, on failure too.
    int (*append)(tdr_parquet_writer *writer, struct ArrowArray *array,
                  char *err, size_t err_size);

    // All row groups of a file, byte for byte. MISMATCH (other columns).
    int (*copy)(tdr_parquet_writer *writer, const tdr_parquet *table, char *err,
                size_t err_size);

    // Writes the footer: the file is whole, and nothing more goes into it.
    int (*finish)(tdr_parquet_writer *writer, char *err, size_t err_size);

    // Frees the writer; without finish the file is none.
    void (*abandon)(tdr_parquet_writer *writer);

    // Panics caught in this library, ever.
    uint64_t (*panics)(void);
} tdr_parquet_ops;

typedef struct tdr_tokenizer tdr_tokenizer;

typedef struct tdr_tokenizer_ops {
    // Reads a tokenizer.json; texts will be cut at the right to `most_ids`, and
    // not padded. INVALID for what is none. Owned by the caller.
    int (*open)(const char *path, size_t most_ids,
                tdr_tokenizer **ret_tokenizer, char *err, size_t err_size);
    void (*close)(tdr_tokenizer *tokenizer);

    // At most `most_ids` ids, with those that begin or end every text. Any
    // thread. INVALID for what is no UTF-8.
    int (*encode)(const tdr_tokenizer *tokenizer, td_slice text,
                  size_t most_ids, uint32_t *ret_ids, size_t *ret_count,
                  char *err, size_t err_size);
} tdr_tokenizer_ops;

// Raised with every change to what crosses that the tables' size does not show.
#define TDR_FORMATS_VERSION 1

// All that the library exports: a tdr_parquet_ops and a tdr_tokenizer_ops. NULL
// for another version or size than its own.
const void *tdr_parquet_library(uint32_t version, size_t ops_bytes);
const void *tdr_tokenizer_library(uint32_t version, size_t ops_bytes);

#endif
