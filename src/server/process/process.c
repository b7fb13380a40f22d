// SPDX-License-Identifier: Apache-2.0
// The process of a server: everything that its manifest asks for.
//
// It is opened in this order: the sessions, shared by entries of the same
// endpoint, and the same server must not be running already; what exposes it
// (events, admin page, listeners), so that loading can be seen; for each entry
// a stand-in that answers `warming`; then one entry after the other its device,
// shared by entries of the same name, its engine, which is warmed up, its
// model.
//
// Closed in the order: models, engines, devices, the policy whose functions
// they called, sessions, whoever listens. Each step frees only what was opened,
// so that closing after a failed open is the same as after a good one.
//
// One thread at a time opens, reloads, drains and closes. `shown_lock` guards
// which models may be read by others (numbers.c, stream.c): it is held while
// one is read, with the device's lock inside it, so that a model is taken away
// only when nobody looks at it.
#include "server/process/process.h"

#include "base/clock.h"
#include "base/log.h"
#include "engine/probe.h"
#include "net/zenoh/zenoh.h"
#include "server/load/duplicate.h"

#include <stdlib.h>
#include <string.h>

#define DUPLICATE_PATIENCE_NS (3 * TD_NS_PER_S)
#define LOOK_NS (20 * TD_NS_PER_MS)

const td_server_engine_function *
td_server_process_find_function(const td_server_extras *extras,
                                const char *model_id)
{
    for (size_t i = 0; i < extras->function_count; i++)
        if (strcmp(extras->functions[i].model_id, model_id) == 0)
            return &extras->functions[i].function;
    return NULL;
}

td_err td_server_process_check_functions(const td_config_manifest *manifest,
                                         const td_server_extras *extras,
                                         td_errinfo *info)
{
    for (size_t i = 0; i < manifest->model_count; i++) {
        const td_config_model *model = &manifest->models[i];
        if (model->engine.kind != TD_CONFIG_CALLBACK ||
            td_server_process_find_function(extras, model->model_id))
            continue;
        return td_fail(
            info, TD_ERR_INVALID,
            "server %s: engine.kind: callback runs a function of the "
            "program that serves it (tendon/server.h), and there is "
            "none for model %s",
            model->server_id, model->model_id);
    }
    return TD_OK;
}

// What a server's session dials. Owned array of borrowed texts.
static td_err endpoints_of(const td_config_model *config,
                           const char ***ret_endpoints, size_t *ret_count)
{
    const char **endpoints =
        calloc(1 + config->connect_count, sizeof *endpoints);
    if (!endpoints) return TD_ERR_NOMEM;
    size_t count = 0;
    if (config->mode == TD_CONFIG_CLIENT) endpoints[count++] = config->endpoint;
    for (size_t i = 0; i < config->connect_count; i++)
        endpoints[count++] = config->connect[i];
    *ret_endpoints = endpoints;
    *ret_count = count;
    return TD_OK;
}

static td_err open_net(const td_config_model *config,
                       const char *const *connect, size_t count,
                       td_net **ret_net, td_errinfo *info)
{
    static const td_net_zenoh_mode modes[] = {
        [TD_CONFIG_PEER] = TD_NET_ZENOH_PEER,
        [TD_CONFIG_CLIENT] = TD_NET_ZENOH_CLIENT,
        [TD_CONFIG_ROUTER] = TD_NET_ZENOH_ROUTER,
    };
    td_net_zenoh_config net = {
        .mode = modes[config->mode],
        .listen = &config->endpoint,
        .listen_count = config->mode == TD_CONFIG_CLIENT ? 0 : 1,
        .connect = connect,
        .connect_count = count,
        .shared_memory = config->shared_memory,
    };
    td_errinfo why = {.text = ""};
    td_err err = td_net_zenoh_open(&net, ret_net, &why);
    if (err == TD_OK) return TD_OK;
    return td_fail(info, err, "server %s: %s: %s%s", config->server_id,
                   config->endpoint, why.text,
                   err == TD_ERR_EXISTS ? "; stop whoever listens there, or "
                                          "choose another endpoint"
                                        : "");
}

static td_err dial(const td_config_model *config, td_server_entry *entry,
                   td_errinfo *info)
{
    const char **endpoints;
    size_t count;
    TD_TRY(endpoints_of(config, &endpoints, &count));
    td_err err = open_net(config, endpoints, count, &entry->net, info);
    if (err == TD_OK)
        err = td_server_link_watch(entry->net, endpoints, count, &entry->links,
                                   info);
    free(endpoints);
    return err;
}

