// SPDX-License-Identifier: Apache-2.0
// The Zenoh transport: td_net_ops over our Rust library
// (rust/include/tendon_rust.h), which runs Zenoh.
//
// Each object here (session, publication, declaration, message, request, loan)
// wraps its counterpart in Rust, which does the work. This file translates:
// error codes, structs, callbacks. It holds no state of its own, takes no lock
// and starts no thread.
//
// Threads are Zenoh's. Callbacks for samples, requests, replies, tokens and
// links run on Zenoh's threads, and inside them nothing may be undeclared or
// closed: td_net_undeclare() then returns BUSY, and closing is a mistake of the
// programmer. What is to outlive a callback is kept (tdr_keep).
//
// A callback gets the wrapper as its `user`. The Rust side promises that no
// callback runs any more when tdr_undeclare() has returned other than BUSY, and
// that on_done of a query comes exactly once and last. So a wrapper is freed
// after its counterpart: a declaration by td_net_undeclare(), a query's wrapper
// by its own on_done, everything else by the call that ends it. Where making
// the counterpart fails, the wrapper is freed at once and nothing was declared.
//
// Panics in Rust are caught at the border, counted (td_net_counts) and returned
// as INTERNAL; they never unwind into C.
//
// It ends with td_net_close(), after everything that was made of the session
// has been freed.
#include "net/zenoh/zenoh.h"

#include "tendon_zenoh.h"

#include <assert.h>
#include <stdlib.h>

typedef struct zenoh_net {
    td_net base;
    tdr_session *session;
} zenoh_net;

typedef struct zenoh_pub {
    td_net_pub base;
    tdr_pub *pub;
} zenoh_pub;

typedef struct zenoh_loan {
    td_net_loan base;
    tdr_loan *loan;
    tdr_pub *pub;
} zenoh_loan;

typedef struct zenoh_decl {
    td_net_decl base;
    tdr_decl *decl;
    const td_net *net;
    union {
        td_net_on_sample sample;
        td_net_on_request request;
        td_net_on_link link;
    } on;
    void *user;
} zenoh_decl;

typedef struct zenoh_msg {
    td_net_msg base;
    tdr_msg *msg;
} zenoh_msg;

typedef struct zenoh_request {
    td_net_request base;
    tdr_request *request;
} zenoh_request;

typedef struct zenoh_asked {
    const td_net *net;
    td_net_on_sample on_reply;
    td_net_on_done on_done;
    void *user;
} zenoh_asked;

static const td_net_ops ops;

static td_err from_code(int code)
{
    switch (code) {
    case TDR_OK:
        return TD_OK;
    case TDR_INVALID:
        return TD_ERR_INVALID;
    case TDR_EXISTS:
        return TD_ERR_EXISTS;
    case TDR_BUSY:
        return TD_ERR_BUSY;
    case TDR_IO:
        return TD_ERR_IO;
    case TDR_TIMEOUT:
        return TD_ERR_TIMEOUT;
    case TDR_UNSUPPORTED:
        return TD_ERR_UNSUPPORTED;
    case TDR_FULL:
        return TD_ERR_FULL;
    default:
        return TD_ERR_INTERNAL;
    }
}

static char *text_of(td_errinfo *info)
{
    return info ? info->text : NULL;
}

static size_t room_in(const td_errinfo *info)
{
    return info ? sizeof info->text : 0;
}

static tdr_session *session_of(const td_net *net)
{
    return ((const zenoh_net *)net)->session;
}

static uint32_t mode_code(td_net_zenoh_mode mode)
{
    switch (mode) {
    case TD_NET_ZENOH_PEER:
        return TDR_PEER;
    case TD_NET_ZENOH_CLIENT:
        return TDR_CLIENT;
    case TD_NET_ZENOH_ROUTER:
        return TDR_ROUTER;
    }
    return UINT32_MAX;
}

