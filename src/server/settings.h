// SPDX-License-Identifier: Apache-2.0
#ifndef TD_SERVER_SETTINGS_H
#define TD_SERVER_SETTINGS_H

// From a manifest to what engines and servers are opened with.

#include "config/manifest.h"
#include "server/server.h"

// Opens the engine that the manifest names for this server, loaded and warm.
// Owned by the caller. Blocks.
TD_NODISCARD td_err td_server_settings_engine(const td_config_server *config,
                                              td_engine **ret_engine,
                                              td_errinfo *info);

// The list of clients is owned by the caller, free(); all else is borrowed from
// the manifest.
TD_NODISCARD td_err td_server_settings_from(const td_config_manifest *manifest,
                                            const td_config_server *config,
                                            uint64_t boot,
                                            td_server_config *ret_config,
                                            td_server_client **ret_clients);

#endif