static td_err share_net(td_server_process *process, size_t index,
                        td_errinfo *info)
{
    const td_config_model *all = process->manifest->models;
    td_server_entry *entry = &process->entries[index];
    entry->net = process->extras->net;
    for (size_t i = 0; i < index && !entry->net; i++) {
        if (strcmp(all[i].endpoint, all[index].endpoint) != 0) continue;
        entry->net = process->entries[i].net;
    }
    if (entry->net) return TD_OK;
    entry->owns_net = true;
    return dial(&all[index], entry, info);
}

static td_err share_device(td_server_process *process, size_t index,
                           td_errinfo *info)
{
    const td_config_model *all = process->manifest->models;
    td_server_entry *entry = &process->entries[index];
    for (size_t i = 0; i < index; i++) {
        if (strcmp(all[i].device, all[index].device) != 0) continue;
        entry->device = process->entries[i].device;
        return TD_OK;
    }
    td_server_device_settings settings;
    td_server_settings_device(process->manifest, &process->policy.scheduling,
                              all[index].device, &process->policy.sched,
                              &settings);
    entry->owns_device = true;
    return td_server_device_open(&settings, &entry->device, info);
}

// A robot that plays one chunk while the next is made then runs dry.
static void say_slow(const td_config_model *config, const td_engine_spec *spec,
                     int64_t took_ns)
{
    int64_t lasts_ns = td_engine_probe_lasts(spec);
    if (lasts_ns == 0 || took_ns <= lasts_ns) return;
    td_log_text(
        TD_LOG_WARN,
        "serve: %s: the first chunk of %s took %.3g s, and a robot plays "
        "it in %.3g s: if the next ones take as long, it will wait",
        config->server_id, config->model_id, (double)took_ns / TD_NS_PER_S,
        (double)lasts_ns / TD_NS_PER_S);
}

static td_err open_engine(const td_server_process *process,
                          const td_config_model *config, td_server_entry *entry,
                          td_errinfo *info)
{
    td_errinfo why = {.text = ""};
    const td_server_engine_function *function =
        td_server_process_find_function(process->extras, config->model_id);
    TD_TRY(td_server_engines_open(config, function, &entry->engine, info));
    int64_t took_ns = 0;
    td_err err = td_engine_probe_warm_up(entry->engine, &took_ns, &why);
    if (err != TD_OK)
        return td_fail(info, err, "server %s: %s", config->server_id, why.text);
    say_slow(config, entry->engine->ops->spec(entry->engine), took_ns);
    return TD_OK;
}

static void say_opened(const td_config_model *config)
{
    td_log_text(
        TD_LOG_INFO, "serve: %s: %s/%s for %s at %s, %zu clients listed",
        config->server_id, config->model_id, config->model_version,
        config->application_tag, config->endpoint, config->client_count);
    if (config->engine.kind == TD_CONFIG_SYNTHETIC &&
        config->pretrained_path[0])
        td_log_text(TD_LOG_INFO,
                    "serve: %s: the synthetic engine loads no weights: "
                    "pretrained_path is unused",
                    config->server_id);
}

static td_err open_model(td_server_process *process, size_t index,
                         td_errinfo *info)
{
    const td_config_model *config = &process->manifest->models[index];
    td_server_entry *entry = &process->entries[index];
    td_server_model_config server;
    TD_TRY(share_device(process, index, info));
    TD_TRY(open_engine(process, config, entry, info));
    TD_TRY(td_server_settings_from(process->manifest, config, process->boot,
                                   &server, &entry->clients));
    server.device = entry->device;
    server.events = process->events;
    if (process->stream)
        server.tap = td_server_stream_tap(process->stream, index);
    td_server_loading_close(TD_TAKE(entry->loading));
    server.bad_queries = entry->loading_counts.bad_queries;
    server.events_dropped = entry->loading_counts.dropped;
    TD_TRY(td_server_model_open(entry->net, entry->engine, &server,
                                &entry->model, info));
    td_server_process_show_model(process, index, entry->model);
    say_opened(config);
    return TD_OK;
}

static td_err refuse_duplicate(const td_server_process *process, size_t index,
                               td_errinfo *info)
{
    const td_config_manifest *manifest = process->manifest;
    const td_config_model *config = &manifest->models[index];
    const td_wire_route route = td_server_settings_route(manifest, config);
    return td_server_duplicate_refuse(process->entries[index].net, &route,
                                      config->server_id, DUPLICATE_PATIENCE_NS,
                                      info);
}

static td_err open_loading(td_server_process *process, size_t index,
                           td_errinfo *info)
{
    const td_config_model *config = &process->manifest->models[index];
    td_server_entry *entry = &process->entries[index];
    const td_server_loading_config loading = {
        .route = td_server_settings_route(process->manifest, config),
        .server_id = config->server_id,
        .boot = process->boot,
        .capacity = (uint32_t)config->capacity,
        .counts = &entry->loading_counts,
    };
    return td_server_loading_open(entry->net, &loading, &entry->loading, info);
}

