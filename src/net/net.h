// SPDX-License-Identifier: Apache-2.0
#ifndef TD_NET_NET_H
#define TD_NET_NET_H

// Transports: publish, subscribe, query, liveliness.
//
// Two implementations of td_net_ops: `zenoh/` (the real one) and `inproc/`
// (deterministic, in one process, with seeded faults). Everything above talks
// to the functions on this page and cannot tell them apart; one conformance
// suite (conformance.c) runs over both.
//
// The rule that surprises: a callback runs on the transport's own receiving
// thread, and blocking it stops all reception. A callback may look at what it
// was given, keep it, hand it over and signal a td_event. It must not put,
// query, declare, undeclare or close.
//
// To add a transport: fill in a td_net_ops, write an open function, and add a
// row to the conformance suite.

#include "base/err.h"

#include <stdbool.h>

typedef struct td_net td_net;           // an open session
typedef struct td_net_pub td_net_pub;   // a publisher
typedef struct td_net_loan td_net_loan; // a message that is being written
typedef struct td_net_decl td_net_decl; // any other declaration
typedef struct td_net_msg td_net_msg;   // a message kept after its callback
typedef struct td_net_request td_net_request; // a query that waits for replies

typedef enum td_net_priority {
    TD_NET_REALTIME = 1,
    TD_NET_INTERACTIVE_HIGH,
    TD_NET_INTERACTIVE_LOW,
    TD_NET_DATA_HIGH,
    TD_NET_DATA,
    TD_NET_DATA_LOW,
    TD_NET_BACKGROUND,
} td_net_priority;

// Nothing here ever blocks a put: a message for which there is no room is
// dropped, and sequence numbers are for the two ends to keep.
typedef struct td_net_qos {
    td_net_priority priority;
    bool reliable; // ordered and not lost while the link lives
    bool express;  // not held back to be batched with others
} td_net_qos;

// A message as its callback sees it; valid until the callback returns.
typedef struct td_net_sample {
    const td_net *net;
    const char *key; // NUL-terminated
    td_slice head;   // the first contiguous piece; the whole when whole is set
    size_t size;     // of the whole payload
    bool whole;      // head is all of it
    bool is_error;   // an error reply to a query
    void *impl;
} td_net_sample;

typedef struct td_net_link {
    const char *peer;    // the other end's id
    const char *address; // "tcp/127.0.0.1:7447 -> ..." as the transport says it
    bool up;
    bool shared_memory; // large messages to this peer travel through memory
} td_net_link;

// What should not happen and is not the caller's doing: (field, name, help)
#define TD_NET_COUNTS(X)                                                       \
    X(drops, "net_drops",                                                      \
      "messages that the transport dropped, for a link was congested")         \
    X(pool_misses, "net_pool_misses",                                          \
      "messages that were copied, for the shared-memory pool was full")        \
    X(panics, "net_panics",                                                    \
      "panics caught at the border to Rust, in this process; should be 0")
typedef struct td_net_counts {
#define TD_NET_COUNTS_FIELD(field, name, help) uint64_t field;
    TD_NET_COUNTS(TD_NET_COUNTS_FIELD)
#undef TD_NET_COUNTS_FIELD
} td_net_counts;

typedef void (*td_net_on_sample)(void *user, const td_net_sample *sample);
// The request is consumed: reply from any thread, then free it.
typedef void (*td_net_on_request)(void *user, td_net_request *request);
typedef void (*td_net_on_done)(void *user);
typedef void (*td_net_on_alive)(void *user, const char *key, bool alive);
typedef void (*td_net_on_link)(void *user, const td_net_link *link);

// Called once with the buffers of a put that the transport borrowed, when it
// needs them no more; on any thread, perhaps before the put returns.
typedef void (*td_net_release)(void *user);

