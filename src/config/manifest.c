// SPDX-License-Identifier: Apache-2.0
#include "config/manifest.h"

#include "config/table.h"

#include <string.h>
#include <unistd.h>

#define MAX_SERVERS 64
#define MAX_CLIENTS 4096
#define MAX_EXACT 9007199254740991.0 // whole numbers that a double can hold

static const char *const modes[] = {"peer", "client", "router", NULL};
static const char *const engines[] = {"synthetic", NULL};
static const char *const latencies[] = {"none",      "fixed",   "normal",
                                        "lognormal", "profile", NULL};

static td_err check_latency(const td_config_place *place,
                            const td_config_node *node, void *value);
static td_err check_engine(const td_config_place *place,
                           const td_config_node *node, void *value);
static td_err check_server(const td_config_place *place,
                           const td_config_node *node, void *value);
static td_err check_manifest(const td_config_place *place,
                             const td_config_node *node, void *value);

static const td_config_field latency_rows[] = {
    TD_ROW_ENUM(td_config_latency, kind, "none", latencies,
                "what the time of one batch is drawn from"),
    TD_ROW_NUMBER(td_config_latency, ms, "0", 0, 60000,
                  "mean of a batch of one"),
    TD_ROW_NUMBER(td_config_latency, std_ms, "0", 0, 60000,
                  "deviation (normal, lognormal)"),
    TD_ROW_NUMBER(td_config_latency, per_batch_ms, "0", 0, 60000,
                  "more for each further member of the batch"),
    TD_ROW_TEXT(td_config_latency, file, "\"\"", 0, 4096,
                "measured samples (profile): a line for each batch size, "
                "\"n: samples in ms\""),
};
static const td_config_table latency_table = {
    latency_rows, TD_COUNT_OF(latency_rows), sizeof(td_config_latency),
    check_latency};

static const td_config_field engine_rows[] = {
    TD_ROW_ENUM(td_config_engine, kind, NULL, engines, "what runs the model"),
    TD_ROW_MAP(td_config_engine, actions, action_count, td_config_channel,
               "[joint_0, joint_1, joint_2, joint_3, joint_4, joint_5]",
               td_config_channel_table, 1, TD_CONFIG_MAX_CHANNELS,
               "action channels in order"),
    TD_ROW_MAP(td_config_engine, states, state_count, td_config_channel, "[]",
               td_config_channel_table, 0, TD_CONFIG_MAX_CHANNELS,
               "state channels in order; none: those of the actions"),
    TD_ROW_MAP(td_config_engine, cameras, camera_count, td_config_camera, "[]",
               td_config_camera_table, 0, TD_CONFIG_MAX_CAMERAS,
               "pictures that every observation must hold"),
    TD_ROW_INTEGER(td_config_engine, chunk, "50", 1, TD_CONFIG_MAX_ROWS,
                   "actions in a chunk"),
    TD_ROW_INTEGER(td_config_engine, max_batch, "1", 1, TD_CONFIG_MAX_BATCH,
                   "most observations in one batch"),
    TD_ROW_STRUCT(td_config_engine, latency, td_config_latency, "{}",
                  latency_table, "how long a batch takes"),
    TD_ROW_INTEGER(td_config_engine, seed, "0", 0, MAX_EXACT,
                   "of the latency draws"),
    TD_ROW_BOOL(td_config_engine, check_images, "false",
                "decode every picture and refuse one that is damaged"),
};
static const td_config_table engine_table = {
    engine_rows, TD_COUNT_OF(engine_rows), sizeof(td_config_engine),
    check_engine};

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
                  engine_table, "the engine and its settings"),
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

static td_err check_latency(const td_config_place *place,
                            const td_config_node *node, void *value)
{
    td_config_latency *latency = value;
    bool profile = latency->kind == TD_CONFIG_LATENCY_PROFILE;
    if (profile != (latency->file[0] != '\0'))
        return td_config_bad(
            place, td_config_node_get(node, "file"), "file", "%s",
            profile ? "is missing, a profile needs the file of its samples"
                    : "is for kind: profile only");
    if (latency->kind == TD_CONFIG_LATENCY_LOGNORMAL && latency->ms == 0)
        return td_config_bad(place, td_config_node_get(node, "ms"), "ms",
                             "must be above 0 for kind: lognormal, got 0");

    const char *slash = strrchr(place->file, '/');
    if (!profile || latency->file[0] == '/' || !slash) return TD_OK;
    latency->file = td_config_arena_print(place->arena, "%.*s/%s",
                                          (int)(slash - place->file),
                                          place->file, latency->file);
    return latency->file ? TD_OK : td_config_no_memory(place);
}

static td_err check_channels(const td_config_place *place,
                             const td_config_node *node, const char *field,
                             const td_config_channel *channels, size_t count)
{
    const char *wrong =
        td_config_channels_check(channels, sizeof *channels, count);
    if (!wrong) return TD_OK;
    return td_config_bad(place, td_config_node_get(node, field), field,
                         "a quaternion is four channels in a row, %s begins "
                         "fewer",
                         wrong);
}

static td_err check_engine(const td_config_place *place,
                           const td_config_node *node, void *value)
{
    td_config_engine *engine = value;
    if (engine->state_count == 0) {
        engine->states = engine->actions;
        engine->state_count = engine->action_count;
    }
    TD_TRY(check_channels(place, node, "actions", engine->actions,
                          engine->action_count));
    return check_channels(place, node, "states", engine->states,
                          engine->state_count);
}

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
