// SPDX-License-Identifier: Apache-2.0
// A robot in virtual time that plays a policy over a recorded session.
//
// Whoever uses it gives the frames and asks the policy; this file decides when
// to ask, what is played and which frame comes next, with the deciding core of
// a real robot. One control tick is td_sim_player_tick(); where it asks, the
// caller sends the observation with td_sim_player_send() and gives the answer
// with td_sim_player_answer().
//
// An answer is kept in a list until it is due: every one comes as late as every
// other, so the list is in order of time. When it is due it is given to the
// core as if it had come from a server.
//
// Without a robot's file the settings are plain: it asks when half a chunk is
// left, waits however long the answer takes, and has no limits. With one, the
// file must fit the policy, as it must when a robot attaches to a server.
//
// One thread. Answers that are still on their way when the player is freed go
// with it.
#include "sim/player.h"

#include "base/clock.h"
#include "edge/settings.h"
#include "server/core/answer.h"

#include <stdlib.h>
#include <string.h>

#define SERVER "policy"
#define AGE_NS (24 * 3600 * TD_NS_PER_S) // any
#define MIN_ANSWERS 8                    // answers that come before it begins

// On its way.
typedef struct reply {
    struct reply *next; // sent after it
    int64_t due_ns;
    td_wire_obs obs;
    td_engine_item item;
    float actions[];
} reply;

struct td_sim_player {
    td_edge_core_settings settings;
    td_edge_core *core;
    td_edge_rows *rows;
    td_edge_similar similar;
    float start[TD_WIRE_MAX_CHANNELS];
    int64_t latency_ns;
    int64_t now_ns;   // of the next tick
    int64_t asked_ns; // of the last
    td_edge_step step;
    uint64_t played;  // ticks since it began
    uint64_t arrived; // answers
    reply *first, **last;
};

// Whatever is asked is answered: nothing is given up before that.
static void fill_plain(const td_sim_player_config *config,
                       td_edge_core_settings *settings)
{
    const td_engine_spec *spec = config->spec;
    td_edge_core_settings_plain(spec->action_count, TD_NS_PER_S / config->fps,
                                settings);
    settings->ask.resend_min_ns = settings->ask.resend_max_ns =
        config->latency_ns + TD_NS_PER_S;
    settings->max_action_age_ns = AGE_NS;
    for (uint32_t i = 0; i < spec->action_count; i++)
        settings->kinds[i] = spec->actions[i].kind;
}

// A server of this policy that serves what the robot looks for: which policy
// is shown a session is up to whoever shows it.
static td_err check_policy(const td_edge_profile *profile,
                           const td_engine_spec *spec, td_errinfo *info)
{
    td_wire_status status = {
        .model_id = td_wire_text_of(profile->model_id),
        .model_version = td_wire_text_of(profile->model_version),
        .camera_count = spec->camera_count,
        .action_dim = spec->action_count,
        .max_actions_per_chunk = spec->chunk_rows,
        .action_count = spec->action_count,
        .state_count = spec->state_count,
        .step_period_us = profile->step_period_us,
    };
    memcpy(status.cameras, spec->cameras, sizeof status.cameras);
    memcpy(status.actions, spec->actions, sizeof status.actions);
    memcpy(status.states, spec->states, sizeof status.states);
    return td_edge_check_server(profile, &status, info);
}

static td_err check_rate(const td_sim_player_config *config, td_errinfo *info)
{
    if (config->robot->fps == config->fps) return TD_OK;
    return td_fail(info, TD_ERR_MISMATCH,
                   "fps: this robot has %lld, the session %u",
                   (long long)config->robot->fps, config->fps);
}

static td_err use_robot(td_sim_player *player,
                        const td_sim_player_config *config, td_errinfo *info)
{
    TD_TRY(check_rate(config, info));
    td_edge_config *edge = malloc(sizeof *edge);
    if (!edge) return TD_ERR_NOMEM;
    td_edge_settings_from(config->robot, 1, edge);
    player->settings = edge->core;
    td_err err = check_policy(&edge->profile, config->spec, info);
    if (err == TD_OK)
        err = td_edge_similar_init(&player->similar, &edge->similar);
    free(edge);
    return err;
}

td_err td_sim_player_new(const td_sim_player_config *config,
                         td_sim_player **ret_player, td_errinfo *info)
{
    TD_AUTO(td_sim_player) *player = calloc(1, sizeof *player);
    if (!player) return TD_ERR_NOMEM;
    uint32_t channels = config->spec->action_count;
    player->last = &player->first;
    player->latency_ns = config->latency_ns;
    memcpy(player->start, config->start, channels * sizeof(float));
    if (config->robot)
        TD_TRY(use_robot(player, config, info));
    else
        fill_plain(config, &player->settings);
    TD_TRY(td_edge_core_new(&player->settings, &player->core, info));
    TD_TRY(td_edge_rows_new(channels, channels, player->settings.substeps,
                            &player->rows));
    td_edge_core_connected(player->core);
    *ret_player = TD_TAKE(player);
    return TD_OK;
}

static reply *take_reply(td_sim_player *player)
{
    reply *first = player->first;
    player->first = first->next;
    if (!player->first) player->last = &player->first;
    return first;
}

