// SPDX-License-Identifier: Apache-2.0
#include "config/manifest/model.h"

#include "config/yaml/table.h"

#include <string.h>

#define MAX_CLIENTS 4096
#define LOWEST_PRIORITY 10 // those below it count as it

static const char *const modes[] = {"peer", "client", "router", NULL};

static td_err check_model(const td_config_location *location,
                          const td_config_node *node, void *value);

#define TERMS()                                                                \
    TD_ROW_NUMBER(td_config_client, latency_budget_ms, "50", 1, 60000,         \
                  "how old an observation may grow: its age counts in parts "  \
                  "of this"),                                                  \
        TD_ROW_INTEGER(td_config_client, highest_priority, "0", 0,             \
                       LOWEST_PRIORITY,                                        \
                       "the highest priority it may claim; 0 is the highest"), \
        TD_ROW_NUMBER(td_config_client, max_urgency, "1", 0, 1,                \
                      "the highest urgency it may claim")

static const td_config_field client_rows[] = {
    TD_ROW_CHUNK(td_config_client, client_uuid, NULL, "a robot's id"),
    TERMS(),
};
static const td_config_table client_table = {
    client_rows, TD_COUNT_OF(client_rows), sizeof(td_config_client), NULL};

static const td_config_field unknown_rows[] = {TERMS()};
static const td_config_table unknown_table = {
    unknown_rows, TD_COUNT_OF(unknown_rows), sizeof(td_config_client), NULL};

static const td_config_field prefixes_rows[] = {
    TD_ROW_INTEGER(td_config_prefixes, mb, "1024", 0, 1 << 20,
                   "of device memory for all of them; 0: none is kept"),
    TD_ROW_NUMBER(td_config_prefixes, age_s, "60", 0.1, 86400,
                  "one that was not used for so long may go"),
};
static const td_config_table prefixes_table = {
    prefixes_rows, TD_COUNT_OF(prefixes_rows), sizeof(td_config_prefixes),
    NULL};

static const td_config_field inputs_rows[] = {
    TD_ROW_NUMBER(td_config_inputs, alignment_ms, "20", 0, 60000,
                  "how far apart in time the tensors of one observation may "
                  "be"),
    TD_ROW_NUMBER(td_config_inputs, staleness_ms, "1000", 1, 600000,
                  "how old the oldest of them may be"),
};
static const td_config_table inputs_table = {
    inputs_rows, TD_COUNT_OF(inputs_rows), sizeof(td_config_inputs), NULL};

static const td_config_field model_rows[] = {
    TD_ROW_CHUNK(td_config_model, model_id, NULL, "the policy"),
    TD_ROW_CHUNK(td_config_model, model_version, NULL, "its version"),
    TD_ROW_CHUNK(td_config_model, application_tag, NULL, "what it does"),
    TD_ROW_TEXT(
        td_config_model, pretrained_path, "\"\"", 0, 4096,
        "where the weights are; native: a LeRobot checkpoint's folder, a "
        "relative one beside the manifest, or its name on the Hugging Face "
        "hub where it is in the hub's local cache"),
    TD_ROW_TEXT(td_config_model, device, "cpu", 1, 64,
                "where it runs; models on one device take turns"),
    TD_ROW_CHUNK(td_config_model, server_id, "\"\"",
                 "this server's own name; empty: the host's"),
    TD_ROW_INTEGER(td_config_model, fps, "30", 1, 1000,
                   "policy steps a second"),
    TD_ROW_ENDPOINT(td_config_model, endpoint, NULL,
                    "where to listen (peer, router) or to connect (client)"),
    TD_ROW_ENUM(td_config_model, mode, "peer", modes,
                "how to take part in the network"),
    TD_ROW_ENDPOINTS(td_config_model, connect, connect_count, 0, 64,
                     "where to connect as well"),
    TD_ROW_BOOL(td_config_model, shared_memory, "true",
                "use it with robots on this machine"),
    TD_ROW_STRUCTS(td_config_model, clients, client_count, td_config_client,
                   "[]", client_table, 0, MAX_CLIENTS, "the robots to serve",
                   .live = true),
    TD_ROW_BOOL(td_config_model, accept_unknown, "false",
                "serve robots that are not listed, too", .live = true),
    TD_ROW_STRUCT(td_config_model, unknown, td_config_client, "{}",
                  unknown_table, "the terms of those", .live = true),
    TD_ROW_INTEGER(td_config_model, capacity, "256", 1, MAX_CLIENTS,
                   "most robots at a time"),
    TD_ROW_INTEGER(td_config_model, max_inflight, "2", 1, 64,
                   "batches that are under way at a time"),
    TD_ROW_STRUCT(td_config_model, batch, td_config_batch, "{}",
                  td_config_batch_table, "how batches are formed",
                  .live = true),
    TD_ROW_BOOL(td_config_model, precompute, "true",
                "compute when an observation arrives; false: only for a robot "
                "that has nothing left to play, or asks again",
                .live = true),
    TD_ROW_STRUCT(td_config_model, prefixes, td_config_prefixes, "{}",
                  prefixes_table,
                  "what is kept of observations to answer again from"),
    TD_ROW_STRUCT(td_config_model, inputs, td_config_inputs, "{}", inputs_table,
                  "times of tensors", .live = true),
    TD_ROW_STRUCT(td_config_model, engine, td_config_engine, "{}",
                  td_config_engine_table, "the engine and its settings"),
};
const td_config_table td_config_model_table = {
    model_rows, TD_COUNT_OF(model_rows), sizeof(td_config_model), check_model};

