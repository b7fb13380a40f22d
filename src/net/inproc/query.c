// SPDX-License-Identifier: Apache-2.0
// Queries of the in-process transport: asked, answered, ended once.
//
// A query asks every server whose key matches. Each gets a request, replies as
// often as it likes and frees it, which is its last word. A query ends when
// each server it asked has said that, when those that have not are out of
// reach, when its time is up, or with its session. Whatever comes first takes
// it off the hub's list, so that on_done is called exactly once.
//
// Requests and deliveries know their query by its number alone, never by a
// pointer, so that they may outlive it: who looks for a query that has ended
// finds nothing, and what was on its way is let go.
//
// The hub's lock guards everything and is let go while a callback runs (hub.h).
// The end of a session waits for its running callback and then ends its
// queries; each on_done is called there.
#include "net/inproc/hub.h"
#include "net/inproc/keyexpr.h"

#include <stdlib.h>

typedef struct request {
    td_net_request base;
    td_net_hub *hub;
    uint64_t query;
    uint64_t id;
    uint64_t server;    // the session that was asked
    td_inproc_msg *msg; // the payload, under the key expression asked
} request;

static td_inproc_query *find(const td_net_hub *hub, uint64_t id)
{
    td_inproc_query *query = hub->queries;
    while (query && query->id != id)
        query = query->next;
    return query;
}

static void append(td_net_hub *hub, td_inproc_query *query)
{
    td_inproc_query **at = &hub->queries;
    while (*at)
        at = &(*at)->next;
    *at = query;
}

static void take_out(td_net_hub *hub, td_inproc_query *query)
{
    td_inproc_query **at = &hub->queries;
    while (*at != query)
        at = &(*at)->next;
    *at = query->next;
}

static void query_free(td_inproc_query *query)
{
    free(query->asked);
    free(query);
}

static void remove_asked(td_inproc_query *query, size_t index)
{
    query->asked[index] = query->asked[--query->asked_count];
}

void td_inproc_query_forget(td_net_hub *hub, uint64_t id, uint64_t request_id)
{
    td_inproc_query *query = find(hub, id);
    for (size_t i = 0; query && i < query->asked_count; i++)
        if (query->asked[i].request == request_id) {
            remove_asked(query, i);
            return;
        }
}

void td_inproc_query_lose_server(td_net_hub *hub, uint64_t asker,
                                 uint64_t server)
{
    for (td_inproc_query *query = hub->queries; query; query = query->next) {
        if (asker && query->session->id != asker) continue;
        for (size_t i = query->asked_count; i > 0; i--)
            if (query->asked[i - 1].server == server)
                remove_asked(query, i - 1);
    }
    td_inproc_query_end_unasked(hub);
}

static td_err push_end(const td_inproc_query *query, int64_t due_ns)
{
    td_inproc_delivery end = {.due_ns = due_ns,
                              .what = TD_INPROC_END,
                              .from = query->session->id,
                              .to = query->session->id,
                              .query = query->id};
    return td_inproc_hub_push(query->session->hub, &end);
}

// Without memory for the END, the one of the time limit is still on its way.
void td_inproc_query_end_unasked(td_net_hub *hub)
{
    int64_t now_ns = td_inproc_hub_now_ns(hub);
    for (td_inproc_query *query = hub->queries; query; query = query->next)
        if (query->asked_count == 0 && !query->ending)
            query->ending = push_end(query, now_ns) == TD_OK;
}

static td_err add_asked(td_inproc_query *query, uint64_t request_id,
                        uint64_t server)
{
    td_inproc_asked *asked =
        reallocarray(query->asked, query->asked_count + 1, sizeof *asked);
    if (!asked) return TD_ERR_NOMEM;
    query->asked = asked;
    query->asked[query->asked_count++] =
        (td_inproc_asked){.request = request_id, .server = server};
    return TD_OK;
}

