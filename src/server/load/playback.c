// SPDX-License-Identifier: Apache-2.0
#include "server/load/playback.h"

#include "config/factory/profile.h"

#include <stdlib.h>

static td_err check_kind(const td_config_profile *profile,
                         const td_config_engine *engine, td_errinfo *info)
{
    bool continuous = td_config_profile_continuous(profile);
    if (continuous == engine->continuous) return TD_OK;
    return td_fail(info, TD_ERR_MISMATCH,
                   "%.200s: is of a model that runs %s; the engine must have "
                   "`continuous: %s`",
                   profile->file,
                   continuous ? "what joins it at once" : "one batch at a time",
                   continuous ? "true" : "false");
}

static void fill_size(const td_config_profile *profile, uint32_t n,
                      td_server_playback *playback)
{
    double *ms = playback->ms[n - 1];
    for (size_t i = 0; i < TD_SERVER_PLAYBACK_SAMPLES; i++)
        ms[i] = td_config_profile_quantile_ms(
            profile, n, ((double)i + 0.5) / TD_SERVER_PLAYBACK_SAMPLES);
    playback->sizes[n - 1] =
        (td_engine_latency_size){n, ms, TD_SERVER_PLAYBACK_SAMPLES};
}

td_err td_server_playback_open(const td_config_engine *engine,
                               td_server_playback **ret_playback,
                               td_errinfo *info)
{
    TD_AUTO(td_config_profile) *profile = NULL;
    TD_TRY(td_config_profile_load(engine->latency.file, &profile, info));
    TD_TRY(check_kind(profile, engine, info));
    td_server_playback *playback = calloc(1, sizeof *playback);
    if (!playback) return TD_ERR_NOMEM;
    playback->size_count = td_config_profile_max_batch(profile);
    for (uint32_t n = 1; n <= playback->size_count; n++)
        fill_size(profile, n, playback);
    *ret_playback = playback;
    return TD_OK;
}

void td_server_playback_free(td_server_playback *playback)
{
    free(playback);
}
