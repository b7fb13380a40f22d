// SPDX-License-Identifier: Apache-2.0
#ifndef TD_CLI_PROFILE_IDENTITY_H
#define TD_CLI_PROFILE_IDENTITY_H

// What a profile is of: which model, by which program, on which GPU.

#include "cli/gpu.h"
#include "config/manifest/model.h"

#define TD_CLI_PROFILE_HASH 80

typedef struct td_cli_profile_identity {
    char model_hash[TD_CLI_PROFILE_HASH]; // "sha256:..."; empty: not known
    char engine_hash[TD_CLI_PROFILE_HASH];
    td_cli_gpu gpu; // as it was before the model was loaded
    bool on_gpu;
    double resident_gb; // of this process, likewise
} td_cli_profile_identity;

// Reads the model's files and the engine's program. `gpu` is what the user
// calls it, or NULL. Blocks, for as long as the files are long. NOTFOUND when
// nobody says which GPU it is, IO.
TD_NODISCARD td_err td_cli_profile_identity_find(
    const td_config_model *model, const char *gpu,
    td_cli_profile_identity *ret_identity, td_errinfo *info);

// What the loaded model takes: of the GPU; else of memory, of the process `pid`
// or, without one, of this one since it was looked at. 0: not known.
double
td_cli_profile_identity_memory_gb(const td_config_model *model,
                                  const td_cli_profile_identity *identity,
                                  int pid);

// Memory of a process that is resident, its mapped weights too. 0: not known.
double td_cli_profile_resident_gb(int pid);

#endif
