// SPDX-License-Identifier: Apache-2.0
#include "cli/dataset/play.h"

#include "base/clock.h"
#include "edge/core.h"
#include "server/answer.h"

#include <stdlib.h>

#define SERVER "policy"
#define AGE_NS (24 * 3600 * TD_NS_PER_S) // any

struct td_cli_play {
    td_edge_settings settings;
    td_edge_core *core;
    int64_t latency_ns;
    int64_t now_ns;               // of the next tick
    const td_engine_item *coming; // NULL: nothing is
    int64_t due_ns;
    td_err err; // the first
};

// Whatever is asked is answered: nothing is given up before that.
static void fill_settings(const td_engine_spec *spec, uint32_t fps,
                          int64_t latency_ns, td_edge_settings *settings)
{
    td_edge_settings_plain(spec->action_count, TD_NS_PER_S / fps, settings);
    settings->ask.resend_min_ns = settings->ask.resend_max_ns =
        latency_ns + TD_NS_PER_S;
    settings->max_action_age_ns = AGE_NS;
    for (uint32_t i = 0; i < spec->action_count; i++)
        settings->kinds[i] = spec->actions[i].kind;
}

td_err td_cli_play_new(const td_engine_spec *spec, uint32_t fps,
                       int64_t latency_ns, td_cli_play **ret_play,
                       td_errinfo *info)
{
    TD_AUTO(td_cli_play) *play = calloc(1, sizeof *play);
    if (!play) return TD_ERR_NOMEM;
    play->latency_ns = latency_ns;
    fill_settings(spec, fps, latency_ns, &play->settings);
    TD_TRY(td_edge_core_new(&play->settings, &play->core, info));
    td_edge_core_connected(play->core);
    *ret_play = TD_TAKE(play);
    return TD_OK;
}

void td_cli_play_free(td_cli_play *play)
{
    if (play->core) td_edge_core_free(play->core);
    free(play);
}

static void take_answer(td_cli_play *play)
{
    const td_server_timing at_once = {0};
    td_wire_action action;
    td_edge_answer answer;
    if (!play->coming || play->due_ns > play->now_ns) return;
    const td_engine_item *item = TD_TAKE(play->coming);
    td_server_answer(SERVER, item, play->settings.channels, &at_once,
                     item->obs->ident.seq, &action);
    td_err err =
        td_edge_core_answer(play->core, play->due_ns, SERVER, &action, &answer);
    if (play->err == TD_OK) play->err = err;
}

void td_cli_play_tick(td_cli_play *play, const float *reading,
                      td_cli_played *ret_played)
{
    take_answer(play);
    const td_edge_seen seen = {
        .now_ns = play->now_ns,
        .connection = 1,
        .reading = reading,
        .read_ns = play->now_ns,
    };
    td_edge_step step = td_edge_core_tick(play->core, &seen);
    *ret_played = (td_cli_played){
        .command = step.command,
        .fresh = step.fresh,
        .asks = step.ask,
        .ident = {play->settings.boot, play->settings.route,
                  td_edge_core_episode(play->core), step.seq},
    };
    play->now_ns += play->settings.period_ns;
    if (!step.ask) return;
    const td_edge_sent sent = {
        .seq = step.seq,
        .episode = ret_played->ident.episode,
        .cursor = td_edge_core_cursor(play->core),
        .captured_ns = seen.now_ns,
        .put_ns = seen.now_ns,
    };
    ret_played->asks = td_edge_core_sent(play->core, &sent);
}

void td_cli_play_answer(td_cli_play *play, const td_engine_item *answer)
{
    int64_t asked_ns = play->now_ns - play->settings.period_ns;
    play->coming = answer;
    play->due_ns = asked_ns > 0 ? asked_ns + play->latency_ns : 0;
}

td_err td_cli_play_error(const td_cli_play *play)
{
    return play->err;
}