td_err td_net_zenoh_open(const td_net_zenoh_config *config, td_net **ret_net,
                         td_errinfo *info)
{
    zenoh_net *net = calloc(1, sizeof *net);
    if (!net) return TD_ERR_NOMEM;
    net->base.ops = &ops;

    tdr_config rust = {
        .mode = mode_code(config->mode),
        .listen = config->listen,
        .listen_count = config->listen_count,
        .connect = config->connect,
        .connect_count = config->connect_count,
        .shared_memory = config->shared_memory,
        .shm_pool_bytes = config->shm_pool_bytes,
    };
    int code = tdr_open(&rust, &net->session, text_of(info), room_in(info));
    if (code != TDR_OK) {
        free(net);
        return from_code(code);
    }
    *ret_net = &net->base;
    return TD_OK;
}

uint64_t td_net_zenoh_panics(void)
{
    return tdr_panics();
}

static td_net_counts net_counts(const td_net *net)
{
    return (td_net_counts){
        .drops = tdr_drops(session_of(net)),
        .pool_misses = tdr_shm_misses(session_of(net)),
        .panics = tdr_panics(),
    };
}

const char *td_net_zenoh_shm_refusal(const td_net *net)
{
    return tdr_shm_refusal(session_of(net));
}

void td_net_zenoh_sweep(void)
{
    tdr_shm_sweep();
}

const char *td_net_zenoh_version(void)
{
    return tdr_zenoh_version();
}

static void net_close(td_net *net)
{
    int code = tdr_close(session_of(net));
    assert(code != TDR_BUSY && "closed inside a callback");
    (void)code;
    free(net);
}

static const char *net_id(const td_net *net)
{
    return tdr_id(session_of(net));
}

static td_err net_publish(td_net *net, const char *key, const td_net_qos *qos,
                          td_net_pub **ret_pub, td_errinfo *info)
{
    zenoh_pub *pub = calloc(1, sizeof *pub);
    if (!pub) return TD_ERR_NOMEM;
    pub->base.ops = &ops;

    int code =
        tdr_publish(session_of(net), key, (uint8_t)qos->priority, qos->reliable,
                    qos->express, &pub->pub, text_of(info), room_in(info));
    if (code != TDR_OK) {
        free(pub);
        return from_code(code);
    }
    *ret_pub = &pub->base;
    return TD_OK;
}

static void net_unpublish(td_net_pub *pub)
{
    tdr_unpublish(((zenoh_pub *)pub)->pub);
    free(pub);
}

static td_err net_put(td_net_pub *pub, const td_slice *parts, size_t count,
                      td_net_release release, void *user)
{
    return from_code(
        tdr_put(((zenoh_pub *)pub)->pub, parts, count, release, user));
}

static td_err net_lend(td_net_pub *pub, size_t size, td_net_loan **ret_loan)
{
    zenoh_loan *loan = calloc(1, sizeof *loan);
    if (!loan) return TD_ERR_NOMEM;
    loan->base.ops = &ops;
    loan->pub = ((zenoh_pub *)pub)->pub;

    int code = tdr_lend(loan->pub, size, &loan->loan, &loan->base.bytes);
    if (code != TDR_OK) {
        free(loan);
        return from_code(code);
    }
    *ret_loan = &loan->base;
    return TD_OK;
}

static td_err net_loan_put(td_net_loan *base)
{
    zenoh_loan *loan = (zenoh_loan *)base;
    int code = tdr_loan_put(loan->pub, loan->loan);
    free(loan);
    return from_code(code);
}

static td_err net_put_loans(td_net_pub *pub, const td_slice *parts,
                            size_t count, td_net_loan *const *loans,
                            size_t loan_count)
{
    tdr_loan *lent[TD_NET_MAX_LOANS];
    if (loan_count > TD_NET_MAX_LOANS) return TD_ERR_LIMIT;
    for (size_t i = 0; i < loan_count; i++)
        lent[i] = ((zenoh_loan *)loans[i])->loan;
    return from_code(
        tdr_put_loans(((zenoh_pub *)pub)->pub, parts, count, lent, loan_count));
}

static void net_loan_free(td_net_loan *loan)
{
    tdr_loan_free(((zenoh_loan *)loan)->loan);
    free(loan);
}

