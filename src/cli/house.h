// SPDX-License-Identifier: Apache-2.0
#ifndef TD_CLI_HOUSE_H
#define TD_CLI_HOUSE_H

// Everything that a manifest asks for, at work: sessions, devices, engines and
// servers. One thread only.

#include "server/admin.h"
#include "server/porch.h"
#include "server/settings.h"

// One entry of the manifest at work.
typedef struct td_cli_entry {
    td_net *net; // the first entry's with this endpoint
    bool owns_net;
    td_net_decl *links;
    td_server_device *device; // the first entry's with this name
    bool owns_device;
    td_server_porch *porch; // while the engine is loaded
    td_engine *engine;
    td_server *server;
    td_server_client *clients;
} td_cli_entry;

typedef struct td_cli_house {
    td_config_manifest *manifest; // that it was started with
    td_config_manifest *live;     // whose live fields it goes by; may be the
                                  // same
    td_cli_entry *entries;        // one for each server of the manifest
    uint64_t boot;
    td_server_plugin *plugin; // of the policy; NULL: none
    td_server_events *events;
    td_server_admin *admin; // NULL: not asked for
    td_server_about *about; // one for each entry
} td_cli_house;

// Loads every model, warms it up and opens its doors; until then its status
// says that it is warming. The manifest is consumed, on failure too. EXISTS if
// one of the servers runs already; CANCELLED if a signal came first. Close it
// in any case.
TD_NODISCARD td_err td_cli_house_open(td_cli_house *house,
                                      td_config_manifest *manifest,
                                      td_errinfo *info);

// Takes nobody and nothing more, and waits until what waits and runs has been
// answered. Blocks.
void td_cli_house_drain(td_cli_house *house);

// Says what each server has done, and frees all.
void td_cli_house_close(td_cli_house *house);

// reload.c: takes on what can change of the manifest at `path`, and says of
// each difference whether it was. A broken one changes nothing. Blocks.
void td_cli_house_reload(td_cli_house *house, const char *path);

// see.c: how all of it is seen. Opened before the models, so that it shows that
// they load; closed after their servers.
TD_NODISCARD td_err td_cli_house_see(td_cli_house *house, td_errinfo *info);
void td_cli_house_unsee(td_cli_house *house);
// The entry's server is there; NULL: about to be closed.
void td_cli_house_show(td_cli_house *house, size_t index, td_server *server);

#endif