bool td_config_model_same(const void *a, const void *b)
{
    const td_config_model *one = a, *other = b;
    return strcmp(one->server_id, other->server_id) == 0 &&
           strcmp(one->model_id, other->model_id) == 0 &&
           strcmp(one->model_version, other->model_version) == 0 &&
           strcmp(one->application_tag, other->application_tag) == 0;
}

static td_err check_clients(const td_config_location *location,
                            const td_config_node *list,
                            const td_config_model *model)
{
    size_t index = 0;
    for (const td_config_node *at = list->first; at; at = at->next, index++)
        for (size_t j = 0; j < index; j++)
            if (strcmp(model->clients[index].client_uuid,
                       model->clients[j].client_uuid) == 0)
                return td_config_location_fail(location, at, "clients",
                                               "%s is listed twice",
                                               model->clients[j].client_uuid);
    return TD_OK;
}

static td_err check_batch(const td_config_location *location,
                          const td_config_node *node,
                          const td_config_model *model)
{
    bool open = model->engine.max_batch == 0; // its worker says it
    if (open || model->batch.max_size <= model->engine.max_batch) return TD_OK;
    return td_config_location_fail(
        location, td_config_node_get(node, "max_size"), "batch.max_size",
        "must be at most the engine's max_batch, %lld, got "
        "%lld",
        (long long)model->engine.max_batch, (long long)model->batch.max_size);
}

static td_err check_parallel(const td_config_location *location,
                             const td_config_node *node,
                             const td_config_model *model)
{
    if (model->engine.parallel <= model->max_inflight) return TD_OK;
    return td_config_location_fail(
        location, td_config_node_get(node, "engine"), "engine.parallel",
        "must be at most max_inflight, %lld, got %lld",
        (long long)model->max_inflight, (long long)model->engine.parallel);
}

static td_err check_checkpoint(const td_config_location *location,
                               const td_config_node *node,
                               td_config_model *model)
{
    if (model->pretrained_path[0] == '\0')
        return td_config_location_fail(
            location, td_config_node_get(node, "pretrained_path"),
            "pretrained_path",
            "is missing, an engine of kind: native reads the checkpoint in "
            "that folder");
    model->pretrained_name = model->pretrained_path;
    return td_config_location_beside(location, &model->pretrained_path);
}

static td_err check_model(const td_config_location *location,
                          const td_config_node *node, void *value)
{
    td_config_model *model = value;
    const td_config_node *clients = td_config_node_get(node, "clients");
    if (model->engine.kind == TD_CONFIG_NATIVE)
        TD_TRY(check_checkpoint(location, node, model));
    if (model->client_count == 0 && !model->accept_unknown)
        return td_config_location_fail(location, clients, "clients",
                                       "lists nobody, name a client or set "
                                       "accept_unknown: true");
    if (model->client_count > (size_t)model->capacity)
        return td_config_location_fail(
            location, td_config_node_get(node, "capacity"), "capacity",
            "must be at least the %zu clients listed, got "
            "%lld",
            model->client_count, (long long)model->capacity);
    TD_TRY(check_batch(location, td_config_node_get(node, "batch"), model));
    TD_TRY(check_parallel(location, node, model));
    return clients ? check_clients(location, clients, model) : TD_OK;
}