typedef struct td_net_ops {
    const char *name; // as written in a configuration

    void (*close)(td_net *net);
    const char *(*id)(const td_net *net);

    // (optional) Without it, nothing of the kind can happen.
    td_net_counts (*counts)(const td_net *net);

    td_err (*publish)(td_net *net, const char *key, const td_net_qos *qos,
                      td_net_pub **ret_pub, td_errinfo *info);
    void (*unpublish)(td_net_pub *pub);
    td_err (*put)(td_net_pub *pub, const td_slice *parts, size_t count,
                  td_net_release release, void *user);
    td_err (*lend)(td_net_pub *pub, size_t size, td_net_loan **ret_loan);
    td_err (*loan_put)(td_net_loan *loan);
    td_err (*put_loans)(td_net_pub *pub, const td_slice *parts, size_t count,
                        td_net_loan *const *loans, size_t loan_count);
    void (*loan_free)(td_net_loan *loan);
    td_err (*matched)(const td_net_pub *pub, bool *ret_matched);
    td_err (*subscribe)(td_net *net, const char *keyexpr,
                        td_net_on_sample on_sample, void *user,
                        td_net_decl **ret_decl, td_errinfo *info);
    td_err (*serve)(td_net *net, const char *keyexpr,
                    td_net_on_request on_request, void *user,
                    td_net_decl **ret_decl, td_errinfo *info);
    td_err (*query)(td_net *net, const char *keyexpr, td_slice payload,
                    int64_t timeout_ns, td_net_on_sample on_reply,
                    td_net_on_done on_done, void *user, td_errinfo *info);
    td_err (*token)(td_net *net, const char *key, td_net_decl **ret_decl,
                    td_errinfo *info);
    td_err (*watch)(td_net *net, const char *keyexpr, td_net_on_alive on_alive,
                    void *user, td_net_decl **ret_decl, td_errinfo *info);
    td_err (*links)(td_net *net, td_net_on_link on_link, void *user,
                    td_net_decl **ret_decl, td_errinfo *info);
    td_err (*undeclare)(td_net_decl *decl);

    td_err (*keep)(const td_net_sample *sample, td_net_msg **ret_msg);
    td_err (*msg_bytes)(td_net_msg *msg, td_slice *ret_bytes);
    td_err (*msg_pieces)(td_net_msg *msg, const td_slice **ret_pieces,
                         size_t *ret_count);
    void (*msg_free)(td_net_msg *msg);

    td_slice (*request_payload)(const td_net_request *request);
    const char *(*request_key)(const td_net_request *request);
    td_err (*reply)(td_net_request *request, const char *key,
                    const td_slice *parts, size_t count);
    void (*request_free)(td_net_request *request);
} td_net_ops;

// Every object of a transport begins with its operations.
struct td_net {
    const td_net_ops *ops;
};
struct td_net_pub {
    const td_net_ops *ops;
};
struct td_net_loan {
    const td_net_ops *ops;
    void *bytes; // as many as were asked for, to be written
};
struct td_net_decl {
    const td_net_ops *ops;
};
struct td_net_msg {
    const td_net_ops *ops;
};
struct td_net_request {
    const td_net_ops *ops;
};

// Closes the session: nothing declared on it may be left. Waits for running
// callbacks. Not inside a callback; blocks for a bounded time.
void td_net_close(td_net *net);
TD_AUTO_FREE(td_net, td_net_close)

// The session's own id, borrowed while it is open. Any thread.
const char *td_net_id(const td_net *net);

// What went wrong since the session was opened. Any thread but a callback's,
// and no more often than a person looks: a transport may have to gather it.
td_net_counts td_net_counts_get(const td_net *net);

// Declares a publisher on one key. Owned by the caller. INVALID for a key that
// is not one. Any thread but a callback's.
TD_NODISCARD td_err td_net_publish(td_net *net, const char *key,
                                   const td_net_qos *qos, td_net_pub **ret_pub,
                                   td_errinfo *info);
void td_net_unpublish(td_net_pub *pub);
TD_AUTO_FREE(td_net_pub, td_net_unpublish)

// Sends the parts as one message. Without `release` they are copied, once.
// With it, large parts are borrowed where the transport can, until
// release(user) is called, exactly once, even when the put fails. Any thread;
// waits for room: at most milliseconds, or half a second for a message of
// megabytes on a slow link. TD_OK says that it was handed over, not that it
// arrived.
TD_NODISCARD td_err td_net_put(td_net_pub *pub, const td_slice *parts,
                               size_t count, td_net_release release,
                               void *user);

// Lends a place in which to write a message of `size` bytes, or a part of one,
// so that a put need not copy it there. Owned by the caller. It may outlive its
// publisher, but is then put no more. Any thread; never blocks. UNSUPPORTED
// where a put would copy no more (it is small, or nobody on this machine
// listens), FULL: then td_net_put() it.
TD_NODISCARD td_err td_net_lend(td_net_pub *pub, size_t size,
                                td_net_loan **ret_loan);

