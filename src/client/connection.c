// SPDX-License-Identifier: Apache-2.0
// A client's network session, shared by the models that it asks.
//
// Opening reads the settings, each from the struct, else from its environment
// variable, and opens a session of Zenoh, or borrows one of the caller's in
// tests. Each model of the connection holds a reference: the session is closed
// when the program has closed the connection and every model, in any order.
//
// `lock` guards the list of models, so that one route is not opened twice; it
// is never held while something blocks. References are counted atomically.
//
// A boot number is taken for each model that is opened: it grows within this
// process always, and from one process to the next as the wall clock does.
#include "client/connection.h"

#include "base/log.h"
#include "client/model.h"
#include "edge/api/api.h"
#include "edge/api/robot.h"
#include "net/zenoh/zenoh.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MAX_ENDPOINT 1024
#define FIRST_SETTINGS_BYTES                                                   \
    TD_EDGE_API_UP_TO(td_connection_settings, no_shared_memory)

uint64_t td_client_connection_boot(void)
{
    static _Atomic uint64_t last;
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    uint64_t wall_ms =
        (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
    uint64_t before = atomic_load(&last);
    uint64_t boot;
    do
        boot = wall_ms > before ? wall_ms : before + 1;
    while (!atomic_compare_exchange_weak(&last, &before, boot));
    return boot;
}

// "tcp://host:7447" is what people write, "tcp/host:7447" what Zenoh reads.
static td_err read_endpoint(const char *wanted,
                            char ret_endpoint[MAX_ENDPOINT + 1],
                            td_errinfo *info)
{
    const char *text = td_edge_api_text(wanted, "TENDON_SERVER");
    if (!text || !*text)
        return td_edge_api_missing("server", "TENDON_SERVER", info);
    if (strlen(text) > MAX_ENDPOINT)
        return td_fail(info, TD_ERR_INVALID, "server: is over %d bytes long",
                       MAX_ENDPOINT);
    const char *colon = strstr(text, "://");
    if (!colon)
        memcpy(ret_endpoint, text, strlen(text) + 1);
    else
        (void)sprintf(ret_endpoint, "%.*s/%s", (int)(colon - text), text,
                      colon + 3);
    return TD_OK;
}

static td_err open_net(td_connection *connection,
                       const td_connection_settings *settings, td_errinfo *info)
{
    char endpoint[MAX_ENDPOINT + 1];
    const char *endpoints[] = {endpoint};
    TD_TRY(read_endpoint(settings->server, endpoint, info));
    const td_net_zenoh_config config = {
        .mode = settings->peer ? TD_NET_ZENOH_PEER : TD_NET_ZENOH_CLIENT,
        .connect = endpoints,
        .connect_count = 1,
        .shared_memory = !settings->no_shared_memory,
    };
    TD_TRY(td_net_zenoh_open(&config, &connection->net, info));
    connection->net_is_ours = true;
    return TD_OK;
}

static td_err take_settings(td_connection *connection,
                            const td_connection_settings *settings,
                            td_errinfo *info)
{
    connection->every = settings->every;
    TD_TRY(td_edge_api_chunk("cluster", settings->cluster, "TENDON_CLUSTER",
                             connection->cluster, info));
    TD_TRY(td_edge_api_chunk("experiment", settings->experiment,
                             "TENDON_EXPERIMENT", connection->experiment,
                             info));
    TD_TRY(td_edge_api_chunk("client_id", settings->client_id,
                             "TENDON_CLIENT_ID", connection->client, info));
    const char *type =
        td_edge_api_text(settings->client_type, "TENDON_CLIENT_TYPE");
    if (!type || !*type) return TD_OK;
    connection->client_type = strdup(type);
    return connection->client_type ? TD_OK : TD_ERR_NOMEM;
}

static td_err open_parts(td_connection *connection, td_net *net,
                         const td_connection_settings *wanted, td_errinfo *info)
{
    td_connection_settings settings;
    TD_TRY(td_edge_api_struct("settings", wanted, FIRST_SETTINGS_BYTES,
                              sizeof settings, &settings, info));
    TD_TRY(take_settings(connection, &settings, info));
    connection->net = net;
    return net ? TD_OK : open_net(connection, &settings, info);
}

td_err td_client_connection_open_on(td_net *net,
                                    const td_connection_settings *settings,
                                    td_connection **ret_connection,
                                    td_errinfo *info)
{
    td_connection *connection = calloc(1, sizeof *connection);
    if (!connection) return TD_ERR_NOMEM;
    atomic_init(&connection->refs, 1);
    pthread_mutex_init(&connection->lock, NULL);
    td_log_hold();
    td_err err = open_parts(connection, net, settings, info);
    if (err != TD_OK) {
        td_connection_close(connection);
        return err;
    }
    *ret_connection = connection;
    return TD_OK;
}

td_err td_connection_open(const td_connection_settings *settings,
                          td_connection **ret_connection, td_errinfo *info)
{
    return td_client_connection_open_on(NULL, settings, ret_connection, info);
}

void td_connection_close(td_connection *connection)
{
    if (atomic_fetch_sub(&connection->refs, 1) != 1) return;
    if (connection->net_is_ours) td_net_close(connection->net);
    td_log_release();
    pthread_mutex_destroy(&connection->lock);
    free(connection->client_type);
    free(connection);
}

td_err td_client_connection_add(td_connection *connection, td_model *model,
                                td_errinfo *info)
{
    const td_wire_route *route = &model->route;
    td_err err = TD_OK;
    pthread_mutex_lock(&connection->lock);
    for (const td_model *other = connection->models; other; other = other->next)
        if (strcmp(other->route.model, route->model) == 0 &&
            strcmp(other->route.version, route->version) == 0 &&
            strcmp(other->route.application, route->application) == 0)
            err = td_fail(info, TD_ERR_EXISTS,
                          "this connection has %s/%s/%s open", route->model,
                          route->version, route->application);
    if (err == TD_OK) {
        model->next = connection->models;
        connection->models = model;
        atomic_fetch_add(&connection->refs, 1);
    }
    pthread_mutex_unlock(&connection->lock);
    return err;
}

void td_client_connection_remove(td_connection *connection, td_model *model)
{
    pthread_mutex_lock(&connection->lock);
    td_model **at = &connection->models;
    while (*at != model)
        at = &(*at)->next;
    *at = model->next;
    pthread_mutex_unlock(&connection->lock);
    td_connection_close(connection);
}
