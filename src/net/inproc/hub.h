// SPDX-License-Identifier: Apache-2.0
#ifndef TD_NET_INPROC_HUB_H
#define TD_NET_INPROC_HUB_H

// The inside of the in-process transport, shared by its files:
//
//   inproc.c   td_net_ops: sessions, and the messages that callbacks see
//   pub.c      publishers
//   decl.c     subscribers, servers, tokens, watches, links
//   query.c    queries, requests, replies
//   hub.c      what is on the way, and who delivers it
//   link.c     what happens between two sessions: faults, partitions
//   heap.c     deliveries in order of (due, order)
//   msg.c      payloads, copied once and shared by count
//   keyexpr.c  key expressions
//
// The rule that surprises: one lock guards all of a hub and is never held while
// a callback runs. Functions here are called with it held unless they say
// otherwise. Nothing is ordered by address, so that a run can be repeated.

#include "base/rand.h"
#include "base/sync/event.h"
#include "base/sync/thread.h"
#include "net/inproc/heap.h"
#include "net/inproc/inproc.h"
#include "net/inproc/msg.h"

typedef enum td_inproc_kind {
    TD_INPROC_SUBSCRIBER,
    TD_INPROC_SERVER,
    TD_INPROC_TOKEN,
    TD_INPROC_WATCH,
    TD_INPROC_LINKS,
} td_inproc_kind;

typedef union td_inproc_callback {
    td_net_on_sample on_sample;
    td_net_on_request on_request;
    td_net_on_alive on_alive;
    td_net_on_link on_link;
} td_inproc_callback;

// One way between two sessions. It draws its own random numbers, so that one
// session more does not change what happens to the others.
typedef struct td_inproc_direction {
    td_net_faults faults;
    td_rand rand;
    int64_t reliable_due_ns; // no reliable message may be due before this
    bool cut;
} td_inproc_direction;

typedef struct td_inproc_session {
    td_net base;
    td_net_hub *hub;
    uint64_t id;               // never given twice in a hub
    size_t slot;               // its place in the hub, and in others' `out`
    size_t declared;           // publishers and declarations still open
    uint64_t lost;             // of what it sent
    td_inproc_direction **out; // by the slot of the other; NULL: not used yet
    size_t out_count;
    char name[];
} td_inproc_session;

typedef struct td_inproc_decl {
    td_net_decl base;
    td_inproc_session *session;
    td_inproc_kind kind;
    td_inproc_callback callback;
    void *user;
    struct td_inproc_decl *next; // in the hub, in order of declaration
    char keyexpr[];
} td_inproc_decl;

typedef struct td_inproc_asked {
    uint64_t request;
    uint64_t server; // the session that holds it; 0: its last word is sent
} td_inproc_asked;

// A query until its on_done. Requests and deliveries know it by its id alone,
// so that they may outlive it.
typedef struct td_inproc_query {
    uint64_t id;
    td_inproc_session *session;
    td_net_on_sample on_reply;
    td_net_on_done on_done;
    void *user;
    td_inproc_asked *asked; // who has not ended yet
    size_t asked_count;
    bool ending; // an END is on the way
    struct td_inproc_query *next;
} td_inproc_query;

typedef struct td_inproc_rule {
    char *from; // NULL: any
    char *to;   // NULL: any
    td_net_faults faults;
} td_inproc_rule;

struct td_net_hub {
    td_net_hub *self; // a way to the lock for functions that only look
    const td_clock *clock;
    td_clock_virtual *virtual_clock; // NULL: threaded
    td_rand rand;
    td_thread *thread; // NULL: virtual
    td_event wake;

    pthread_mutex_t lock; // guards everything below
    pthread_cond_t idle;  // a callback has returned
    bool stopping;
    bool calling;                       // a callback is running,
    pthread_t caller;                   // on this thread,
    const td_inproc_decl *calling_decl; // for this declaration or NULL,
    uint64_t calling_session;           // of this session

    td_inproc_heap heap;
    uint64_t last_id;
    uint64_t version; // counts changes of `decls`
    td_inproc_decl *decls;
    td_inproc_query *queries;
    td_inproc_session **sessions; // by slot; NULL: free
    size_t session_count;
    td_inproc_rule *rules; // the last that fits wins
    size_t rule_count;
    td_net_hub_stats stats; // `waiting` is counted when asked for
};

// hub.c

void td_inproc_hub_lock(td_net_hub *hub);
void td_inproc_hub_unlock(td_net_hub *hub);

// True on the thread that runs a callback of this hub.
bool td_inproc_hub_in_callback(const td_net_hub *hub);

uint64_t td_inproc_hub_new_id(td_net_hub *hub);
int64_t td_inproc_hub_now_ns(const td_net_hub *hub);

// Puts a delivery on its way. Consumes its reference of the message, also on
// failure. NOMEM.
TD_NODISCARD td_err td_inproc_hub_push(td_net_hub *hub,
                                       const td_inproc_delivery *delivery);

// Takes deliveries off their way: messages count as cut, and requests and last
// words that are lost end their part of a query.
typedef bool (*td_inproc_doomed)(const td_inproc_delivery *delivery,
                                 const void *user);
void td_inproc_hub_discard(td_net_hub *hub, td_inproc_doomed doomed,
                           const void *user);

