// SPDX-License-Identifier: Apache-2.0
// A query carries one word, a td_edge_episode_command; its reply is "ok" or
// what went wrong, and comes when it is so on the disk.
//
// The transport's callback only hands the word to the recorder, whose thread
// carries it out and replies. Where the recorder has no room the asker hears
// nothing, and it is counted.
//
// No lock. Leave: the declaration goes, and with it the last callback. The
// recorder then carries out what it was given and replies; after that nobody
// knows this any more, and it is freed.
#include "edge/record/remote.h"

#include "base/log.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct td_edge_remote {
    td_edge_recorder *recorder;
    td_net_decl *decl;
    char key[TD_WIRE_MAX_KEY];
    _Atomic uint64_t full;
};

// Somebody who waits for a reply.
typedef struct asker {
    td_edge_remote *remote;
    td_net_request *request;
} asker;

// Recorder's thread.
static void reply(void *user, td_err err, const td_errinfo *why)
{
    asker *from = user;
    const char *text = why->text[0] ? why->text : td_err_text(err);
    if (err == TD_OK) text = TD_EDGE_EPISODE_OK;
    const td_slice answer = {text, strlen(text)};
    if (td_net_reply(from->request, from->remote->key, &answer, 1) != TD_OK)
        td_log_text(TD_LOG_WARN, "recording: whoever gave a command is gone");
    td_net_request_free(from->request);
    free(from);
}

static void drop(td_edge_remote *remote, td_net_request *request)
{
    uint64_t count = atomic_fetch_add(&remote->full, 1) + 1;
    if (td_log_is_due(count))
        td_log_text(TD_LOG_WARN,
                    "recording: no room for a command (%llu so far)",
                    (unsigned long long)count);
    td_net_request_free(request);
}

// Transport's thread.
static void on_query(void *user, td_net_request *request)
{
    td_edge_remote *remote = user;
    td_slice word = td_net_request_payload(request);
    td_edge_episode_command command =
        td_edge_episode_command_find(word.data, word.size);
    asker *from = malloc(sizeof *from);
    if (!from) {
        drop(remote, request);
        return;
    }
    *from = (asker){remote, request};
    if (td_edge_recorder_submit(remote->recorder, command, reply, from) ==
        TD_OK)
        return;
    drop(remote, request);
    free(from);
}

td_err td_edge_remote_open(td_net *net, const td_wire_route *route,
                           const char *client, td_edge_recorder *recorder,
                           td_edge_remote **ret_remote, td_errinfo *info)
{
    td_edge_remote *made = calloc(1, sizeof *made);
    if (!made) return TD_ERR_NOMEM;
    TD_AUTO(td_edge_remote) *remote = made;
    remote->recorder = recorder;
    TD_TRY(td_wire_key(route, client, "episode", remote->key, info));
    TD_TRY(
        td_net_serve(net, remote->key, on_query, remote, &remote->decl, info));
    *ret_remote = TD_TAKE(remote);
    return TD_OK;
}

void td_edge_remote_leave(td_edge_remote *remote)
{
    if (remote->decl) (void)td_net_undeclare(TD_TAKE(remote->decl));
}

void td_edge_remote_close(td_edge_remote *remote)
{
    td_edge_remote_leave(remote);
    free(remote);
}

uint64_t td_edge_remote_full(const td_edge_remote *remote)
{
    return atomic_load(&remote->full);
}
