// SPDX-License-Identifier: Apache-2.0
// Liveliness, in both directions. A token of this client, with its boot, tells
// servers that it is there; a watch over the tokens of the model's servers
// tells it who is.
//
// The watch calls back on a thread of the transport, which must not wait: it
// sets a flag and signals the event of whoever looks. `appeared` is set when
// any server's token comes, and taken by the next look. `lost` is set when the
// token goes of the server that is followed, by its name and, where that is
// known, its boot: an older start that ends late is not the present one.
//
// Lock: it guards which server is followed, and is held while a flag is set for
// it, so that a token that goes counts for the server that was followed then.
// Nothing else is called under it.
//
// End: the declarations go first, and with the last callback the rest.
#include "edge/session/presence.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct td_edge_presence {
    td_event *wake;
    td_net_decl *token, *servers;
    _Atomic bool lost, appeared;
    pthread_mutex_t lock; // guards `server`
    td_edge_server server;
};

// Whether ".../status/alive/SERVER/BOOT" is that start's. Boot 0: any.
static bool is_token_of(const char *key, const td_edge_server *server)
{
    static const char before[] = "/status/alive/";
    const char *found = strstr(key, before);
    size_t size = strlen(server->id);
    if (!found || size == 0) return false;
    const char *id = found + strlen(before);
    if (strncmp(id, server->id, size) != 0 || id[size] != '/') return false;
    return server->boot == 0 ||
           strtoull(id + size + 1, NULL, 10) == server->boot;
}

// Transport's thread. Under the lock, so that a token that goes counts for the
// server that was followed then.
static void on_server(void *user, const char *key, bool alive)
{
    td_edge_presence *presence = user;
    pthread_mutex_lock(&presence->lock);
    bool ours = is_token_of(key, &presence->server);
    if (alive) atomic_store(&presence->appeared, true);
    if (!alive && ours) atomic_store(&presence->lost, true);
    pthread_mutex_unlock(&presence->lock);
    if (alive || ours) td_event_signal(presence->wake);
}

static td_err declare(td_edge_presence *presence,
                      const td_edge_finder_config *config, td_errinfo *info)
{
    char key[TD_WIRE_MAX_KEY];
    char token[TD_WIRE_MAX_KEY + TD_WIRE_MAX_NAME];
    TD_TRY(td_wire_key(&config->route, config->client, "alive", key, info));
    (void)snprintf(token, sizeof token, "%s/%llu", key,
                   (unsigned long long)config->boot);
    TD_TRY(td_net_token(config->net, token, &presence->token, info));
    TD_TRY(td_wire_key(&config->route, NULL, "status", key, info));
    (void)snprintf(token, sizeof token, "%s/alive/*/*", key);
    return td_net_watch(config->net, token, on_server, presence,
                        &presence->servers, info);
}

td_err td_edge_presence_open(const td_edge_finder_config *config,
                             td_event *wake, td_edge_presence **ret_presence,
                             td_errinfo *info)
{
    td_edge_presence *presence = calloc(1, sizeof *presence);
    if (!presence) return TD_ERR_NOMEM;
    presence->wake = wake;
    pthread_mutex_init(&presence->lock, NULL);
    td_err err = declare(presence, config, info);
    if (err != TD_OK) {
        td_edge_presence_close(presence);
        return err;
    }
    *ret_presence = presence;
    return TD_OK;
}

void td_edge_presence_close(td_edge_presence *presence)
{
    if (presence->token) (void)td_net_undeclare(presence->token);
    if (presence->servers) (void)td_net_undeclare(presence->servers);
    pthread_mutex_destroy(&presence->lock);
    free(presence);
}

void td_edge_presence_follow(td_edge_presence *presence,
                             const td_edge_server *server)
{
    pthread_mutex_lock(&presence->lock);
    presence->server = *server;
    atomic_store(&presence->lost, false);
    pthread_mutex_unlock(&presence->lock);
}

bool td_edge_presence_is_lost(const td_edge_presence *presence)
{
    return atomic_load(&presence->lost);
}

bool td_edge_presence_has_appeared(td_edge_presence *presence)
{
    return atomic_exchange(&presence->appeared, false);
}
