// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"
#include "cli/house.h"

#include <stdlib.h>
#include <string.h>

static void describe(const td_config_manifest *manifest, td_server_about *about)
{
    for (size_t i = 0; i < manifest->server_count; i++) {
        const td_config_server *server = &manifest->server[i];
        about[i] = (td_server_about){
            .server = server->server_id,
            .model = server->model_id,
            .version = server->model_version,
            .application = server->application_tag,
            .device = server->device,
        };
    }
}

td_err td_cli_house_see(td_cli_house *house, td_errinfo *info)
{
    const td_config_manifest *manifest = house->manifest;
    const td_config_admin *admin = &manifest->admin;
    TD_TRY(td_server_events_new(&house->events));
    if (admin->port == 0) return TD_OK;
    house->about = calloc(manifest->server_count, sizeof *house->about);
    if (!house->about) return TD_ERR_NOMEM;
    describe(manifest, house->about);
    const td_server_admin_config config = {
        .address = admin->address,
        .port = (uint16_t)admin->port,
        .models = house->about,
        .model_count = manifest->server_count,
        .events = house->events,
    };
    td_err err = td_server_admin_open(&config, &house->admin, info);
    if (err == TD_ERR_EXISTS) return TD_ERR_BUSY; // it is no server of ours
    if (err != TD_OK) return err;
    bool colons = strchr(admin->address, ':');
    td_log_text(TD_LOG_INFO, "serve: numbers at http://%s%s%s:%u",
                colons ? "[" : "", admin->address, colons ? "]" : "",
                td_server_admin_port(house->admin));
    return TD_OK;
}

void td_cli_house_show(td_cli_house *house, size_t index, td_server *server)
{
    if (house->admin) td_server_admin_show(house->admin, index, server);
}

void td_cli_house_unsee(td_cli_house *house)
{
    if (house->admin) td_server_admin_close(house->admin);
    free(house->about);
    if (house->events) td_server_events_free(house->events);
}
