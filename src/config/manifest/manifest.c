// SPDX-License-Identifier: Apache-2.0
#include "config/manifest/manifest.h"

#include "config/yaml/table.h"

#include <arpa/inet.h>
#include <string.h>
#include <unistd.h>

#define MAX_MODELS 64

static td_err check_admin(const td_config_location *location,
                          const td_config_node *node, void *value);
static td_err check_manifest(const td_config_location *location,
                             const td_config_node *node, void *value);

static const td_config_field admin_rows[] = {
    TD_ROW_TEXT(td_config_admin, address, "127.0.0.1", 1, 64,
                "where to listen; other machines reach only what is not "
                "loopback"),
    TD_ROW_INTEGER(td_config_admin, port, "0", 0, 65535, "0: none"),
};
static const td_config_table admin_table = {
    admin_rows, TD_COUNT_OF(admin_rows), sizeof(td_config_admin), check_admin};

static const td_config_field manifest_rows[] = {
    TD_ROW_CHUNK(td_config_manifest, cluster_uuid, NULL, "the cluster"),
    TD_ROW_CHUNK(td_config_manifest, experiment_tag, NULL, "the experiment"),
    TD_ROW_STRUCT(td_config_manifest, scheduling, td_config_scheduling, "{}",
                  td_config_scheduling_table, "of every device"),
    TD_ROW_STRUCT(td_config_manifest, admin, td_config_admin, "{}", admin_table,
                  "HTTP for people and Prometheus"),
    TD_ROW_STRUCTS(td_config_manifest, models, model_count, td_config_model,
                   NULL, td_config_model_table, 1, MAX_MODELS,
                   "the models to serve", .also = "server",
                   .same = td_config_model_same),
};
const td_config_table td_config_manifest_table = {
    manifest_rows, TD_COUNT_OF(manifest_rows), sizeof(td_config_manifest),
    check_manifest};

static td_err check_admin(const td_config_location *location,
                          const td_config_node *node, void *value)
{
    const td_config_admin *admin = value;
    struct in6_addr bytes;
    if (inet_pton(AF_INET, admin->address, &bytes) == 1 ||
        inet_pton(AF_INET6, admin->address, &bytes) == 1)
        return TD_OK;
    return td_config_location_fail(
        location, td_config_node_get(node, "address"), "address",
        "must be an address such as 127.0.0.1 or ::1, got "
        "%.40s",
        admin->address);
}

// The host's name, with what cannot stand in a key replaced, and a number where
// one manifest has several models.
static td_err name_server(const td_config_location *location, size_t index,
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
                  ? td_arena_print(location->arena, "%s", host)
                  : td_arena_print(location->arena, "%s-%zu", host, index);
    return *ret_id ? TD_OK : td_config_location_no_memory(location);
}

static td_err check_names(const td_config_location *location,
                          const td_config_node *list,
                          const td_config_node *node,
                          td_config_manifest *manifest, size_t index)
{
    td_config_model *model = &manifest->models[index];
    if (!model->server_id[0])
        TD_TRY(name_server(location, index, manifest->model_count,
                           &model->server_id));
    for (size_t i = 0; i < index; i++)
        if (strcmp(manifest->models[i].server_id, model->server_id) == 0)
            return td_config_location_fail(location, node, list->key,
                                           "server_id %s is given twice",
                                           model->server_id);
    return TD_OK;
}

static bool same_texts(const char **a, const char **b, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(a[i], b[i]) != 0) return false;
    return true;
}

// Models with one endpoint share one session.
static bool share_session(const td_config_model *a, const td_config_model *b)
{
    return a->mode == b->mode && a->shared_memory == b->shared_memory &&
           a->connect_count == b->connect_count &&
           same_texts(a->connect, b->connect, a->connect_count);
}

static td_err check_session(const td_config_location *location,
                            const td_config_node *list,
                            const td_config_node *node,
                            const td_config_manifest *manifest, size_t index)
{
    const td_config_model *model = &manifest->models[index];
    for (size_t i = 0; i < index; i++) {
        const td_config_model *other = &manifest->models[i];
        if (strcmp(other->endpoint, model->endpoint) == 0 &&
            !share_session(other, model))
            return td_config_location_fail(
                location, node, list->key,
                "%s and %s have one endpoint: mode, connect "
                "and shared_memory must be the same",
                other->server_id, model->server_id);
    }
    return TD_OK;
}

static td_err check_manifest(const td_config_location *location,
                             const td_config_node *node, void *value)
{
    td_config_manifest *manifest = value;
    const td_config_node *list = td_config_node_get(node, "models");
    if (!list) list = td_config_node_get(node, "server"); // as it was called
    const td_config_node *at = list->first;
    for (size_t i = 0; i < manifest->model_count; i++, at = at->next) {
        TD_TRY(check_names(location, list, at, manifest, i));
        TD_TRY(check_session(location, list, at, manifest, i));
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

void td_config_manifest_diff(const td_config_manifest *was,
                             const td_config_manifest *now,
                             td_config_on_change on_change, void *user)
{
    td_config_diff(&td_config_manifest_table, was, now, on_change, user);
}

void td_config_manifest_free(td_config_manifest *manifest)
{
    td_config_table_free(manifest);
}
