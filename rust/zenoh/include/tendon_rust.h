// SPDX-License-Identifier: Apache-2.0
#ifndef TENDON_RUST_H
#define TENDON_RUST_H

// What Tendon needs and only Rust has: Zenoh, for src/net/zenoh alone, a bare
// Zenoh ping for the benchmarks, tokenizers, for src/engine/native alone, and
// Parquet, for src/dataset alone.
//
// Functions return TDR_OK or a negative code, and write what a person needs to
// know into `err` (cut to `err_size`; NULL: nowhere). Outputs are untouched on
// failure. No panic crosses this border: one that is caught is counted and
// comes out as TDR_INTERNAL. Rust says it on stderr where `err` does not take
// its text, or with RUST_BACKTRACE set.
//
// Callbacks run on Zenoh's receiving threads, and one that blocks stops all
// reception. What they are given is valid until they return.

#include "tendon/slice.h"

#include <stdbool.h>
#include <stdint.h>

#define TDR_OK 0
#define TDR_INVALID (-1)
#define TDR_EXISTS (-2)
#define TDR_BUSY (-3)
#define TDR_IO (-4)
#define TDR_TIMEOUT (-5)
#define TDR_INTERNAL (-6)
#define TDR_UNSUPPORTED (-7)
#define TDR_FULL (-8)
#define TDR_LIMIT (-9)
#define TDR_MISMATCH (-10)

typedef struct tdr_session tdr_session;
typedef struct tdr_pub tdr_pub;
typedef struct tdr_loan tdr_loan;
typedef struct tdr_decl tdr_decl;
typedef struct tdr_msg tdr_msg;
typedef struct tdr_request tdr_request;

typedef enum tdr_mode { TDR_PEER, TDR_CLIENT, TDR_ROUTER } tdr_mode;

typedef struct tdr_config {
    uint32_t mode; // a tdr_mode
    const char *const *listen;
    size_t listen_count;
    const char *const *connect;
    size_t connect_count;
    bool shared_memory;
    size_t shm_pool_bytes;
} tdr_config;

typedef struct tdr_sample {
    const char *key; // NUL-terminated
    td_slice head;   // the first contiguous piece
    size_t size;     // of the whole payload
    bool is_error;   // an error reply
    const void *payload;
} tdr_sample;

typedef struct tdr_link {
    const char *peer;
    const char *address;
    bool up;
    bool shared_memory;
} tdr_link;

typedef void (*tdr_on_sample)(void *user, const tdr_sample *sample);
typedef void (*tdr_on_request)(void *user, tdr_request *request);
typedef void (*tdr_on_done)(void *user);
typedef void (*tdr_on_alive)(void *user, const char *key, bool alive);
typedef void (*tdr_on_link)(void *user, const tdr_link *link);
typedef void (*tdr_release)(void *user);

// "1.10.2". Static.
const char *tdr_zenoh_version(void);

// Panics caught at this border, ever, in this process.
uint64_t tdr_panics(void);

// Removes shared memory that dead processes left in this machine's /dev/shm.
void tdr_shm_sweep(void);

// Opens a session and starts to connect; waits at most 200 ms for the first
// connection, and goes on trying after that. EXISTS when a listening address is
// in use, INVALID for an endpoint that is not one. Owned by the caller.
int tdr_open(const tdr_config *config, tdr_session **ret_session, char *err,
             size_t err_size);

// Closes and frees, waiting for running callbacks; everything declared on the
// session is gone before. BUSY inside a callback.
int tdr_close(tdr_session *session);

// Borrowed while the session is open.
const char *tdr_id(const tdr_session *session);

// Why shared memory was asked for and is not offered, or NULL. Borrowed while
// the session is open.
const char *tdr_shm_refusal(const tdr_session *session);

// Messages dropped because a link was congested, and puts that found the
// shared-memory pool full. Any thread.
uint64_t tdr_drops(const tdr_session *session);
uint64_t tdr_shm_misses(const tdr_session *session);

// `priority` is Zenoh's, 1 to 7. INVALID for a key with wildcards.
int tdr_publish(tdr_session *session, const char *key, uint8_t priority,
                bool reliable, bool express, tdr_pub **ret_pub, char *err,
                size_t err_size);