static td_err ask(td_inproc_query *query, td_inproc_decl *server,
                  td_inproc_msg *msg)
{
    td_inproc_direction *direction = NULL;
    TD_TRY(td_inproc_link_get(query->session, server->session, &direction));
    if (direction->cut) return TD_OK;

    uint64_t id = td_inproc_hub_new_id(query->session->hub);
    TD_TRY(add_asked(query, id, server->session->id));
    td_inproc_delivery delivery = {.what = TD_INPROC_REQUEST,
                                   .decl = server,
                                   .query = query->id,
                                   .request = id,
                                   .msg = td_inproc_msg_ref(msg)};
    return td_inproc_link_send(query->session, server->session, delivery);
}

static td_err ask_all(td_inproc_query *query, td_inproc_msg *msg)
{
    for (td_inproc_decl *decl = query->session->hub->decls; decl;
         decl = decl->next)
        if (decl->kind == TD_INPROC_SERVER &&
            td_inproc_keyexpr_intersects(decl->keyexpr, msg->key))
            TD_TRY(ask(query, decl, msg));
    return TD_OK;
}

// Once appended a query ends by on_done; a failure before that ends it unheard,
// and requests already on their way find nobody to answer.
static td_err start(td_inproc_query *query, td_inproc_msg *msg,
                    int64_t timeout_ns)
{
    td_net_hub *hub = query->session->hub;
    int64_t now_ns = td_inproc_hub_now_ns(hub);
    int64_t limit_ns = INT64_MAX;
    if (timeout_ns < INT64_MAX - now_ns) limit_ns = now_ns + timeout_ns;

    query->id = td_inproc_hub_new_id(hub);
    TD_TRY(ask_all(query, msg));
    TD_TRY(push_end(query, limit_ns));
    append(hub, query);
    td_inproc_query_end_unasked(hub);
    return TD_OK;
}

td_err td_inproc_query_start(td_net *net, const char *keyexpr, td_slice payload,
                             int64_t timeout_ns, td_net_on_sample on_reply,
                             td_net_on_done on_done, void *user,
                             td_errinfo *info)
{
    td_inproc_session *session = (td_inproc_session *)net;
    TD_TRY(td_inproc_keyexpr_check(keyexpr, info));
    if (timeout_ns < 0)
        return td_fail(info, TD_ERR_INVALID, "query '%s': timeout below 0",
                       keyexpr);

    TD_AUTO(td_inproc_msg) *msg = NULL;
    TD_TRY(td_inproc_msg_new(net->ops, keyexpr, &payload, 1, &msg));
    td_inproc_query *query = calloc(1, sizeof *query);
    if (!query) return TD_ERR_NOMEM;
    *query = (td_inproc_query){.session = session,
                               .on_reply = on_reply,
                               .on_done = on_done,
                               .user = user};

    td_inproc_hub_lock(session->hub);
    td_err err = start(query, msg, timeout_ns);
    td_inproc_hub_unlock(session->hub);
    if (err != TD_OK) query_free(query);
    return err;
}

static void deliver_request(td_net_hub *hub, const td_inproc_delivery *delivery)
{
    td_inproc_decl *decl = delivery->decl;
    request *asked = calloc(1, sizeof *asked);
    if (!asked) {
        td_inproc_query_forget(hub, delivery->query, delivery->request);
        td_inproc_query_end_unasked(hub);
        return;
    }
    *asked = (request){.base.ops = decl->base.ops,
                       .hub = hub,
                       .query = delivery->query,
                       .id = delivery->request,
                       .server = delivery->to,
                       .msg = td_inproc_msg_ref(delivery->msg)};
    td_inproc_hub_call_begin(hub, decl, decl->session);
    decl->callback.on_request(decl->user, &asked->base);
    td_inproc_hub_call_end(hub);
}

static void deliver_reply(td_net_hub *hub, const td_inproc_delivery *delivery)
{
    td_inproc_query *query = find(hub, delivery->query);
    if (!query) return;
    td_net_sample sample;
    td_inproc_sample(query->session, delivery->msg, &sample);
    td_inproc_hub_call_begin(hub, NULL, query->session);
    query->on_reply(query->user, &sample);
    td_inproc_hub_call_end(hub);
}

// Servers may still get the request: they know nothing of the asker's patience.
static bool is_for_asker(const td_inproc_delivery *delivery, const void *user)
{
    const td_inproc_query *query = user;
    return delivery->query == query->id && delivery->what != TD_INPROC_REQUEST;
}

