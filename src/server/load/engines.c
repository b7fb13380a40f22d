// SPDX-License-Identifier: Apache-2.0
// From the manifest's `engine:` to an engine: one function for each kind.
//
// Synthetic engines and those of Python functions get what the manifest says
// their model takes and gives. A worker gets a command line and the environment
// of its child process; on a GPU the native engine is such a child, too, of the
// same program, else it runs in this process. Callbacks get the function that
// the program gave.
// What a kind needs and the manifest does not say is INVALID here, with the
// field's name, before anything is started.
//
// Texts are borrowed from the manifest for as long as the engine is open. The
// caller closes it. Opening blocks: a worker loads its policy meanwhile.
#include "base/clock.h"
#include "engine/callback/callback.h"
#include "engine/native/checkpoint/checkpoint.h"
#include "engine/native/child.h"
#include "engine/native/native.h"
#include "engine/pool/pool.h"
#include "engine/synthetic/synthetic.h"
#include "engine/worker/worker.h"
#include "server/load/playback.h"
#include "server/load/settings.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

static void fill_cameras(const td_config_engine *engine,
                         td_wire_camera *ret_cameras, uint32_t *ret_count)
{
    for (size_t i = 0; i < engine->camera_count; i++)
        ret_cameras[i] = (td_wire_camera){
            .name = td_wire_text_of(engine->cameras[i].name),
            .height = (uint32_t)engine->cameras[i].height,
            .width = (uint32_t)engine->cameras[i].width,
        };
    *ret_count = (uint32_t)engine->camera_count;
}

static void fill_synthetic(const td_config_engine *engine,
                           td_engine_synthetic_settings *settings)
{
    fill_channels(engine->actions, engine->action_count, settings->actions,
                  &settings->action_count);
    fill_channels(engine->states, engine->state_count, settings->states,
                  &settings->state_count);
    fill_cameras(engine, settings->cameras, &settings->camera_count);
    settings->chunk_rows = (uint32_t)engine->chunk;
    settings->max_batch = (uint32_t)engine->max_batch;
    settings->continuous = engine->continuous;
    settings->seed = (uint64_t)engine->seed;
    settings->check_images = engine->check_images;
    settings->halves = engine->halves;
    settings->latency = (td_engine_latency){
        .kind = (td_engine_latency_kind)engine->latency.kind,
        .ms = engine->latency.ms,
        .std_ms = engine->latency.std_ms,
        .per_batch_ms = engine->latency.per_batch_ms,
        .prepare_ms = engine->latency.prepare_ms,
    };
}

// One, or as many side by side as the file says.
static td_err open_some(const td_config_engine *from, const char *kind,
                        const td_engine_config *config, td_engine **ret_engine,
                        td_errinfo *info)
{
    const td_engine_pool_settings pool = {.kind = kind,
                                          .settings = config->settings,
                                          .count = (uint32_t)from->parallel};
    if (from->parallel <= 1)
        return td_engine_open(kind, config, ret_engine, info);
    td_engine_config pooled = *config;
    pooled.settings = &pool;
    return td_engine_open("pool", &pooled, ret_engine, info);
}

static void put_name(char field[64], const char *name)
{
    memcpy(field, name, strnlen(name, 64));
}

static void fill_worker_channels(const td_config_channel *from, size_t count,
                                 td_worker_channel *ret_channels,
                                 uint32_t *ret_count)
{
    for (size_t i = 0; i < count; i++) {
        put_name(ret_channels[i].name, from[i].name);
        ret_channels[i].kind = (uint32_t)from[i].kind;
    }
    *ret_count = (uint32_t)count;
}

static void fill_worker_spec(const td_config_engine *engine,
                             td_worker_spec *spec)
{
    fill_worker_channels(engine->actions, engine->action_count, spec->actions,
                         &spec->action_count);
    fill_worker_channels(engine->states, engine->state_count, spec->states,
                         &spec->state_count);
    for (size_t i = 0; i < engine->camera_count; i++) {
        put_name(spec->cameras[i].name, engine->cameras[i].name);
        spec->cameras[i].height = (uint32_t)engine->cameras[i].height;
        spec->cameras[i].width = (uint32_t)engine->cameras[i].width;
    }
    spec->camera_count = (uint32_t)engine->camera_count;
    spec->chunk_rows = (uint32_t)engine->chunk;
    spec->max_batch = (uint32_t)engine->max_batch;
    spec->rtc = engine->rtc;
    spec->tolerance = (float)engine->tolerance;
    spec->values_bytes = (uint32_t)engine->results_kb << 10;
}

