// SPDX-License-Identifier: Apache-2.0
//
// Shutdown of a session: stop (each declaration is undeclared, which takes what
// is on the way to it off and waits for its running callback), drain (close
// ends the session's queries), free.
#include "net/inproc/hub.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static const char *id(const td_net *net)
{
    return ((const td_inproc_session *)net)->name;
}

static td_net_counts counts(const td_net *net)
{
    const td_inproc_session *session = (const td_inproc_session *)net;
    td_inproc_hub_lock(session->hub);
    td_net_counts so_far = {.drops = session->lost};
    td_inproc_hub_unlock(session->hub);
    return so_far;
}

static td_err free_slot(td_net_hub *hub, size_t *ret_slot)
{
    for (size_t i = 0; i < hub->session_count; i++)
        if (!hub->sessions[i]) {
            *ret_slot = i;
            return TD_OK;
        }
    td_inproc_session **sessions = reallocarray(
        hub->sessions, hub->session_count + 1, sizeof(td_inproc_session *));
    if (!sessions) return TD_ERR_NOMEM;
    sessions[hub->session_count] = NULL;
    hub->sessions = sessions;
    *ret_slot = hub->session_count++;
    return TD_OK;
}

static td_err tell_others(const td_inproc_session *session, bool up)
{
    const td_net_hub *hub = session->hub;
    for (size_t i = 0; i < hub->session_count; i++) {
        td_inproc_session *other = hub->sessions[i];
        if (!other || other == session) continue;
        td_inproc_direction *direction = NULL;
        TD_TRY(td_inproc_link_get(other, session, &direction));
        if (!direction->cut)
            TD_TRY(td_inproc_decl_notify_link(other, session, up));
    }
    return TD_OK;
}

static void remove_session(const td_inproc_session *session)
{
    td_inproc_link_forget(session->hub, session);
    session->hub->sessions[session->slot] = NULL;
}

static td_err join(td_net_hub *hub, td_inproc_session *session,
                   td_errinfo *info)
{
    if (td_inproc_link_session(hub, session->name))
        return td_fail(info, TD_ERR_EXISTS, "a session '%s' is already open",
                       session->name);
    TD_TRY(free_slot(hub, &session->slot));
    session->id = td_inproc_hub_new_id(hub);
    hub->sessions[session->slot] = session;
    td_err err = tell_others(session, true);
    if (err != TD_OK) remove_session(session);
    return err;
}

td_err td_net_inproc_open(td_net_hub *hub, const char *name, td_net **ret_net,
                          td_errinfo *info)
{
    if (!*name) return td_fail(info, TD_ERR_INVALID, "a session needs a name");
    size_t name_bytes = strlen(name) + 1;
    td_inproc_session *session = calloc(1, sizeof *session + name_bytes);
    if (!session) return TD_ERR_NOMEM;
    session->base.ops = &td_inproc_ops;
    session->hub = hub;
    memcpy(session->name, name, name_bytes);

    td_inproc_hub_lock(hub);
    td_err err = join(hub, session, info);
    td_inproc_hub_unlock(hub);
    if (err == TD_OK)
        *ret_net = &session->base;
    else
        free(session);
    return err;
}

static void leave(td_net_hub *hub, td_inproc_session *session)
{
    assert(!td_inproc_hub_in_callback(hub));
    assert(session->declared == 0);
    td_inproc_query_close(session);
    (void)tell_others(session, false);
    td_inproc_query_lose_server(hub, 0, session->id);
    remove_session(session);
}

static void close_session(td_net *net)
{
    td_inproc_session *session = (td_inproc_session *)net;
    td_inproc_hub_lock(session->hub);
    leave(session->hub, session);
    td_inproc_hub_unlock(session->hub);
    for (size_t i = 0; i < session->out_count; i++)
        free(session->out[i]);
    free(session->out);
    free(session);
}

void td_inproc_sample(const td_inproc_session *session, td_inproc_msg *msg,
                      td_net_sample *ret_sample)
{
    bool whole = msg->size <= TD_INPROC_PIECE_BYTES;
    *ret_sample = (td_net_sample){
        .net = &session->base,
        .key = msg->key,
        .head = {msg->bytes, whole ? msg->size : TD_INPROC_PIECE_BYTES},
        .size = msg->size,
        .whole = whole,
        .impl = msg,
    };
}

static td_err keep(const td_net_sample *sample, td_net_msg **ret_msg)
{
    *ret_msg = &td_inproc_msg_ref(sample->impl)->base;
    return TD_OK;
}

static td_err msg_bytes(td_net_msg *base, td_slice *ret_bytes)
{
    const td_inproc_msg *msg = (const td_inproc_msg *)base;
    *ret_bytes = (td_slice){msg->bytes, msg->size};
    return TD_OK;
}

static td_err msg_pieces(td_net_msg *base, const td_slice **ret_pieces,
                         size_t *ret_count)
{
    return td_inproc_msg_pieces((td_inproc_msg *)base, ret_pieces, ret_count);
}

static void msg_free(td_net_msg *base)
{
    td_inproc_msg_unref((td_inproc_msg *)base);
}

const td_net_ops td_inproc_ops = {
    .name = "inproc",
    .close = close_session,
    .id = id,
    .counts = counts,
    .publish = td_inproc_pub_new,
    .unpublish = td_inproc_pub_free,
    .put = td_inproc_pub_put,
    .lend = td_inproc_pub_lend,
    .loan_put = td_inproc_pub_loan_put,
    .put_loans = td_inproc_pub_put_loans,
    .loan_free = td_inproc_pub_loan_free,
    .matched = td_inproc_pub_matched,
    .subscribe = td_inproc_decl_subscribe,
    .serve = td_inproc_decl_serve,
    .query = td_inproc_query_start,
    .token = td_inproc_decl_token,
    .watch = td_inproc_decl_watch,
    .links = td_inproc_decl_links,
    .undeclare = td_inproc_decl_undeclare,
    .keep = keep,
    .msg_bytes = msg_bytes,
    .msg_pieces = msg_pieces,
    .msg_free = msg_free,
    .request_payload = td_inproc_request_payload,
    .request_key = td_inproc_request_key,
    .reply = td_inproc_request_reply,
    .request_free = td_inproc_request_free,
};
