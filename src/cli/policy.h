// SPDX-License-Identifier: Apache-2.0
#ifndef TD_CLI_POLICY_H
#define TD_CLI_POLICY_H

// The policy that a command is to run in its own process.

#include "config/manifest/manifest.h"

// A manifest's model by its server_id; NULL: its only one. Borrowed. NOTFOUND;
// UNSUPPORTED for a function of another program, which is not here to be run.
TD_NODISCARD td_err td_cli_policy_model(const td_config_manifest *manifest,
                                        const char *id,
                                        const td_config_model **ret_model,
                                        td_errinfo *info);

// The manifest at `path`, or one made for it where it is a checkpoint's folder.
// Owned by the caller. As td_config_manifest_load().
TD_NODISCARD td_err td_cli_policy_manifest(const char *path, const char *device,
                                           td_config_manifest **ret_manifest,
                                           td_errinfo *info);

#endif
