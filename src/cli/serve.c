// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"
#include "cli/cli.h"
#include "cli/link.h"
#include "engine/engine.h"
#include "net/zenoh/zenoh.h"
#include "server/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char help[] =
    "usage: tendon serve MANIFEST.yaml [--check] [--log LEVEL]\n"
    "       tendon serve --fields\n"
    "\n"
    "Serves the models of a manifest to the robots listed there, until "
    "Ctrl-C.\n"
    "\n"
    "  --check      only read the manifest and say whether it is right\n"
    "  --log LEVEL  debug, info (default), warn or error\n"
    "  --fields     print the manifest's fields as a table (Markdown)\n"
    "\n"
    "examples:\n"
    "  tendon serve examples/manifest.yaml\n"
    "  tendon serve examples/manifest.yaml --check\n";

// One entry of the manifest at work. Closed in the order: server, link, engine.
struct entry {
    td_engine *engine;
    td_server *server;
    td_server_client *clients;
    td_net *net; // shared by entries with the same endpoint
    bool owns_net;
    td_net_decl *links;
};

struct house {
    td_config_manifest *manifest;
    struct entry *entries;
    uint64_t boot;
};

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
    td_err err = td_net_zenoh_open(&net, ret_net, info);
    free(connect);
    return err;
}

static td_err share_net(struct house *house, size_t index, td_errinfo *info)
{
    const td_config_server *all = house->manifest->server;
    struct entry *entry = &house->entries[index];
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

static td_err open_entry(struct house *house, size_t index, td_errinfo *info)
{
    const td_config_server *config = &house->manifest->server[index];
    struct entry *entry = &house->entries[index];
    td_server_config server;
    TD_TRY(share_net(house, index, info));
    TD_TRY(td_server_settings_engine(config, &entry->engine, info));
    TD_TRY(td_server_settings_from(house->manifest, config, house->boot,
                                   &server, &entry->clients));
    TD_TRY(td_server_open(entry->net, entry->engine, &server, &entry->server,
                          info));
    td_log_text(
        TD_LOG_INFO, "serve: %s: %s/%s for %s at %s, %zu clients listed",
        config->server_id, config->model_id, config->model_version,
        config->application_tag, config->endpoint, config->client_count);
    if (config->pretrained_path[0] || strcmp(config->device, "cpu") != 0)
        td_log_text(TD_LOG_INFO,
                    "serve: %s: the synthetic engine loads no weights and "
                    "needs no device: pretrained_path and device are unused",
                    config->server_id);
    return TD_OK;
}

static void close_entry(const td_config_server *config, struct entry *entry)
{
    td_server_report report = {0};
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

static void close_net(struct entry *entry)
{
    if (entry->links) (void)td_net_undeclare(entry->links);
    if (entry->net && entry->owns_net) td_net_close(entry->net);
}

static td_err open_all(struct house *house, td_errinfo *info)
{
    house->entries =
        calloc(house->manifest->server_count, sizeof *house->entries);
    if (!house->entries) return TD_ERR_NOMEM;
    for (size_t i = 0; i < house->manifest->server_count; i++)
        TD_TRY(open_entry(house, i, info));
    return TD_OK;
}

static void close_all(struct house *house)
{
    size_t count = house->entries ? house->manifest->server_count : 0;
    for (size_t i = 0; i < count; i++)
        close_entry(&house->manifest->server[i], &house->entries[i]);
    for (size_t i = 0; i < count; i++)
        close_net(&house->entries[i]);
    free(house->entries);
}

static uint64_t wall_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static int run(td_config_manifest *manifest, const char *level)
{
    struct house house = {.manifest = manifest, .boot = wall_ms()};
    td_errinfo info = {.text = ""};
    if (!td_cli_start_log("serve", level)) return 2;
    td_cli_keep_stop();
    td_err err = open_all(&house, &info);
    if (err == TD_OK) {
        td_log_text(TD_LOG_INFO, "serve: ready; Ctrl-C stops");
        td_cli_wait_for_stop();
    }
    close_all(&house);
    if (err != TD_OK) return td_cli_fail("serve", err, &info);
    td_log_stop();
    return 0;
}

int td_cli_serve(int argc, char **argv)
{
    td_cli_file file;
    int code;
    if (!td_cli_parse_file(argc, argv, help, &td_config_manifest_table, NULL,
                           &file, &code))
        return code;
    td_errinfo info = {.text = ""};
    TD_AUTO(td_config_manifest) *manifest = NULL;
    td_err err = td_config_manifest_load(file.path, &manifest, &info);
    if (err != TD_OK) return td_cli_fail("serve", err, &info);
    if (!file.check) return run(manifest, file.level);
    (void)printf("%s: %zu server%s, fine\n", file.path, manifest->server_count,
                 manifest->server_count == 1 ? "" : "s");
    return 0;
}
