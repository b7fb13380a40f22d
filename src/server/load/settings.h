// SPDX-License-Identifier: Apache-2.0
#ifndef TD_SERVER_LOAD_SETTINGS_H
#define TD_SERVER_LOAD_SETTINGS_H

// From a manifest to what engines and servers are opened with.

#include "config/manifest/manifest.h"
#include "server/dispatch/plugin.h"
#include "server/model.h"
#include "tendon/infer.h"

#include <limits.h>

// What runs a model with a callback engine.
typedef struct td_server_engine_function {
    td_infer_function infer;
    void *user;
} td_server_engine_function;

// Where the model's weights are: of native, a folder, in the hub's local cache
// perhaps. NOTFOUND, LIMIT.
TD_NODISCARD td_err td_server_engines_checkpoint(const td_config_model *config,
                                                 char ret_path[PATH_MAX],
                                                 td_errinfo *info);

// Opens the engine that the manifest names for this server, loaded; `function`
// is for a callback engine, NULL: there is none. Owned by the caller, and
// closed before the manifest is freed. Blocks. INVALID for a callback engine
// without one.
TD_NODISCARD td_err td_server_engines_open(
    const td_config_model *config, const td_server_engine_function *function,
    td_engine **ret_engine, td_errinfo *info);

// How every device decides. The plug-in, if there is one, is opened: owned by
// the caller, and closed after the last device that uses the policy. With
// "manifest.yaml:5: scheduling.score: what is wrong"; FORMAT, LIMIT and what
// td_server_plugin_open() returns.
TD_NODISCARD td_err td_server_settings_policy(
    const td_config_scheduling *config, td_sched_policy *ret_policy,
    td_server_plugin **ret_plugin, td_errinfo *info);

// With room for the servers of the manifest that share the device.
void td_server_settings_device(const td_config_manifest *manifest,
                               const td_config_scheduling *scheduling,
                               const char *device,
                               const td_sched_policy *policy,
                               td_server_device_settings *ret_settings);

// Whose texts are the manifest's.
td_wire_route td_server_settings_route(const td_config_manifest *manifest,
                                       const td_config_model *config);

// The list of clients, ids and all, is owned by the caller, free(); all else is
// borrowed from the manifest. NOMEM.
TD_NODISCARD td_err td_server_settings_from(const td_config_manifest *manifest,
                                            const td_config_model *config,
                                            uint64_t boot,
                                            td_server_model_config *ret_config,
                                            td_server_allowance **ret_clients);

#endif
