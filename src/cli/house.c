// SPDX-License-Identifier: Apache-2.0
// Closed in the order: servers, engines, devices, the plug-in whose function
// they called, sessions.
#include "cli/house.h"

#include "base/clock.h"
#include "cli/cli.h"
#include "cli/link.h"
#include "engine/warmup.h"
#include "net/zenoh/zenoh.h"
#include "server/second.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SECOND_PATIENCE_NS (3 * TD_NS_PER_S)
#define LOOK_NS (20 * TD_NS_PER_MS)

static uint64_t wall_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static td_err open_net(const td_config_server *config, td_net **ret_net,
                       td_errinfo *info)
{
    static const td_net_zenoh_mode modes[] = {
        [TD_CONFIG_PEER] = TD_NET_ZENOH_PEER,
        [TD_CONFIG_CLIENT] = TD_NET_ZENOH_CLIENT,
        [TD_CONFIG_ROUTER] = TD_NET_ZENOH_ROUTER,
    };
    bool dials = config->mode == TD_CONFIG_CLIENT;
    const char **connect = calloc(1 + config->connect_count, sizeof *connect);
    if (!connect) return TD_ERR_NOMEM;
    size_t count = 0;
    if (dials) connect[count++] = config->endpoint;
    for (size_t i = 0; i < config->connect_count; i++)
        connect[count++] = config->connect[i];
    td_net_zenoh_config net = {
        .mode = modes[config->mode],
        .listen = &config->endpoint,
        .listen_count = dials ? 0 : 1,
        .connect = connect,
        .connect_count = count,
        .shared_memory = config->shared_memory,
    };
    td_errinfo why = {.text = ""};
    td_err err = td_net_zenoh_open(&net, ret_net, &why);
    free(connect);
    if (err == TD_OK) return TD_OK;
    return td_fail(info, err, "server %s: %s: %s%s", config->server_id,
                   config->endpoint, why.text,
                   err == TD_ERR_EXISTS ? "; stop whoever listens there, or "
                                          "choose another endpoint"
                                        : "");
}

static td_err share_net(td_cli_house *house, size_t index, td_errinfo *info)
{
    const td_config_server *all = house->manifest->server;
    td_cli_entry *entry = &house->entries[index];
    for (size_t i = 0; i < index; i++) {
        if (strcmp(all[i].endpoint, all[index].endpoint) != 0) continue;
        entry->net = house->entries[i].net;
        return TD_OK;
    }
    entry->owns_net = true;
    TD_TRY(open_net(&all[index], &entry->net, info));
    bool dials = all[index].mode == TD_CONFIG_CLIENT;
    return td_cli_link_watch(entry->net, dials ? all[index].endpoint : NULL,
                             &entry->links, info);
}

static td_err share_device(td_cli_house *house, size_t index,
                           const td_sched_policy *policy, td_errinfo *info)
{
    const td_config_server *all = house->manifest->server;
    td_cli_entry *entry = &house->entries[index];
    for (size_t i = 0; i < index; i++) {
        if (strcmp(all[i].device, all[index].device) != 0) continue;
        entry->device = house->entries[i].device;
        return TD_OK;
    }
    td_server_device_settings settings;
    td_server_settings_device(house->manifest, all[index].device, policy,
                              &settings);
    entry->owns_device = true;
    return td_server_device_open(&settings, &entry->device, info);
}

static td_err open_engine(const td_config_server *config, td_cli_entry *entry,
                          td_errinfo *info)
{
    td_errinfo why = {.text = ""};
    TD_TRY(td_server_engines_open(config, &entry->engine, info));
    td_err err = td_engine_warmup(entry->engine, &why);
    if (err == TD_OK) return TD_OK;
    return td_fail(info, err, "server %s: %s", config->server_id, why.text);
}

static void say_opened(const td_config_server *config)
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

static td_err open_server(td_cli_house *house, size_t index,
                          const td_sched_policy *policy, td_errinfo *info)
{
    const td_config_server *config = &house->manifest->server[index];
    td_cli_entry *entry = &house->entries[index];
    td_server_config server;
    TD_TRY(share_device(house, index, policy, info));
    TD_TRY(open_engine(config, entry, info));
    TD_TRY(td_server_settings_from(house->manifest, config, house->boot,
                                   &server, &entry->clients));
    server.device = entry->device;
    server.events = house->events;
    td_server_porch_close(TD_TAKE(entry->porch));
    TD_TRY(td_server_open(entry->net, entry->engine, &server, &entry->server,
                          info));
    td_cli_house_show(house, index, entry->server);
    say_opened(config);
    return TD_OK;
}