// Brackets a callback: the lock is let go between the two.
void td_inproc_hub_call_begin(td_net_hub *hub, const td_inproc_decl *decl,
                              const td_inproc_session *session);
void td_inproc_hub_call_end(td_net_hub *hub);

// link.c

td_inproc_session *td_inproc_link_session(const td_net_hub *hub,
                                          const char *name);
td_inproc_session *td_inproc_link_session_by_id(const td_net_hub *hub,
                                                uint64_t id);

// The direction from one session to another, made the first time. NOMEM.
TD_NODISCARD td_err td_inproc_link_get(td_inproc_session *from,
                                       const td_inproc_session *to,
                                       td_inproc_direction **ret_direction);
void td_inproc_link_forget(td_net_hub *hub, const td_inproc_session *session);
void td_inproc_link_rules_done(td_net_hub *hub);

bool td_inproc_link_chance(td_inproc_direction *direction, double probability);

// When a message sent now arrives, if it does.
int64_t td_inproc_link_due_ns(td_inproc_direction *direction, int64_t now_ns,
                              bool reliable);

// Sends what may not be lost; dropped when the link is cut. Fills in where it
// comes from, where it goes and when it is due. Consumes the message.
TD_NODISCARD td_err td_inproc_link_send(td_inproc_session *from,
                                        td_inproc_session *to,
                                        td_inproc_delivery delivery);

// inproc.c

extern const td_net_ops td_inproc_ops;

// A message as a callback of `session` sees it. Needs no lock.
void td_inproc_sample(const td_inproc_session *session, td_inproc_msg *msg,
                      td_net_sample *ret_sample);

// decl.c

// Calls the declaration that the delivery is for; lets the lock go meanwhile.
void td_inproc_decl_deliver(td_net_hub *hub,
                            const td_inproc_delivery *delivery);

// Tells the watches of `to` of the tokens of `from`.
TD_NODISCARD td_err td_inproc_decl_notify_tokens(const td_inproc_session *from,
                                                 const td_inproc_session *to,
                                                 bool alive);

// Tells the `links` declarations of `session` of its link to `peer`.
TD_NODISCARD td_err td_inproc_decl_notify_link(const td_inproc_session *session,
                                               const td_inproc_session *peer,
                                               bool up);

// query.c

// Ends one server's part of a query, without a callback.
void td_inproc_query_forget(td_net_hub *hub, uint64_t id, uint64_t request_id);

// Ends what session `server` still holds of the queries of session `asker`, or
// of anybody (0).
void td_inproc_query_lose_server(td_net_hub *hub, uint64_t asker,
                                 uint64_t server);

// Puts an END on its way for each query that has nobody left to hear from.
void td_inproc_query_end_unasked(td_net_hub *hub);

// Calls the receiver of the delivery; releases the lock meanwhile.
void td_inproc_query_deliver(td_net_hub *hub,
                             const td_inproc_delivery *delivery);

// Waits for the session's running callback, then ends its queries: each on_done
// is called here. Lets the lock go meanwhile.
void td_inproc_query_close(td_inproc_session *session);

// The operations of td_net_ops, described in net.h. They take the lock.

td_err td_inproc_pub_new(td_net *net, const char *key, const td_net_qos *qos,
                         td_net_pub **ret_pub, td_errinfo *info);
void td_inproc_pub_free(td_net_pub *base);
td_err td_inproc_pub_put(td_net_pub *base, const td_slice *parts, size_t count,
                         td_net_release release, void *user);
td_err td_inproc_pub_lend(td_net_pub *base, size_t size,
                          td_net_loan **ret_loan);
td_err td_inproc_pub_loan_put(td_net_loan *base);
td_err td_inproc_pub_put_loans(td_net_pub *base, const td_slice *parts,
                               size_t count, td_net_loan *const *loans,
                               size_t loan_count);
void td_inproc_pub_loan_free(td_net_loan *base);
td_err td_inproc_pub_matched(const td_net_pub *base, bool *ret_matched);

td_err td_inproc_decl_subscribe(td_net *net, const char *keyexpr,
                                td_net_on_sample on_sample, void *user,
                                td_net_decl **ret_decl, td_errinfo *info);
td_err td_inproc_decl_serve(td_net *net, const char *keyexpr,
                            td_net_on_request on_request, void *user,
                            td_net_decl **ret_decl, td_errinfo *info);
td_err td_inproc_decl_token(td_net *net, const char *key,
                            td_net_decl **ret_decl, td_errinfo *info);
td_err td_inproc_decl_watch(td_net *net, const char *keyexpr,
                            td_net_on_alive on_alive, void *user,
                            td_net_decl **ret_decl, td_errinfo *info);
td_err td_inproc_decl_links(td_net *net, td_net_on_link on_link, void *user,
                            td_net_decl **ret_decl, td_errinfo *info);
td_err td_inproc_decl_undeclare(td_net_decl *base);

td_err td_inproc_query_start(td_net *net, const char *keyexpr, td_slice payload,
                             int64_t timeout_ns, td_net_on_sample on_reply,
                             td_net_on_done on_done, void *user,
                             td_errinfo *info);
td_slice td_inproc_request_payload(const td_net_request *base);
const char *td_inproc_request_key(const td_net_request *base);
td_err td_inproc_request_reply(td_net_request *base, const char *key,
                               const td_slice *parts, size_t count);
void td_inproc_request_free(td_net_request *base);

#endif