static void finish(td_net_hub *hub, td_inproc_query *query)
{
    take_out(hub, query);
    td_inproc_hub_discard(hub, is_for_asker, query);
    td_inproc_hub_call_begin(hub, NULL, query->session);
    query->on_done(query->user);
    td_inproc_hub_call_end(hub);
    query_free(query);
}

static void deliver_end(td_net_hub *hub, const td_inproc_delivery *delivery)
{
    if (delivery->what == TD_INPROC_FINAL)
        td_inproc_query_forget(hub, delivery->query, delivery->request);
    td_inproc_query *query = find(hub, delivery->query);
    if (!query) return;
    if (delivery->what == TD_INPROC_END || query->asked_count == 0)
        finish(hub, query);
}

void td_inproc_query_deliver(td_net_hub *hub,
                             const td_inproc_delivery *delivery)
{
    if (delivery->what == TD_INPROC_REQUEST)
        deliver_request(hub, delivery);
    else if (delivery->what == TD_INPROC_REPLY)
        deliver_reply(hub, delivery);
    else
        deliver_end(hub, delivery);
}

static td_inproc_query *of_session(const td_inproc_session *session)
{
    td_inproc_query *query = session->hub->queries;
    while (query && query->session != session)
        query = query->next;
    return query;
}

void td_inproc_query_close(td_inproc_session *session)
{
    td_net_hub *hub = session->hub;
    while (hub->calling_session == session->id)
        pthread_cond_wait(&hub->idle, &hub->lock);

    td_inproc_query *query;
    while ((query = of_session(session))) {
        take_out(hub, query);
        td_inproc_hub_discard(hub, is_for_asker, query);
        td_inproc_hub_unlock(hub);
        query->on_done(query->user);
        query_free(query);
        td_inproc_hub_lock(hub);
    }
}

td_slice td_inproc_request_payload(const td_net_request *base)
{
    const request *asked = (const request *)base;
    return (td_slice){asked->msg->bytes, asked->msg->size};
}

const char *td_inproc_request_key(const td_net_request *base)
{
    return ((const request *)base)->msg->key;
}

// Sends to the asker, if both it and the server are still there. Consumes the
// message.
static td_err answer(const request *asked, td_inproc_what what,
                     td_inproc_msg *msg)
{
    td_inproc_session *server =
        td_inproc_link_session_by_id(asked->hub, asked->server);
    td_inproc_query *query = find(asked->hub, asked->query);
    if (!server || !query) {
        td_inproc_msg_unref(msg);
        return TD_OK;
    }
    td_inproc_delivery delivery = {
        .what = what, .query = asked->query, .request = asked->id, .msg = msg};
    return td_inproc_link_send(server, query->session, delivery);
}

td_err td_inproc_request_reply(td_net_request *base, const char *key,
                               const td_slice *parts, size_t count)
{
    request *asked = (request *)base;
    TD_TRY(td_inproc_keyexpr_check_key(key, NULL));
    if (!td_inproc_keyexpr_intersects(asked->msg->key, key))
        return TD_ERR_INVALID;

    td_inproc_msg *msg = NULL;
    TD_TRY(td_inproc_msg_new(base->ops, key, parts, count, &msg));
    td_inproc_hub_lock(asked->hub);
    td_err err = answer(asked, TD_INPROC_REPLY, msg);
    td_inproc_hub_unlock(asked->hub);
    return err;
}

static void sent_last_word(const request *asked)
{
    td_inproc_query *query = find(asked->hub, asked->query);
    for (size_t i = 0; query && i < query->asked_count; i++)
        if (query->asked[i].request == asked->id) query->asked[i].server = 0;
}

void td_inproc_request_free(td_net_request *base)
{
    request *asked = (request *)base;
    td_inproc_hub_lock(asked->hub);
    if (answer(asked, TD_INPROC_FINAL, NULL) == TD_OK) sent_last_word(asked);
    td_inproc_hub_unlock(asked->hub);
    td_inproc_msg_unref(asked->msg);
    free(asked);
}