void tdr_unpublish(tdr_pub *pub);

// Sends the parts as one message: through shared memory when a peer shares it
// and the message is large, else borrowing large parts when `release` is given,
// else copied. `release` is called exactly once, even on failure. Drops rather
// than blocks.
int tdr_put(tdr_pub *pub, const td_slice *parts, size_t count,
            tdr_release release, void *user);

// Lends `size` bytes of the pool, in which to write a message that a put would
// copy there. Never blocks. UNSUPPORTED when it would take another way, FULL
// when the pool is. A put consumes the loan, on failure too; else free it.
int tdr_lend(tdr_pub *pub, size_t size, tdr_loan **ret_loan, void **ret_bytes);
int tdr_loan_put(tdr_pub *pub, tdr_loan *loan);

// Parts, of which large ones that begin where a loan does are not copied: such
// a loan ends with the part from then on. The loans stay the caller's and are
// written to no more.
int tdr_put_loans(tdr_pub *pub, const td_slice *parts, size_t count,
                  tdr_loan *const *loans, size_t loan_count);
void tdr_loan_free(tdr_loan *loan);

int tdr_matched(const tdr_pub *pub, bool *ret_matched);

// Declarations. Owned by the caller; end with tdr_undeclare().
int tdr_subscribe(tdr_session *session, const char *keyexpr,
                  tdr_on_sample on_sample, void *user, tdr_decl **ret_decl,
                  char *err, size_t err_size);
int tdr_serve(tdr_session *session, const char *keyexpr,
              tdr_on_request on_request, void *user, tdr_decl **ret_decl,
              char *err, size_t err_size);
int tdr_token(tdr_session *session, const char *key, tdr_decl **ret_decl,
              char *err, size_t err_size);
int tdr_watch(tdr_session *session, const char *keyexpr, tdr_on_alive on_alive,
              void *user, tdr_decl **ret_decl, char *err, size_t err_size);
int tdr_links(tdr_session *session, tdr_on_link on_link, void *user,
              tdr_decl **ret_decl, char *err, size_t err_size);

// Ends a declaration, waits for its running callbacks and frees it. BUSY inside
// a callback, and then it is still declared.
int tdr_undeclare(tdr_decl *decl);

// Asks all who serve `keyexpr`: on_reply for each reply, then on_done exactly
// once. On failure neither is called. Returns at once.
int tdr_query(tdr_session *session, const char *keyexpr, td_slice payload,
              int64_t timeout_ns, tdr_on_sample on_reply, tdr_on_done on_done,
              void *user, char *err, size_t err_size);

// Keeps a sample beyond its callback. Large ones are not copied; small ones
// are, since a sample pins the 64 KiB buffer in which it was received.
int tdr_keep(const tdr_sample *sample, tdr_msg **ret_msg);

// The whole as one piece, joined the first time. One thread at a time.
int tdr_msg_bytes(tdr_msg *msg, td_slice *ret_bytes);

// The pieces as they came, at least one. Good until the message is joined or
// freed.
int tdr_msg_pieces(tdr_msg *msg, const td_slice **ret_pieces,
                   size_t *ret_count);
void tdr_msg_free(tdr_msg *msg);

// A request is owned by who was given it; any thread. Freeing it tells the
// asker that no more replies come from here.
td_slice tdr_request_payload(const tdr_request *request);
const char *tdr_request_key(const tdr_request *request);
int tdr_reply(const tdr_request *request, const char *key,
              const td_slice *parts, size_t count);
void tdr_request_free(tdr_request *request);

// A bare Zenoh ping-pong with nothing of Tendon in it, to compare with: pings
// on KEY/ping (best-effort, data) answered inside the callback on KEY/pong
// (reliable, express, interactive-high), both dropping rather than blocking.
// Each side opens a session of its own with Zenoh's defaults, scouting off. The
// two may live in two processes.
typedef struct tdr_echo tdr_echo;
typedef struct tdr_ping tdr_ping;

