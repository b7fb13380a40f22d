// SPDX-License-Identifier: Apache-2.0
#include "config/manifest.h"

#include "config/table.h"

#include <string.h>
#include <unistd.h>

#define MAX_SERVERS 64
#define MAX_CLIENTS 4096

static const char *const modes[] = {"peer", "client", "router", NULL};

static td_err check_server(const td_config_place *place,
                           const td_config_node *node, void *value);
static td_err check_manifest(const td_config_place *place,
                             const td_config_node *node, void *value);

static const td_config_field client_rows[] = {
    TD_ROW_CHUNK(td_config_client, client_uuid, NULL, "a robot's id"),
};
static const td_config_table client_table = {
    client_rows, TD_COUNT_OF(client_rows), sizeof(td_config_client), NULL};

static const td_config_field server_rows[] = {
    TD_ROW_CHUNK(td_config_server, model_id, NULL, "the policy"),
    TD_ROW_CHUNK(td_config_server, model_version, NULL, "its version"),
    TD_ROW_CHUNK(td_config_server, application_tag, NULL, "what it does"),
    TD_ROW_TEXT(td_config_server, pretrained_path, "\"\"", 0, 4096,
                "where the weights are"),
    TD_ROW_TEXT(td_config_server, device, "cpu", 1, 64, "where it runs"),
    TD_ROW_CHUNK(td_config_server, server_id, "\"\"",
                 "this server's own name; empty: the host's"),
    TD_ROW_INTEGER(td_config_server, fps, "30", 1, 1000,
                   "policy steps a second"),
    TD_ROW_ENDPOINT(td_config_server, endpoint, NULL,
                    "where to listen (peer, router) or to connect (client)"),
    TD_ROW_ENUM(td_config_server, mode, "peer", modes,
                "how to take part in the network"),
    TD_ROW_ENDPOINTS(td_config_server, connect, connect_count, 0, 64,
                     "where to connect as well"),
    TD_ROW_BOOL(td_config_server, shared_memory, "true",
                "use it with robots on this machine"),
    TD_ROW_STRUCTS(td_config_server, clients, client_count, td_config_client,
                   "[]", client_table, 0, MAX_CLIENTS, "the robots to serve"),
    TD_ROW_BOOL(td_config_server, accept_unknown, "false",
                "serve robots that are not listed, too"),
    TD_ROW_INTEGER(td_config_server, capacity, "256", 1, MAX_CLIENTS,
                   "most robots at a time"),
    TD_ROW_STRUCT(td_config_server, engine, td_config_engine, NULL,
                  td_config_engine_table, "the engine and its settings"),
};
static const td_config_table server_table = {
    server_rows, TD_COUNT_OF(server_rows), sizeof(td_config_server),
    check_server};

static const td_config_field manifest_rows[] = {
    TD_ROW_CHUNK(td_config_manifest, cluster_uuid, NULL, "the cluster"),
    TD_ROW_CHUNK(td_config_manifest, experiment_tag, NULL, "the experiment"),
    TD_ROW_STRUCTS(td_config_manifest, server, server_count, td_config_server,
                   NULL, server_table, 1, MAX_SERVERS, "the models to serve"),
};
const td_config_table td_config_manifest_table = {
    manifest_rows, TD_COUNT_OF(manifest_rows), sizeof(td_config_manifest),
    check_manifest};

static td_err check_clients(const td_config_place *place,
                            const td_config_node *list,
                            const td_config_server *server)
{
    size_t index = 0;
    for (const td_config_node *at = list->first; at; at = at->next, index++)
        for (size_t j = 0; j < index; j++)
            if (strcmp(server->clients[index].client_uuid,
                       server->clients[j].client_uuid) == 0)
                return td_config_bad(place, at, "clients", "%s is listed twice",
                                     server->clients[j].client_uuid);
    return TD_OK;
}

static td_err check_server(const td_config_place *place,
                           const td_config_node *node, void *value)
{
    const td_config_server *server = value;
    const td_config_node *clients = td_config_node_get(node, "clients");
    if (server->client_count == 0 && !server->accept_unknown)
        return td_config_bad(place, clients, "clients",
                             "lists nobody, name a client or set "
                             "accept_unknown: true");
    if (server->client_count > (size_t)server->capacity)
        return td_config_bad(place, td_config_node_get(node, "capacity"),
                             "capacity",
                             "must be at least the %zu clients listed, got "
                             "%lld",
                             server->client_count, (long long)server->capacity);
    return clients ? check_clients(place, clients, server) : TD_OK;
}

// The host's name, with what cannot stand in a key replaced, and a number where
// one manifest has several servers.
static td_err name_server(const td_config_place *place, size_t index,
                          size_t count, const char **ret_id)
{
    char host[48] = "";
    if (gethostname(host, sizeof host - 1) || !host[0]) strcpy(host, "server");
    for (char *at = host; *at; at++)
        if (!strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                    "0123456789_-",
                    *at))
            *at = '-';
    *ret_id = count == 1
                  ? td_config_arena_print(place->arena, "%s", host)
                  : td_config_arena_print(place->arena, "%s-%zu", host, index);
    return *ret_id ? TD_OK : td_config_no_memory(place);
}

static td_err check_manifest(const td_config_place *place,
                             const td_config_node *node, void *value)
{
    td_config_manifest *manifest = value;
    const td_config_node *at = td_config_node_get(node, "server")->first;
    for (size_t i = 0; i < manifest->server_count; i++, at = at->next) {
        td_config_server *server = &manifest->server[i];
        if (!server->server_id[0])
            TD_TRY(name_server(place, i, manifest->server_count,
                               &server->server_id));
        for (size_t j = 0; j < i; j++)
            if (strcmp(manifest->server[j].server_id, server->server_id) == 0)
                return td_config_bad(place, at, "server",
                                     "server_id %s is given twice",
                                     server->server_id);
    }
    return TD_OK;
}

td_err td_config_manifest_load(const char *path,
                               td_config_manifest **ret_manifest,
                               td_errinfo *info)
{
    void *manifest = NULL;
    TD_TRY(
        td_config_table_load(&td_config_manifest_table, path, &manifest, info));
    *ret_manifest = manifest;
    return TD_OK;
}

td_err td_config_manifest_parse(const char *path, const void *data, size_t size,
                                td_config_manifest **ret_manifest,
                                td_errinfo *info)
{
    void *manifest = NULL;
    TD_TRY(td_config_table_parse(&td_config_manifest_table, path, data, size,
                                 &manifest, info));
    *ret_manifest = manifest;
    return TD_OK;
}

void td_config_manifest_free(td_config_manifest *manifest)
{
    td_config_table_free(manifest);
}