static td_err net_matched(const td_net_pub *pub, bool *ret_matched)
{
    return from_code(tdr_matched(((const zenoh_pub *)pub)->pub, ret_matched));
}

static zenoh_decl *decl_new(const td_net *net, void *user)
{
    zenoh_decl *decl = calloc(1, sizeof *decl);
    if (!decl) return NULL;
    decl->base.ops = &ops;
    decl->net = net;
    decl->user = user;
    return decl;
}

// Hands over what was declared with `code`, or frees what was not.
static td_err decl_give(zenoh_decl *decl, int code, td_net_decl **ret_decl)
{
    if (code != TDR_OK) {
        free(decl);
        return from_code(code);
    }
    *ret_decl = &decl->base;
    return TD_OK;
}

static td_net_sample sample_from(const td_net *net, const tdr_sample *sample)
{
    return (td_net_sample){
        .net = net,
        .key = sample->key,
        .head = sample->head,
        .size = sample->size,
        .whole = sample->head.size == sample->size,
        .is_error = sample->is_error,
        .impl = (void *)(uintptr_t)sample,
    };
}

static void on_sample(void *user, const tdr_sample *sample)
{
    const zenoh_decl *decl = user;
    td_net_sample shown = sample_from(decl->net, sample);
    decl->on.sample(decl->user, &shown);
}

static td_err net_subscribe(td_net *net, const char *keyexpr,
                            td_net_on_sample user_on_sample, void *user,
                            td_net_decl **ret_decl, td_errinfo *info)
{
    zenoh_decl *decl = decl_new(net, user);
    if (!decl) return TD_ERR_NOMEM;
    decl->on.sample = user_on_sample;
    int code = tdr_subscribe(session_of(net), keyexpr, on_sample, decl,
                             &decl->decl, text_of(info), room_in(info));
    return decl_give(decl, code, ret_decl);
}

static void on_request(void *user, tdr_request *rust)
{
    const zenoh_decl *decl = user;
    zenoh_request *request = calloc(1, sizeof *request);
    if (!request) {
        tdr_request_free(rust);
        return;
    }
    request->base.ops = &ops;
    request->request = rust;
    decl->on.request(decl->user, &request->base);
}

static td_err net_serve(td_net *net, const char *keyexpr,
                        td_net_on_request user_on_request, void *user,
                        td_net_decl **ret_decl, td_errinfo *info)
{
    zenoh_decl *decl = decl_new(net, user);
    if (!decl) return TD_ERR_NOMEM;
    decl->on.request = user_on_request;
    int code = tdr_serve(session_of(net), keyexpr, on_request, decl,
                         &decl->decl, text_of(info), room_in(info));
    return decl_give(decl, code, ret_decl);
}

static void on_reply(void *user, const tdr_sample *sample)
{
    const zenoh_asked *asked = user;
    td_net_sample shown = sample_from(asked->net, sample);
    asked->on_reply(asked->user, &shown);
}

static void on_done(void *user)
{
    zenoh_asked *asked = user;
    asked->on_done(asked->user);
    free(asked);
}

static td_err net_query(td_net *net, const char *keyexpr, td_slice payload,
                        int64_t timeout_ns, td_net_on_sample user_on_reply,
                        td_net_on_done user_on_done, void *user,
                        td_errinfo *info)
{
    zenoh_asked *asked = malloc(sizeof *asked);
    if (!asked) return TD_ERR_NOMEM;
    *asked = (zenoh_asked){net, user_on_reply, user_on_done, user};
    int code =
        tdr_query(session_of(net), keyexpr, payload, timeout_ns, on_reply,
                  on_done, asked, text_of(info), room_in(info));
    if (code != TDR_OK) free(asked);
    return from_code(code);
}

static td_err net_token(td_net *net, const char *key, td_net_decl **ret_decl,
                        td_errinfo *info)
{
    zenoh_decl *decl = decl_new(net, NULL);
    if (!decl) return TD_ERR_NOMEM;
    int code = tdr_token(session_of(net), key, &decl->decl, text_of(info),
                         room_in(info));
    return decl_give(decl, code, ret_decl);
}