// Listens at `endpoint` and answers each ping with `reply_bytes`, until closed:
// from within the callback, or (hands_over) from a thread that it wakes.
int tdr_echo_open(const char *endpoint, const char *key, bool shared_memory,
                  bool hands_over, size_t reply_bytes, tdr_echo **ret_echo,
                  char *err, size_t err_size);
void tdr_echo_close(tdr_echo *echo);

// Connects to an echo at `endpoint` and waits until it listens to our pings.
// With shared_memory the bytes of all pings lie there, as a frame that was
// taken into it. TIMEOUT after 10 s.
int tdr_ping_open(const char *endpoint, const char *key, bool shared_memory,
                  size_t payload_bytes, tdr_ping **ret_ping, char *err,
                  size_t err_size);

// One round trip at a time, from before the put to the entry of the pong's
// callback, `count` times. A round lost to congestion is run again; TIMEOUT
// after ten of them.
int tdr_ping_run(tdr_ping *ping, size_t count, int64_t *ret_ns);
void tdr_ping_close(tdr_ping *ping);

typedef struct tdr_tokenizer tdr_tokenizer;

// Reads a tokenizer.json; texts will be cut at the right to `most_ids`, and not
// padded. INVALID for what is none. Owned by the caller.
int tdr_tokenizer_open(const char *path, size_t most_ids,
                       tdr_tokenizer **ret_tokenizer, char *err,
                       size_t err_size);
void tdr_tokenizer_close(tdr_tokenizer *tokenizer);

// At most `most_ids` ids, with those that begin or end every text. Any thread.
// INVALID for what is no UTF-8.
int tdr_tokenizer_encode(const tdr_tokenizer *tokenizer, td_slice text,
                         size_t most_ids, uint32_t *ret_ids, size_t *ret_count,
                         char *err, size_t err_size);

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

// Reads the footer of a Parquet file and holds it against limits. `fd` is
// borrowed until closed, and its offset left alone. Owned by the caller.
// INVALID (damaged, cut short or none), LIMIT, UNSUPPORTED, IO.
int tdr_parquet_open(int fd, tdr_parquet **ret_table, char *err,
                     size_t err_size);
void tdr_parquet_close(tdr_parquet *table);

// Any thread. A name is borrowed from the table; 0 and NULL where there is
// none.
size_t tdr_parquet_groups(const tdr_parquet *table);
uint64_t tdr_parquet_rows(const tdr_parquet *table, size_t group);
size_t tdr_parquet_columns(const tdr_parquet *table);
const char *tdr_parquet_name(const tdr_parquet *table, size_t column);

// `rows` rows, at least one, of one column in one row group. Lists come as
// "+l", structures as "+s", texts and bytes as the views "vu" and "vz". Both
// outputs are owned by the caller: release them. Any thread. INVALID, LIMIT,
// IO.
int tdr_parquet_read(const tdr_parquet *table, size_t group, size_t column,
                     size_t first, size_t rows, struct ArrowArray *ret_array,
                     struct ArrowSchema *ret_schema, char *err,
                     size_t err_size);

// Writes into `fd`, which is empty, borrowed until the writer is gone, and
// neither synced nor closed. The schema is a "+s" whose children are the
// columns; it is consumed, on failure too. Owned by the caller. INVALID, FULL
// (the disk), IO.
int tdr_parquet_create(int fd, struct ArrowSchema *schema,
                       const tdr_note *notes, size_t note_count,
                       tdr_parquet_writer **ret_writer, char *err,
                       size_t err_size);

// One row group: a "+s" of that schema, consumed, on failure too.
int tdr_parquet_append(tdr_parquet_writer *writer, struct ArrowArray *array,
                       char *err, size_t err_size);

// All row groups of a file, byte for byte. MISMATCH (other columns).
int tdr_parquet_copy(tdr_parquet_writer *writer, const tdr_parquet *table,
                     char *err, size_t err_size);

// Writes the footer: the file is whole, and nothing more goes into it.
int tdr_parquet_finish(tdr_parquet_writer *writer, char *err, size_t err_size);

// Frees the writer; without finish the file is none.
void tdr_parquet_abandon(tdr_parquet_writer *writer);

#endif
