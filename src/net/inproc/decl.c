// SPDX-License-Identifier: Apache-2.0
// Declarations of the in-process transport: subscribers, servers, tokens,
// watches, links.
//
// All five are one struct that differs by its kind and callback, in one list of
// the hub, in order of declaration. A new one is introduced to what is there
// already: a watch hears of the tokens that are alive, a new token is reported
// to the watches, a `links` declaration hears of the sessions.
//
// Undeclaring takes it out of the list, lets go what is on its way to it, and
// waits until its callback has returned; inside that callback it answers BUSY.
// After it nothing is called.
//
// The hub's lock guards the list and is let go while a callback runs (hub.h).
#include "net/inproc/hub.h"
#include "net/inproc/keyexpr.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static td_err notify_token(const td_inproc_decl *token, td_inproc_decl *watcher,
                           bool alive)
{
    if (!td_inproc_keyexpr_intersects(watcher->keyexpr, token->keyexpr))
        return TD_OK;
    td_inproc_msg *msg = NULL;
    TD_TRY(td_inproc_msg_new(token->base.ops, token->keyexpr, NULL, 0, &msg));
    td_inproc_delivery delivery = {
        .what = TD_INPROC_ALIVE, .up = alive, .decl = watcher, .msg = msg};
    return td_inproc_link_send(token->session, watcher->session, delivery);
}

static td_err notify_watchers(const td_inproc_decl *token,
                              const td_inproc_session *to, bool alive)
{
    for (td_inproc_decl *decl = token->session->hub->decls; decl;
         decl = decl->next)
        if (decl->kind == TD_INPROC_WATCH && (!to || decl->session == to))
            TD_TRY(notify_token(token, decl, alive));
    return TD_OK;
}

td_err td_inproc_decl_notify_tokens(const td_inproc_session *from,
                                    const td_inproc_session *to, bool alive)
{
    for (td_inproc_decl *decl = from->hub->decls; decl; decl = decl->next)
        if (decl->kind == TD_INPROC_TOKEN && decl->session == from)
            TD_TRY(notify_watchers(decl, to, alive));
    return TD_OK;
}

static td_err notify_tokens_there(td_inproc_decl *watcher)
{
    for (td_inproc_decl *decl = watcher->session->hub->decls; decl;
         decl = decl->next)
        if (decl->kind == TD_INPROC_TOKEN)
            TD_TRY(notify_token(decl, watcher, true));
    return TD_OK;
}

static td_err notify_link(td_inproc_decl *decl, const td_inproc_session *peer,
                          bool up)
{
    td_net_hub *hub = decl->session->hub;
    td_inproc_delivery delivery = {.due_ns = td_inproc_hub_now_ns(hub),
                                   .what = TD_INPROC_LINK,
                                   .up = up,
                                   .from = decl->session->id,
                                   .to = decl->session->id,
                                   .decl = decl};
    TD_TRY(
        td_inproc_msg_new(decl->base.ops, peer->name, NULL, 0, &delivery.msg));
    return td_inproc_hub_push(hub, &delivery);
}

td_err td_inproc_decl_notify_link(const td_inproc_session *session,
                                  const td_inproc_session *peer, bool up)
{
    for (td_inproc_decl *decl = session->hub->decls; decl; decl = decl->next)
        if (decl->kind == TD_INPROC_LINKS && decl->session == session)
            TD_TRY(notify_link(decl, peer, up));
    return TD_OK;
}

static td_err notify_links_there(td_inproc_decl *decl)
{
    const td_net_hub *hub = decl->session->hub;
    for (size_t i = 0; i < hub->session_count; i++) {
        const td_inproc_session *peer = hub->sessions[i];
        if (!peer || peer == decl->session) continue;
        td_inproc_direction *direction = NULL;
        TD_TRY(td_inproc_link_get(decl->session, peer, &direction));
        if (!direction->cut) TD_TRY(notify_link(decl, peer, true));
    }
    return TD_OK;
}

static td_err introduce(td_inproc_decl *decl)
{
    switch (decl->kind) {
    case TD_INPROC_TOKEN:
        return notify_watchers(decl, NULL, true);
    case TD_INPROC_WATCH:
        return notify_tokens_there(decl);
    case TD_INPROC_LINKS:
        return notify_links_there(decl);
    case TD_INPROC_SUBSCRIBER:
    case TD_INPROC_SERVER:
        break;
    }
    return TD_OK;
}

static void append(td_net_hub *hub, td_inproc_decl *decl)
{
    td_inproc_decl **at = &hub->decls;
    while (*at)
        at = &(*at)->next;
    *at = decl;
    hub->version++;
    decl->session->declared++;
}

static bool is_for(const td_inproc_delivery *delivery, const void *user)
{
    return delivery->decl == user;
}

// After it nothing new is sent to the declaration.
static void take_out(td_net_hub *hub, td_inproc_decl *decl)
{
    td_inproc_decl **at = &hub->decls;
    while (*at != decl)
        at = &(*at)->next;
    *at = decl->next;
    hub->version++;
    decl->session->declared--;
    td_inproc_hub_discard(hub, is_for, decl);
}