static td_err refuse_second(const td_cli_house *house, size_t index,
                            td_errinfo *info)
{
    const td_config_manifest *manifest = house->manifest;
    const td_config_server *config = &manifest->server[index];
    const td_wire_route route = td_server_settings_route(manifest, config);
    return td_server_second_refuse(house->entries[index].net, &route,
                                   config->server_id, SECOND_PATIENCE_NS, info);
}

static td_err open_porch(td_cli_house *house, size_t index, td_errinfo *info)
{
    const td_config_server *config = &house->manifest->server[index];
    td_cli_entry *entry = &house->entries[index];
    const td_server_porch_config porch = {
        .route = td_server_settings_route(house->manifest, config),
        .server_id = config->server_id,
        .boot = house->boot,
        .capacity = (uint32_t)config->capacity,
    };
    return td_server_porch_open(entry->net, &porch, &entry->porch, info);
}

// Nobody is taken before all of it may run.
static td_err open_all(td_cli_house *house, const td_sched_policy *policy,
                       td_errinfo *info)
{
    size_t count = house->manifest->server_count;
    for (size_t i = 0; i < count; i++)
        TD_TRY(share_net(house, i, info));
    for (size_t i = 0; i < count; i++)
        TD_TRY(refuse_second(house, i, info));
    TD_TRY(td_cli_house_see(house, info));
    for (size_t i = 0; i < count; i++)
        TD_TRY(open_porch(house, i, info));
    for (size_t i = 0; i < count; i++) {
        TD_TRY(open_server(house, i, policy, info));
        if (td_cli_is_stopping())
            return td_fail(info, TD_ERR_CANCELLED, "stopped while loading");
    }
    return TD_OK;
}

td_err td_cli_house_open(td_cli_house *house, td_config_manifest *manifest,
                         td_errinfo *info)
{
    td_sched_policy policy;
    *house = (td_cli_house){
        .manifest = manifest, .live = manifest, .boot = wall_ms()};
    house->entries = calloc(manifest->server_count, sizeof *house->entries);
    if (!house->entries) return TD_ERR_NOMEM;
    TD_TRY(td_server_settings_policy(&manifest->scheduling, &policy,
                                     &house->plugin, info));
    return open_all(house, &policy, info);
}

static bool is_drained(const td_cli_house *house)
{
    for (size_t i = 0; i < house->manifest->server_count; i++)
        if (!td_server_drained(house->entries[i].server)) return false;
    return true;
}

void td_cli_house_drain(td_cli_house *house)
{
    for (size_t i = 0; i < house->manifest->server_count; i++)
        td_server_drain(house->entries[i].server);
    while (!is_drained(house))
        td_clock_sleep_until(td_clock_now_ns(&td_clock_monotonic) + LOOK_NS);
}

static void close_server(const td_config_server *config, td_cli_entry *entry)
{
    td_server_report report = {0};
    if (entry->porch) td_server_porch_close(entry->porch);
    if (entry->server) {
        td_server_report_get(entry->server, &report);
        td_server_close(entry->server);
        td_log_text(
            TD_LOG_INFO, "serve: %s: %llu received, %llu answered",
            config->server_id, (unsigned long long)report.counts.received,
            (unsigned long long)report.counts.outcomes[TD_SERVER_ANSWERED]);
    }
    if (entry->engine) td_engine_close(entry->engine);
    free(entry->clients);
}

static void close_net(td_cli_entry *entry)
{
    if (entry->links) (void)td_net_undeclare(entry->links);
    if (entry->net && entry->owns_net) td_net_close(entry->net);
}

static void close_entries(td_cli_house *house)
{
    size_t count = house->manifest->server_count;
    for (size_t i = 0; i < count; i++) {
        td_cli_house_show(house, i, NULL);
        close_server(&house->manifest->server[i], &house->entries[i]);
    }
    for (size_t i = 0; i < count; i++)
        if (house->entries[i].owns_device && house->entries[i].device)
            td_server_device_close(house->entries[i].device);
    if (house->plugin) td_server_plugin_close(house->plugin);
    for (size_t i = 0; i < count; i++)
        close_net(&house->entries[i]);
    free(house->entries);
}

void td_cli_house_close(td_cli_house *house)
{
    if (house->entries) close_entries(house);
    td_cli_house_unsee(house);
    if (house->live != house->manifest) td_config_manifest_free(house->live);
    td_config_manifest_free(house->manifest);
}
