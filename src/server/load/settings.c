// SPDX-License-Identifier: Apache-2.0
#include "server/load/settings.h"

#include "base/clock.h"

#include <stdlib.h>
#include <string.h>

#define METRICS_PERIOD_NS (TD_NS_PER_S / 2)

static int64_t ns_of_ms(double ms)
{
    return (int64_t)(ms * (double)TD_NS_PER_MS);
}

static td_err compile(const td_config_scheduling *config, td_sched_expr *expr,
                      td_errinfo *info)
{
    td_errinfo why = {.text = ""};
    td_err err = td_sched_expr_compile(config->score, strlen(config->score),
                                       td_sched_strategy_fields, expr, &why);
    if (err == TD_OK) return TD_OK;
    return td_fail(info, err, "%s: %s", config->score_at, why.text);
}

static td_err load_plugin(const td_config_scheduling *config,
                          td_server_plugin **ret_plugin, td_errinfo *info)
{
    td_errinfo why = {.text = ""};
    td_err err = td_server_plugin_open(config->plugin, ret_plugin, &why);
    if (err == TD_OK) return TD_OK;
    return td_fail(info, err, "%s: %s", config->plugin_at, why.text);
}

td_err td_server_settings_policy(const td_config_scheduling *config,
                                 td_sched_policy *ret_policy,
                                 td_server_plugin **ret_plugin,
                                 td_errinfo *info)
{
    const td_config_weights *weights = &config->weights;
    TD_AUTO(td_server_plugin) *plugin = NULL;
    td_sched_policy policy = {
        .strategy = (td_sched_strategy)config->strategy,
        .weights = {.cadence = weights->cadence,
                    .urgency = weights->urgency,
                    .steps = weights->steps,
                    .priority = weights->priority,
                    .age = weights->age},
        .tiers = (uint32_t)config->tiers,
        .fairness = config->fairness,
    };
    if (config->score[0]) TD_TRY(compile(config, &policy.expr, info));
    if (config->plugin[0]) {
        TD_TRY(load_plugin(config, &plugin, info));
        policy.score = td_server_plugin_ask;
        policy.score_user = plugin;
    }
    *ret_policy = policy;
    *ret_plugin = TD_TAKE(plugin);
    return TD_OK;
}

static td_sched_batch_rule rule_of(const td_config_batch *config)
{
    return (td_sched_batch_rule){
        .wait = (td_sched_batch_wait)config->wait,
        .most = (uint32_t)config->max_size,
        .wait_ns = ns_of_ms(config->wait_ms),
    };
}

static void count_room(const td_config_manifest *manifest, const char *device,
                       td_server_device_settings *settings)
{
    for (size_t i = 0; i < manifest->model_count; i++) {
        const td_config_model *server = &manifest->models[i];
        if (strcmp(server->device, device) != 0) continue;
        settings->models++;
        settings->clients += (uint32_t)server->capacity;
    }
}

void td_server_settings_device(const td_config_manifest *manifest,
                               const td_config_scheduling *scheduling,
                               const char *device,
                               const td_sched_policy *policy,
                               td_server_device_settings *ret_settings)
{
    const td_config_queue *queue = &scheduling->queue;
    const td_config_cadence *cadence = &scheduling->cadence;
    const td_config_flush *flush = &scheduling->flush;
    td_server_device_settings settings = {
        .policy = *policy,
        .queue = {.size = (uint32_t)queue->size,
                  .ttl_ns = ns_of_ms(queue->ttl_ms),
                  .overflow = (td_sched_overflow)queue->overflow,
                  .retries = (uint32_t)queue->retries,
                  .backoff_ns = ns_of_ms(queue->backoff_ms)},
        .flush = {.wait = TD_SCHED_WAIT_FIXED,
                  .most = (uint32_t)flush->max_size,
                  .wait_ns = ns_of_ms(flush->wait_ms)},
        .cadence = {.alpha = cadence->alpha,
                    .gone_ns = (int64_t)(cadence->gone_s * TD_NS_PER_S),
                    .wake_ahead_ns = ns_of_ms(cadence->wake_ahead_ms),
                    .wake_samples = (uint32_t)cadence->wake_samples},
    };
    settings.side_by_side =
        scheduling->side_by_side && strncmp(device, "cpu", 3) == 0;
    count_room(manifest, device, &settings);
    *ret_settings = settings;
}

static td_server_allowance client_of(const td_config_client *config)
{
    return (td_server_allowance){
        .id = config->client_uuid,
        .budget_ns = ns_of_ms(config->latency_budget_ms),
        .best_priority = (uint32_t)config->highest_priority,
        .most_urgency = (float)config->max_urgency,
    };
}

static td_server_model_settings model_of(const td_config_model *config)
{
    return (td_server_model_settings){
        .batch = rule_of(&config->batch),
        .max_inflight = (uint32_t)config->max_inflight,
        .precompute = config->precompute,
        .prefix_bytes = (uint64_t)config->prefixes.mb << 20,
        .prefix_age_ns = (int64_t)(config->prefixes.age_s * TD_NS_PER_S),
        .inputs =
            {
                .staleness_us = ns_of_ms(config->inputs.staleness_ms) / 1000,
                .alignment_us = ns_of_ms(config->inputs.alignment_ms) / 1000,
            },
    };
}

td_wire_route td_server_settings_route(const td_config_manifest *manifest,
                                       const td_config_model *config)
{
    return (td_wire_route){
        .cluster = manifest->cluster_uuid,
        .experiment = manifest->experiment_tag,
        .model = config->model_id,
        .version = config->model_version,
        .application = config->application_tag,
    };
}

// In one piece: the clients, then their ids.
static td_server_allowance *copy_clients(const td_config_model *config)
{
    size_t bytes = 0;
    for (size_t i = 0; i < config->client_count; i++)
        bytes += strlen(config->clients[i].client_uuid) + 1;
    td_server_allowance *clients =
        malloc((config->client_count + 1) * sizeof *clients + bytes);
    if (!clients) return NULL;
    char *id = (char *)(clients + config->client_count + 1);
    for (size_t i = 0; i < config->client_count; i++) {
        clients[i] = client_of(&config->clients[i]);
        clients[i].id = id;
        id = stpcpy(id, config->clients[i].client_uuid) + 1;
    }
    return clients;
}

td_err td_server_settings_from(const td_config_manifest *manifest,
                               const td_config_model *config, uint64_t boot,
                               td_server_model_config *ret_config,
                               td_server_allowance **ret_clients)
{
    td_server_allowance *clients = copy_clients(config);
    if (!clients) return TD_ERR_NOMEM;
    *ret_config = (td_server_model_config){
        .route = td_server_settings_route(manifest, config),
        .settings =
            {
                .server_id = config->server_id,
                .boot = boot,
                .clients = clients,
                .client_count = (uint32_t)config->client_count,
                .unknown = client_of(&config->unknown),
                .accept_unknown = config->accept_unknown,
                .capacity = (uint32_t)config->capacity,
            },
        .model = model_of(config),
        .metrics_period_ns = METRICS_PERIOD_NS,
    };
    *ret_clients = clients;
    return TD_OK;
}