static int64_t ns_of_s(double s)
{
    return (int64_t)(s * (double)TD_NS_PER_S);
}

static void fill_worker(const td_config_engine *engine,
                        td_engine_worker_settings *settings)
{
    fill_worker_spec(engine, &settings->spec);
    settings->python = engine->python;
    settings->batched = engine->batched;
    settings->memory_bytes = (uint64_t)engine->memory_mb << 20;
    settings->start_ns = ns_of_s(engine->start_s);
    settings->answer_ns = ns_of_s(engine->answer_s);
}

static td_err open_synthetic(const td_config_engine *from,
                             td_engine_config *config, td_engine **ret_engine,
                             td_errinfo *info)
{
    td_engine_synthetic_settings *settings = calloc(1, sizeof *settings);
    if (!settings) return TD_ERR_NOMEM;
    fill_synthetic(from, settings);
    TD_AUTO(td_server_playback) *playback = NULL;
    td_err err = TD_OK;
    if (from->latency.kind == TD_CONFIG_LATENCY_PROFILE)
        err = td_server_playback_open(from, &playback, info);
    if (playback) {
        settings->latency.sizes = playback->sizes;
        settings->latency.size_count = playback->size_count;
    }
    config->settings = settings;
    if (err == TD_OK)
        err = td_engine_open("synthetic", config, ret_engine, info);
    free(settings);
    return err;
}

static td_err open_worker(const td_config_engine *from,
                          td_engine_config *config, td_engine **ret_engine,
                          td_errinfo *info)
{
    td_engine_worker_settings *settings = calloc(1, sizeof *settings);
    const char **command = calloc(from->command_count + 1, sizeof *command);
    td_err err = settings && command ? TD_OK : TD_ERR_NOMEM;
    if (err == TD_OK) {
        fill_worker(from, settings);
        for (size_t i = 0; i < from->command_count; i++)
            command[i] = from->command[i];
        settings->command = command;
        config->settings = settings;
        err = open_some(from, "worker", config, ret_engine, info);
    }
    free(command);
    free(settings);
    return err;
}

static void fill_spec(const td_config_engine *engine, td_engine_spec *spec)
{
    fill_channels(engine->actions, engine->action_count, spec->actions,
                  &spec->action_count);
    fill_channels(engine->states, engine->state_count, spec->states,
                  &spec->state_count);
    fill_cameras(engine, spec->cameras, &spec->camera_count);
    spec->chunk_rows = (uint32_t)engine->chunk;
    spec->max_batch = (uint32_t)engine->max_batch;
    spec->tolerance = (float)engine->tolerance;
    spec->rtc = engine->rtc;
}

static td_err open_callback(const td_config_engine *from,
                            const td_server_engine_function *function,
                            const td_engine_config *config,
                            td_engine **ret_engine, td_errinfo *info)
{
    td_engine_spec *spec = calloc(1, sizeof *spec);
    if (!spec) return TD_ERR_NOMEM;
    fill_spec(from, spec);
    const td_engine_callback_settings settings = {
        .spec = spec,
        .infer = function ? function->infer : NULL,
        .user = function ? function->user : NULL,
        .answer_ns = ns_of_s(from->answer_s),
    };
    td_engine_config own = *config;
    own.settings = &settings;
    td_err err = open_some(from, "callback", &own, ret_engine, info);
    free(spec);
    return err;
}

// This program, or, where that is somebody's own, `tendon` as it is installed.
static void find_tendon(char path[PATH_MAX])
{
    ssize_t size = readlink("/proc/self/exe", path, PATH_MAX - 1);
    path[size > 0 ? size : 0] = '\0';
    const char *slash = strrchr(path, '/');
    if (!slash || strncmp(slash + 1, "tendon", 6) != 0)
        (void)snprintf(path, PATH_MAX, "tendon");
}