static td_err declare(td_net *net, td_inproc_kind kind, const char *keyexpr,
                      td_inproc_callback callback, void *user,
                      td_net_decl **ret_decl)
{
    td_inproc_session *session = (td_inproc_session *)net;
    size_t key_bytes = strlen(keyexpr) + 1;
    td_inproc_decl *decl = calloc(1, sizeof *decl + key_bytes);
    if (!decl) return TD_ERR_NOMEM;
    decl->base.ops = net->ops;
    decl->session = session;
    decl->kind = kind;
    decl->callback = callback;
    decl->user = user;
    memcpy(decl->keyexpr, keyexpr, key_bytes);

    td_inproc_hub_lock(session->hub);
    append(session->hub, decl);
    td_err err = introduce(decl);
    if (err != TD_OK) take_out(session->hub, decl);
    td_inproc_hub_unlock(session->hub);

    if (err == TD_OK)
        *ret_decl = &decl->base;
    else
        free(decl);
    return err;
}

td_err td_inproc_decl_subscribe(td_net *net, const char *keyexpr,
                                td_net_on_sample on_sample, void *user,
                                td_net_decl **ret_decl, td_errinfo *info)
{
    TD_TRY(td_inproc_keyexpr_check(keyexpr, info));
    td_inproc_callback callback = {.on_sample = on_sample};
    return declare(net, TD_INPROC_SUBSCRIBER, keyexpr, callback, user,
                   ret_decl);
}

td_err td_inproc_decl_serve(td_net *net, const char *keyexpr,
                            td_net_on_request on_request, void *user,
                            td_net_decl **ret_decl, td_errinfo *info)
{
    TD_TRY(td_inproc_keyexpr_check(keyexpr, info));
    td_inproc_callback callback = {.on_request = on_request};
    return declare(net, TD_INPROC_SERVER, keyexpr, callback, user, ret_decl);
}

td_err td_inproc_decl_token(td_net *net, const char *key,
                            td_net_decl **ret_decl, td_errinfo *info)
{
    TD_TRY(td_inproc_keyexpr_check_key(key, info));
    return declare(net, TD_INPROC_TOKEN, key, (td_inproc_callback){0}, NULL,
                   ret_decl);
}

td_err td_inproc_decl_watch(td_net *net, const char *keyexpr,
                            td_net_on_alive on_alive, void *user,
                            td_net_decl **ret_decl, td_errinfo *info)
{
    TD_TRY(td_inproc_keyexpr_check(keyexpr, info));
    td_inproc_callback callback = {.on_alive = on_alive};
    return declare(net, TD_INPROC_WATCH, keyexpr, callback, user, ret_decl);
}

td_err td_inproc_decl_links(td_net *net, td_net_on_link on_link, void *user,
                            td_net_decl **ret_decl, td_errinfo *info)
{
    (void)info; // nothing to get wrong
    td_inproc_callback callback = {.on_link = on_link};
    return declare(net, TD_INPROC_LINKS, "", callback, user, ret_decl);
}

static void withdraw(td_net_hub *hub, td_inproc_decl *decl)
{
    take_out(hub, decl);
    if (decl->kind == TD_INPROC_TOKEN) (void)notify_watchers(decl, NULL, false);
    while (hub->calling_decl == decl)
        pthread_cond_wait(&hub->idle, &hub->lock);
}

td_err td_inproc_decl_undeclare(td_net_decl *base)
{
    td_inproc_decl *decl = (td_inproc_decl *)base;
    td_net_hub *hub = decl->session->hub;
    td_inproc_hub_lock(hub);
    bool busy = td_inproc_hub_in_callback(hub);
    if (!busy) withdraw(hub, decl);
    td_inproc_hub_unlock(hub);
    if (busy) return TD_ERR_BUSY;
    free(decl);
    return TD_OK;
}

static void call_on_link(const td_inproc_decl *decl,
                         const td_inproc_delivery *delivery)
{
    char address[256];
    snprintf(address, sizeof address, "inproc/%s -> %s", decl->session->name,
             delivery->msg->key);
    td_net_link link = {.peer = delivery->msg->key,
                        .address = address,
                        .up = delivery->up,
                        .shared_memory = true};
    decl->callback.on_link(decl->user, &link);
}

void td_inproc_decl_deliver(td_net_hub *hub, const td_inproc_delivery *delivery)
{
    const td_inproc_decl *decl = delivery->decl;
    td_net_sample sample;
    td_inproc_hub_call_begin(hub, decl, decl->session);
    switch (delivery->what) {
    case TD_INPROC_SAMPLE:
        td_inproc_sample(decl->session, delivery->msg, &sample);
        decl->callback.on_sample(decl->user, &sample);
        break;
    case TD_INPROC_ALIVE:
        decl->callback.on_alive(decl->user, delivery->msg->key, delivery->up);
        break;
    default:
        call_on_link(decl, delivery);
        break;
    }
    td_inproc_hub_call_end(hub);
}
