// SPDX-License-Identifier: Apache-2.0
#ifndef TENDON_ZENOH_H
#define TENDON_ZENOH_H

// Zenoh, for src/net/zenoh alone, and a bare Zenoh ping for the benchmarks: a
// static library. tendon_border.h says how its functions fail.
//
// Callbacks run on Zenoh's receiving threads, and one that blocks stops all
// reception. What they are given is valid until they return.

#include "tendon_border.h"

#include "tendon/slice.h"

#include <stdbool.h>

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

#endif