void td_sim_player_free(td_sim_player *player)
{
    while (player->first)
        free(take_reply(player));
    if (player->rows) td_edge_rows_free(player->rows);
    if (player->core) td_edge_core_free(player->core);
    free(player);
}

uint64_t td_sim_player_frame(const td_sim_player *player)
{
    return player->played / player->settings.substeps;
}

// A robot that has begun goes on, whatever comes.
static td_err check_begins(const td_sim_player *player,
                           const td_edge_answer *answer, td_errinfo *info)
{
    if (player->played > 0 || answer->outcome == TD_EDGE_MERGED ||
        player->arrived < MIN_ANSWERS)
        return TD_OK;
    return td_fail(info, TD_ERR_INVALID,
                   "the robot never begins: %d answers came, the last was %s%s",
                   MIN_ANSWERS, td_edge_outcome_name(answer->outcome),
                   answer->outcome == TD_EDGE_TOO_OLD
                       ? "; give it a larger max_action_age_s, or less latency"
                       : "");
}

static td_err take_answer(td_sim_player *player, td_errinfo *info)
{
    const td_server_timing at_once = {0};
    td_wire_action action;
    td_edge_answer answer;
    reply *came = take_reply(player);
    td_server_answer(SERVER, &came->item, player->settings.channels, &at_once,
                     came->obs.ident.seq, &action);
    td_err err = td_edge_core_answer(player->core, came->due_ns, SERVER,
                                     &action, &answer);
    free(came);
    player->arrived++;
    return err == TD_OK ? check_begins(player, &answer, info) : err;
}

static td_edge_sent sent_now(const td_sim_player *player)
{
    return (td_edge_sent){
        .seq = player->step.seq,
        .episode = td_edge_core_episode(player->core),
        .cursor = td_edge_core_cursor(player->core),
        .captured_ns = player->asked_ns,
        .put_ns = player->asked_ns,
        .again = player->step.again,
    };
}

static void note_row(td_sim_player *player, td_sim_played *played)
{
    const td_edge_rows_tick tick = {
        .now_ns = player->asked_ns,
        .episode = td_edge_core_episode(player->core),
        .state = player->start,
        .step = &player->step,
    };
    played->row = td_edge_rows_add(player->rows, &tick);
    if (played->row)
        played->command = played->row->values + player->settings.channels;
    if (player->step.command) player->played++;
}

// No answer gets lost here: who asks for one again has it when it comes.
static void note_ask(td_sim_player *player, td_sim_played *played)
{
    if (!player->step.ask) return;
    const td_edge_sent sent = sent_now(player);
    if (sent.again > 0 && td_edge_core_sent(player->core, &sent)) return;
    played->asks = true;
    played->ident = (td_wire_ident){
        player->settings.boot, player->settings.route, sent.episode, sent.seq};
}

td_err td_sim_player_tick(td_sim_player *player, td_sim_played *ret_played,
                          td_errinfo *info)
{
    while (player->first && player->first->due_ns <= player->now_ns)
        TD_TRY(take_answer(player, info));
    const td_edge_core_input seen = {
        .now_ns = player->now_ns,
        .connection = 1,
        .reading = player->start,
        .read_ns = player->now_ns,
    };
    player->step = td_edge_core_tick(player->core, &seen);
    player->asked_ns = player->now_ns;
    player->now_ns += player->settings.period_ns / player->settings.substeps;
    *ret_played = (td_sim_played){0};
    note_row(player, ret_played);
    note_ask(player, ret_played);
    return TD_OK;
}

static bool is_similar(td_sim_player *player, const td_wire_obs *obs)
{
    td_edge_similar_image images[TD_WIRE_MAX_IMAGES];
    if (!player->similar.settings.on) return false;
    for (uint32_t i = 0; i < obs->image_count; i++)
        images[i] = (td_edge_similar_image){obs->images[i].data,
                                            obs->images[i].shape[0],
                                            obs->images[i].shape[1]};
    return td_edge_similar_check(&player->similar, obs->state.data,
                                 obs->state.shape[0], images, obs->image_count,
                                 player->step.must_go);
}

bool td_sim_player_send(td_sim_player *player, const td_wire_obs *obs)
{
    const td_edge_sent sent = sent_now(player);
    if (is_similar(player, obs)) {
        td_edge_core_skipped(player->core, sent.seq, TD_EDGE_SKIP_SIMILAR);
        return false;
    }
    if (!td_edge_core_sent(player->core, &sent)) return false;
    td_edge_similar_note_sent(&player->similar);
    return true;
}

td_err td_sim_player_answer(td_sim_player *player, const td_engine_item *answer)
{
    size_t bytes =
        (size_t)answer->rows * player->settings.channels * sizeof(float);
    reply *sent = malloc(sizeof *sent + bytes);
    if (!sent) return TD_ERR_NOMEM;
    *sent = (reply){.due_ns = player->asked_ns + player->latency_ns,
                    .obs = *answer->obs,
                    .item = *answer};
    memcpy(sent->actions, answer->actions, bytes);
    sent->item.obs = &sent->obs;
    sent->item.actions = sent->actions;
    *player->last = sent;
    player->last = &sent->next;
    return TD_OK;
}