// On a GPU the native engine is a process of its own.
static td_err open_native_child(const td_config_model *model,
                                td_engine_config *config,
                                td_engine **ret_engine, td_errinfo *info)
{
    const td_config_engine *from = &model->engine;
    char program[PATH_MAX], coefficient[32], megabytes[32];
    const char *command[9] = {program, "native-worker"};
    size_t words = 2;
    if (from->threads > 0)
        return td_fail(info, TD_ERR_UNSUPPORTED,
                       "model %s: threads: are for device: cpu",
                       config->model_id);
    if (from->tokenizer[0] != '\0') {
        command[words++] = "--tokenizer";
        command[words++] = from->tokenizer;
    }
    if (from->ensemble.enabled) {
        command[words++] = "--ensemble";
        command[words++] = coefficient;
    }
    if (model->prefixes.mb > 0) {
        command[words++] = "--prefixes";
        command[words++] = megabytes;
    }
    td_engine_worker_settings *settings = calloc(1, sizeof *settings);
    if (!settings) return TD_ERR_NOMEM;
    find_tendon(program);
    (void)snprintf(coefficient, sizeof coefficient, "%.17g",
                   from->ensemble.coefficient);
    (void)snprintf(megabytes, sizeof megabytes, "%lld",
                   (long long)model->prefixes.mb);
    fill_worker_channels(from->actions, from->action_count,
                         settings->spec.actions, &settings->spec.action_count);
    fill_worker_channels(from->states, from->state_count, settings->spec.states,
                         &settings->spec.state_count);
    settings->spec.max_batch = (uint32_t)from->max_batch;
    settings->start_ns = ns_of_s(from->start_s);
    settings->answer_ns = ns_of_s(from->answer_s);
    settings->command = command;
    config->settings = settings;
    td_err err = td_engine_open("worker", config, ret_engine, info);
    free(settings);
    return err;
}

static bool is_gpu(const char *device)
{
    return device && strncmp(device, TD_NATIVE_CHILD_DEVICE,
                             strlen(TD_NATIVE_CHILD_DEVICE)) == 0;
}

static td_err open_native(const td_config_model *model,
                          td_engine_config *config, td_engine **ret_engine,
                          td_errinfo *info)
{
    const td_config_engine *from = &model->engine;
    if (is_gpu(config->device))
        return open_native_child(model, config, ret_engine, info);
    td_engine_native_settings *settings = calloc(1, sizeof *settings);
    if (!settings) return TD_ERR_NOMEM;
    fill_channels(from->actions, from->action_count, settings->actions,
                  &settings->action_count);
    fill_channels(from->states, from->state_count, settings->states,
                  &settings->state_count);
    settings->max_batch = (uint32_t)from->max_batch;
    settings->threads = (uint32_t)from->threads;
    settings->tokenizer = from->tokenizer;
    settings->ensemble = from->ensemble.enabled;
    settings->ensemble_coefficient = from->ensemble.coefficient;
    settings->prefix_bytes = (uint64_t)model->prefixes.mb << 20;
    config->settings = settings;
    td_err err = td_engine_open("native", config, ret_engine, info);
    free(settings);
    return err;
}

td_err td_server_engines_checkpoint(const td_config_model *config,
                                    char ret_path[PATH_MAX], td_errinfo *info)
{
    if (config->engine.kind == TD_CONFIG_NATIVE)
        return td_native_checkpoint_find(
            config->pretrained_path, config->pretrained_name, ret_path, info);
    (void)snprintf(ret_path, PATH_MAX, "%s", config->pretrained_path);
    return TD_OK;
}

td_err td_server_engines_open(const td_config_model *config,
                              const td_server_engine_function *function,
                              td_engine **ret_engine, td_errinfo *info)
{
    char checkpoint[PATH_MAX];
    TD_TRY(td_server_engines_checkpoint(config, checkpoint, info));
    td_engine_config engine = {
        .model_id = config->model_id,
        .model_version = config->model_version,
        .pretrained_path = checkpoint,
        .device = config->device,
        .step_period_us = 1000000 / config->fps,
    };
    switch (config->engine.kind) {
    case TD_CONFIG_SYNTHETIC:
        return open_synthetic(&config->engine, &engine, ret_engine, info);
    case TD_CONFIG_WORKER:
        return open_worker(&config->engine, &engine, ret_engine, info);
    case TD_CONFIG_CALLBACK:
        return open_callback(&config->engine, function, &engine, ret_engine,
                             info);
    case TD_CONFIG_NATIVE:
        return open_native(config, &engine, ret_engine, info);
    }
    return TD_ERR_INVALID;
}