// Sends what was written: all of it must be. Consumes the loan, on failure too.
// Otherwise as td_net_put().
TD_NODISCARD td_err td_net_loan_put(td_net_loan *loan);

#define TD_NET_MAX_LOANS 16 // in one message

// Sends parts. A large one that begins where a loan does is not copied: it is
// that loan, which ends with it from then on and is written to no more. The
// loans stay the caller's, to be put again and again, one thread at a time.
// Otherwise as td_net_put(), with all that is not lent copied; LIMIT beyond the
// most loans.
TD_NODISCARD td_err td_net_put_loans(td_net_pub *pub, const td_slice *parts,
                                     size_t count, td_net_loan *const *loans,
                                     size_t loan_count);

// Ends a loan without sending anything more.
void td_net_loan_free(td_net_loan *loan);
TD_AUTO_FREE(td_net_loan, td_net_loan_free)

// Whether anybody subscribes to this publisher's key now. Any thread.
TD_NODISCARD td_err td_net_matched(const td_net_pub *pub, bool *ret_matched);

// Calls on_sample for every message on `keyexpr` (`*` one chunk, `**` any).
TD_NODISCARD td_err td_net_subscribe(td_net *net, const char *keyexpr,
                                     td_net_on_sample on_sample, void *user,
                                     td_net_decl **ret_decl, td_errinfo *info);

// Answers queries on `keyexpr`.
TD_NODISCARD td_err td_net_serve(td_net *net, const char *keyexpr,
                                 td_net_on_request on_request, void *user,
                                 td_net_decl **ret_decl, td_errinfo *info);

// Asks everybody who serves `keyexpr`. on_reply is called for each reply, then
// on_done exactly once: when all have answered or after `timeout_ns`. The
// payload is copied. Returns at once.
TD_NODISCARD td_err td_net_query(td_net *net, const char *keyexpr,
                                 td_slice payload, int64_t timeout_ns,
                                 td_net_on_sample on_reply,
                                 td_net_on_done on_done, void *user,
                                 td_errinfo *info);

// Shows `key` as alive until undeclared or until this session dies.
TD_NODISCARD td_err td_net_token(td_net *net, const char *key,
                                 td_net_decl **ret_decl, td_errinfo *info);

// Tells of tokens that match `keyexpr`: those there already, then each change.
TD_NODISCARD td_err td_net_watch(td_net *net, const char *keyexpr,
                                 td_net_on_alive on_alive, void *user,
                                 td_net_decl **ret_decl, td_errinfo *info);

// Tells of links: those up already, then each change.
TD_NODISCARD td_err td_net_links(td_net *net, td_net_on_link on_link,
                                 void *user, td_net_decl **ret_decl,
                                 td_errinfo *info);

// Ends a declaration and waits for its running callbacks: after it returns none
// is called again. BUSY inside a callback, where it would wait for itself.
td_err td_net_undeclare(td_net_decl *decl);
static inline void td_net_decl_auto_free(td_net_decl **slot)
{
    if (*slot) (void)td_net_undeclare(*slot);
}

// Keeps a message beyond its callback, without copying a large one. Inside its
// callback only; never blocks. Owned by the caller, one thread at a time.
TD_NODISCARD td_err td_net_keep(const td_net_sample *sample,
                                td_net_msg **ret_msg);

// The payload as one piece, borrowed while the message lives. Joins pieces the
// first time, on the calling thread.
TD_NODISCARD td_err td_net_msg_bytes(td_net_msg *msg, td_slice *ret_bytes);

// The payload as it came, in at least one piece, borrowed until it is joined or
// freed. NOMEM.
TD_NODISCARD td_err td_net_msg_pieces(td_net_msg *msg,
                                      const td_slice **ret_pieces,
                                      size_t *ret_count);
void td_net_msg_free(td_net_msg *msg);
TD_AUTO_FREE(td_net_msg, td_net_msg_free)

// What the asker sent, and the key expression it asked. Borrowed.
td_slice td_net_request_payload(const td_net_request *request);
const char *td_net_request_key(const td_net_request *request);

// Answers on `key`, which the asked key expression must match. Copies the
// parts. Any thread but a callback's; may be called more than once.
TD_NODISCARD td_err td_net_reply(td_net_request *request, const char *key,
                                 const td_slice *parts, size_t count);

// Ends the request: the asker learns that no more replies come from here.
void td_net_request_free(td_net_request *request);
TD_AUTO_FREE(td_net_request, td_net_request_free)

#endif
