// SPDX-License-Identifier: Apache-2.0
#include "server/settings.h"

#include "base/clock.h"
#include "engine/synthetic/synthetic.h"

#include <stdlib.h>

#define METRICS_PERIOD_NS (TD_NS_PER_S / 2)

static void fill_channels(const td_config_channel *from, size_t count,
                          td_wire_channel *ret_channels, uint32_t *ret_count)
{
    for (size_t i = 0; i < count; i++)
        ret_channels[i] = (td_wire_channel){
            .name = td_wire_text_of(from[i].name),
            .kind = (td_wire_channel_kind)from[i].kind,
        };
    *ret_count = (uint32_t)count;
}

static void fill_synthetic(const td_config_engine *engine,
                           td_engine_synthetic_settings *settings)
{
    fill_channels(engine->actions, engine->action_count, settings->actions,
                  &settings->action_count);
    fill_channels(engine->states, engine->state_count, settings->states,
                  &settings->state_count);
    for (size_t i = 0; i < engine->camera_count; i++)
        settings->cameras[i] = (td_wire_camera){
            .name = td_wire_text_of(engine->cameras[i].name),
            .height = (uint32_t)engine->cameras[i].height,
            .width = (uint32_t)engine->cameras[i].width,
        };
    settings->camera_count = (uint32_t)engine->camera_count;
    settings->chunk_rows = (uint32_t)engine->chunk;
    settings->max_batch = (uint32_t)engine->max_batch;
    settings->continuous = engine->continuous;
    settings->seed = (uint64_t)engine->seed;
    settings->check_images = engine->check_images;
    settings->latency = (td_engine_latency){
        .kind = (td_engine_latency_kind)engine->latency.kind,
        .ms = engine->latency.ms,
        .std_ms = engine->latency.std_ms,
        .per_batch_ms = engine->latency.per_batch_ms,
        .prepare_ms = engine->latency.prepare_ms,
        .file = engine->latency.file,
    };
}

td_err td_server_settings_engine(const td_config_server *config,
                                 td_engine **ret_engine, td_errinfo *info)
{
    td_engine_synthetic_settings *settings = calloc(1, sizeof *settings);
    if (!settings) return TD_ERR_NOMEM;
    fill_synthetic(&config->engine, settings);
    td_engine_config engine = {
        .model_id = config->model_id,
        .model_version = config->model_version,
        .pretrained_path = config->pretrained_path,
        .device = config->device,
        .step_period_us = 1000000 / config->fps,
        .settings = settings,
    };
    td_err err = td_engine_open("synthetic", &engine, ret_engine, info);
    free(settings);
    return err;
}

td_err td_server_settings_from(const td_config_manifest *manifest,
                               const td_config_server *config, uint64_t boot,
                               td_server_config *ret_config,
                               td_server_client **ret_clients)
{
    td_server_client *clients =
        calloc(config->client_count + 1, sizeof *clients);
    if (!clients) return TD_ERR_NOMEM;
    for (size_t i = 0; i < config->client_count; i++) {
        clients[i] = td_server_client_defaults;
        clients[i].id = config->clients[i].client_uuid;
    }
    *ret_config = (td_server_config){
        .route =
            {
                .cluster = manifest->cluster_uuid,
                .experiment = manifest->experiment_tag,
                .model = config->model_id,
                .version = config->model_version,
                .application = config->application_tag,
            },
        .settings =
            {
                .server_id = config->server_id,
                .boot = boot,
                .clients = clients,
                .client_count = (uint32_t)config->client_count,
                .unknown = td_server_client_defaults,
                .accept_unknown = config->accept_unknown,
                .capacity = (uint32_t)config->capacity,
            },
        .model = td_server_model_defaults,
        .metrics_period_ns = METRICS_PERIOD_NS,
    };
    *ret_clients = clients;
    return TD_OK;
}