static td_err net_watch(td_net *net, const char *keyexpr,
                        td_net_on_alive on_alive, void *user,
                        td_net_decl **ret_decl, td_errinfo *info)
{
    zenoh_decl *decl = decl_new(net, NULL);
    if (!decl) return TD_ERR_NOMEM;
    int code = tdr_watch(session_of(net), keyexpr, on_alive, user, &decl->decl,
                         text_of(info), room_in(info));
    return decl_give(decl, code, ret_decl);
}

static void on_link(void *user, const tdr_link *link)
{
    const zenoh_decl *decl = user;
    td_net_link shown = {
        .peer = link->peer,
        .address = link->address,
        .up = link->up,
        .shared_memory = link->shared_memory,
    };
    decl->on.link(decl->user, &shown);
}

static td_err net_links(td_net *net, td_net_on_link user_on_link, void *user,
                        td_net_decl **ret_decl, td_errinfo *info)
{
    zenoh_decl *decl = decl_new(net, user);
    if (!decl) return TD_ERR_NOMEM;
    decl->on.link = user_on_link;
    int code = tdr_links(session_of(net), on_link, decl, &decl->decl,
                         text_of(info), room_in(info));
    return decl_give(decl, code, ret_decl);
}

static td_err net_undeclare(td_net_decl *decl)
{
    int code = tdr_undeclare(((zenoh_decl *)decl)->decl);
    if (code != TDR_BUSY) free(decl);
    return from_code(code);
}

static td_err net_keep(const td_net_sample *sample, td_net_msg **ret_msg)
{
    zenoh_msg *msg = calloc(1, sizeof *msg);
    if (!msg) return TD_ERR_NOMEM;
    msg->base.ops = &ops;

    int code = tdr_keep(sample->impl, &msg->msg);
    if (code != TDR_OK) {
        free(msg);
        return from_code(code);
    }
    *ret_msg = &msg->base;
    return TD_OK;
}

static td_err net_msg_bytes(td_net_msg *msg, td_slice *ret_bytes)
{
    return from_code(tdr_msg_bytes(((zenoh_msg *)msg)->msg, ret_bytes));
}

static td_err net_msg_pieces(td_net_msg *msg, const td_slice **ret_pieces,
                             size_t *ret_count)
{
    return from_code(
        tdr_msg_pieces(((zenoh_msg *)msg)->msg, ret_pieces, ret_count));
}

static void net_msg_free(td_net_msg *msg)
{
    tdr_msg_free(((zenoh_msg *)msg)->msg);
    free(msg);
}

static const tdr_request *rust_request(const td_net_request *request)
{
    return ((const zenoh_request *)request)->request;
}

static td_slice net_request_payload(const td_net_request *request)
{
    return tdr_request_payload(rust_request(request));
}

static const char *net_request_key(const td_net_request *request)
{
    return tdr_request_key(rust_request(request));
}

static td_err net_reply(td_net_request *request, const char *key,
                        const td_slice *parts, size_t count)
{
    return from_code(tdr_reply(rust_request(request), key, parts, count));
}

static void net_request_free(td_net_request *request)
{
    tdr_request_free(((zenoh_request *)request)->request);
    free(request);
}

static const td_net_ops ops = {
    .name = "zenoh",
    .close = net_close,
    .id = net_id,
    .counts = net_counts,
    .publish = net_publish,
    .unpublish = net_unpublish,
    .put = net_put,
    .lend = net_lend,
    .loan_put = net_loan_put,
    .put_loans = net_put_loans,
    .loan_free = net_loan_free,
    .matched = net_matched,
    .subscribe = net_subscribe,
    .serve = net_serve,
    .query = net_query,
    .token = net_token,
    .watch = net_watch,
    .links = net_links,
    .undeclare = net_undeclare,
    .keep = net_keep,
    .msg_bytes = net_msg_bytes,
    .msg_pieces = net_msg_pieces,
    .msg_free = net_msg_free,
    .request_payload = net_request_payload,
    .request_key = net_request_key,
    .reply = net_reply,
    .request_free = net_request_free,
};
