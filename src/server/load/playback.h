// SPDX-License-Identifier: Apache-2.0
#ifndef TD_SERVER_LOAD_PLAYBACK_H
#define TD_SERVER_LOAD_PLAYBACK_H

// A profile as a synthetic engine plays it back: for each batch size the same
// times that the planner sees.

#include "base/err.h"
#include "config/manifest/engine.h"
#include "engine/synthetic/latency.h"

#define TD_SERVER_PLAYBACK_SAMPLES 200

typedef struct td_server_playback {
    td_engine_latency_size sizes[TD_CONFIG_MAX_BATCH];
    size_t size_count;
    double ms[TD_CONFIG_MAX_BATCH][TD_SERVER_PLAYBACK_SAMPLES];
} td_server_playback;

// Reads the profile of the engine's latency. Owned by the caller. Blocks on the
// file. As td_config_profile_load(); MISMATCH for a language model on an engine
// that is not continuous, and the other way round.
TD_NODISCARD td_err td_server_playback_open(const td_config_engine *engine,
                                            td_server_playback **ret_playback,
                                            td_errinfo *info);
void td_server_playback_free(td_server_playback *playback);
TD_AUTO_FREE(td_server_playback, td_server_playback_free)

#endif
