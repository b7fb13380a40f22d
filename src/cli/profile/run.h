// SPDX-License-Identifier: Apache-2.0
#ifndef TD_CLI_PROFILE_RUN_H
#define TD_CLI_PROFILE_RUN_H

// Measures an engine into a profile, and prints what it finds as it goes.

#include "cli/profile/draft.h"
#include "engine/engine.h"

#define TD_CLI_PROFILE_RATES 10

typedef struct td_cli_profile_plan {
    uint32_t sizes[TD_ENGINE_MAX_BATCH]; // grow
    size_t size_count;
    size_t samples;    // of each batch size
    size_t requests;   // at each rate
    bool accept_noise; // else a size whose times vary too much is refused
} td_cli_profile_plan;

// Blocks for minutes. CANCELLED after Ctrl-C, MISMATCH for a noisy run, IO, or
// what the engine answers; what was measured so far is in the draft.
TD_NODISCARD td_err td_cli_profile_run(const td_cli_profile_plan *plan,
                                       td_engine *engine,
                                       td_cli_profile_draft *draft,
                                       td_errinfo *info);

#endif