static bool is_stopping(const td_server_process *process)
{
    const td_server_extras *extras = process->extras;
    return extras->is_stopping && extras->is_stopping(extras->user);
}

// Nobody is taken before all of it may run.
static td_err open_all(td_server_process *process, td_errinfo *info)
{
    size_t count = process->manifest->model_count;
    for (size_t i = 0; i < count; i++)
        TD_TRY(share_net(process, i, info));
    for (size_t i = 0; i < count; i++)
        TD_TRY(refuse_duplicate(process, i, info));
    TD_TRY(td_server_process_expose(process, info));
    for (size_t i = 0; i < count; i++)
        TD_TRY(open_loading(process, i, info));
    for (size_t i = 0; i < count; i++) {
        TD_TRY(open_model(process, i, info));
        if (is_stopping(process))
            return td_fail(info, TD_ERR_CANCELLED, "stopped while loading");
    }
    return TD_OK;
}

td_err td_server_process_new(td_config_manifest *manifest,
                             const td_server_extras *extras,
                             td_server_process **ret_process)
{
    TD_AUTO(td_server_process) *process = calloc(1, sizeof *process);
    if (!process) {
        td_config_manifest_free(manifest);
        return TD_ERR_NOMEM;
    }
    process->extras = extras;
    process->manifest = process->live = manifest;
    process->boot = (uint64_t)td_clock_wall_ms();
    process->policy.scheduling = manifest->scheduling;
    pthread_mutex_init(&process->shown_lock, NULL);
    size_t count = manifest->model_count;
    process->entries = calloc(count, sizeof *process->entries);
    process->about = calloc(count, sizeof *process->about);
    process->shown = calloc(count, sizeof(td_server_model *));
    if (!process->entries || !process->about || !process->shown)
        return TD_ERR_NOMEM;
    *ret_process = TD_TAKE(process);
    return TD_OK;
}

td_err td_server_process_open(td_server_process *process, td_errinfo *info)
{
    TD_TRY(td_server_process_check_functions(process->manifest, process->extras,
                                             info));
    if (!process->has_policy)
        TD_TRY(td_server_policy_make(&process->policy.scheduling,
                                     (td_server_score_hook){0},
                                     &process->policy, info));
    return open_all(process, info);
}

static bool is_drained(const td_server_process *process)
{
    for (size_t i = 0; i < process->manifest->model_count; i++)
        if (process->entries[i].model &&
            !td_server_model_drained(process->entries[i].model))
            return false;
    return true;
}

bool td_server_process_drain(td_server_process *process, int64_t until_ns)
{
    for (size_t i = 0; i < process->manifest->model_count; i++)
        if (process->entries[i].model)
            td_server_model_drain(process->entries[i].model);
    while (!is_drained(process)) {
        int64_t now_ns = td_clock_monotonic_ns();
        if (now_ns >= until_ns) return false;
        td_clock_sleep_until(now_ns + LOOK_NS);
    }
    return true;
}

static void close_model(const td_config_model *config, td_server_entry *entry)
{
    td_server_model_report report = {0};
    if (entry->loading) td_server_loading_close(entry->loading);
    if (entry->model) {
        td_server_model_report_get(entry->model, &report);
        td_server_model_close(entry->model);
        td_log_text(
            TD_LOG_INFO, "serve: %s: %llu received, %llu answered",
            config->server_id, (unsigned long long)report.counts.received,
            (unsigned long long)report.counts.outcomes[TD_SERVER_ANSWERED]);
    }
    if (entry->engine) td_engine_close(entry->engine);
    free(entry->clients);
}

static void close_net(td_server_entry *entry)
{
    if (entry->links) td_server_link_end(entry->links);
    if (entry->net && entry->owns_net) td_net_close(entry->net);
}

static void close_entries(td_server_process *process)
{
    size_t count = process->manifest->model_count;
    for (size_t i = 0; i < count; i++) {
        td_server_process_show_model(process, i, NULL);
        close_model(&process->manifest->models[i], &process->entries[i]);
    }
    for (size_t i = 0; i < count; i++)
        if (process->entries[i].owns_device && process->entries[i].device)
            td_server_device_close(process->entries[i].device);
    td_server_policy_done(&process->policy);
    for (size_t i = 0; i < count; i++)
        close_net(&process->entries[i]);
}

void td_server_process_close(td_server_process *process)
{
    if (process->entries && process->shown) close_entries(process);
    td_server_process_unexpose(process);
    if (process->live != process->manifest)
        td_config_manifest_free(process->live);
    td_config_manifest_free(process->manifest);
    pthread_mutex_destroy(&process->shown_lock);
    free(process->entries);
    free(process->about);
    free(process->shown);
    free(process);
}
