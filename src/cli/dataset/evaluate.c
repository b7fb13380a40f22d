// SPDX-License-Identifier: Apache-2.0
#include "cli/dataset/evaluate.h"

#include "cli/dataset/inference.h"
#include "sim/player.h"

#include <stdlib.h>
#include <string.h>

#define STATE "observation.state"
#define ACTION "action"

typedef struct evaluation {
    const td_cli_evaluate_config *config;
    const td_engine_spec *spec;
    td_cli_evaluate_sums *sums;
    td_cli_inference *inference;
    float *recorded; // of the episode: its frames x actions
} evaluation;

static void evaluation_done(evaluation *self)
{
    free(self->recorded);
    if (self->inference) td_cli_inference_free(self->inference);
}

td_err td_cli_evaluate_sums_init(td_cli_evaluate_sums *sums,
                                 const td_engine_spec *spec)
{
    uint32_t channels = spec->action_count;
    *sums = (td_cli_evaluate_sums){0};
    TD_TRY(td_dataset_compare_init(&sums->chunks, channels, spec->chunk_rows));
    TD_TRY(td_dataset_compare_init(&sums->played, channels, 1));
    for (uint32_t i = 0; i < channels; i++)
        sums->chunks.wraps[i] = sums->played.wraps[i] =
            spec->actions[i].kind == TD_WIRE_ANGLE;
    return TD_OK;
}

void td_cli_evaluate_sums_done(td_cli_evaluate_sums *sums)
{
    td_dataset_compare_done(&sums->chunks);
    td_dataset_compare_done(&sums->played);
}

static td_err load_recorded(evaluation *self, const td_dataset_episode *episode,
                            td_errinfo *info)
{
    uint32_t width = self->spec->action_count;
    td_dataset_reader *reader = self->config->reader;
    td_dataset_reading reading;
    free(self->recorded);
    self->recorded = calloc(episode->length * width, sizeof *self->recorded);
    if (!self->recorded) return TD_ERR_NOMEM;
    for (uint64_t i = 0; i < episode->length; i++) {
        TD_TRY(
            td_dataset_reader_seek(reader, episode->from + i, &reading, info));
        TD_TRY(td_dataset_reader_floats(reader, ACTION, width,
                                        self->recorded + i * width));
    }
    return TD_OK;
}

static void compare_chunk(evaluation *self, const td_engine_item *answer,
                          uint64_t frame, uint64_t length)
{
    uint32_t width = self->spec->action_count;
    self->sums->asked++;
    for (uint32_t i = 0; i < answer->rows && frame + i < length; i++)
        td_dataset_compare_add(&self->sums->chunks, i,
                               self->recorded + (frame + i) * width,
                               answer->actions + (size_t)i * width);
}

static td_err check_stop(const evaluation *self, td_errinfo *info)
{
    return self->config->stop() ? td_fail(info, TD_ERR_CANCELLED, "stopped")
                                : TD_OK;
}

static td_err ask(evaluation *self, const td_dataset_episode *episode,
                  uint64_t frame, const td_engine_item **ret_answer,
                  td_errinfo *info)
{
    TD_TRY(td_cli_inference_ask(self->inference, ret_answer, info));
    compare_chunk(self, *ret_answer, frame, episode->length);
    return TD_OK;
}

static td_err evaluate_episode(evaluation *self, uint32_t index,
                               const td_dataset_episode *episode,
                               td_errinfo *info)
{
    const td_cli_evaluate_config *config = self->config;
    for (uint64_t i = 0; i < episode->length; i += config->every) {
        const td_wire_ident ident = {.seq = episode->from + i + 1};
        const td_wire_obs *obs;
        const td_engine_item *answer;
        TD_TRY(check_stop(self, info));
        TD_TRY(td_cli_inference_observe(self->inference, episode->from + i,
                                        &ident, &obs, info));
        TD_TRY(ask(self, episode, i, &answer, info));
        config->on_frame(config->user, episode->from + i, index,
                         self->recorded + i * self->spec->action_count,
                         answer->actions);
    }
    return TD_OK;
}

// Where the joints are at the beginning: as recorded, or where they were sent
// first, if the policy sees something else.
static td_err find_start(evaluation *self, const td_dataset_episode *episode,
                         float *ret_start, td_errinfo *info)
{
    const td_config_robot *robot = self->config->robot;
    bool has_own_state = self->spec->state_count != self->spec->action_count ||
                         (robot && robot->robot.state_count > 0);
    td_dataset_reader *reader = self->config->reader;
    td_dataset_reading reading;
    TD_TRY(td_dataset_reader_seek(reader, episode->from, &reading, info));
    return td_dataset_reader_floats(reader, has_own_state ? ACTION : STATE,
                                    self->spec->action_count, ret_start);
}

static td_err open_player(evaluation *self, const td_dataset_episode *episode,
                          td_sim_player **ret_player, td_errinfo *info)
{
    float start[TD_WIRE_MAX_CHANNELS] = {0};
    TD_TRY(find_start(self, episode, start, info));
    const td_sim_player_config config = {
        .spec = self->spec,
        .fps = td_dataset_reader_info(self->config->reader)->fps,
        .latency_ns = self->config->latency_ns,
        .start = start,
        .robot = self->config->robot,
    };
    return td_sim_player_new(&config, ret_player, info);
}

static void note_played(evaluation *self, const td_sim_played *played,
                        const float *recorded)
{
    td_cli_evaluate_sums *sums = self->sums;
    sums->fresh += !played->row->held;
    sums->held += played->row->held;
    sums->clamped += played->row->clamped;
    td_dataset_compare_add(&sums->played, 0, recorded, played->command);
}

static td_err ask_for(evaluation *self, td_sim_player *player,
                      const td_dataset_episode *episode,
                      const td_wire_ident *ident, td_errinfo *info)
{
    const td_wire_obs *obs;
    const td_engine_item *answer;
    uint64_t frame = td_sim_player_frame(player);
    if (frame >= episode->length) return TD_OK; // there is no such moment
    TD_TRY(td_cli_inference_observe(self->inference, episode->from + frame,
                                    ident, &obs, info));
    if (!td_sim_player_send(player, obs)) return TD_OK;
    TD_TRY(ask(self, episode, frame, &answer, info));
    return td_sim_player_answer(player, answer);
}

static td_err play_episode(evaluation *self, uint32_t index,
                           const td_dataset_episode *episode, td_errinfo *info)
{
    const td_cli_evaluate_config *config = self->config;
    TD_AUTO(td_sim_player) *player = NULL;
    TD_TRY(open_player(self, episode, &player, info));
    for (uint64_t frame = 0; frame < episode->length;) {
        td_sim_played played;
        TD_TRY(check_stop(self, info));
        TD_TRY(td_sim_player_tick(player, &played, info));
        if (played.asks)
            TD_TRY(ask_for(self, player, episode, &played.ident, info));
        if (!played.row) continue;
        const float *recorded =
            self->recorded + frame * self->spec->action_count;
        note_played(self, &played, recorded);
        config->on_frame(config->user, episode->from + frame++, index, recorded,
                         played.command);
    }
    return TD_OK;
}

static td_err run_episode(evaluation *self, uint32_t index, td_errinfo *info)
{
    const td_dataset_episode *episode =
        &td_dataset_reader_episodes(self->config->reader)->items[index];
    TD_TRY(load_recorded(self, episode, info));
    return self->config->plays ? play_episode(self, index, episode, info)
                               : evaluate_episode(self, index, episode, info);
}

// A dataset may have no names, or only those of groups.
static td_err check_joints(const evaluation *self, td_errinfo *info)
{
    const td_config_robot *robot = self->config->robot;
    const td_dataset_feature *action = td_dataset_info_find(
        td_dataset_reader_info(self->config->reader), ACTION);
    if (!robot || action->name_count != robot->robot.joint_count) return TD_OK;
    for (size_t i = 0; i < action->name_count; i++)
        if (strcmp(action->names[i], robot->robot.joints[i].name) != 0)
            return td_fail(info, TD_ERR_MISMATCH,
                           "joint %zu is %.64s of this robot and %.64s in the "
                           "dataset; the order counts",
                           i, robot->robot.joints[i].name, action->names[i]);
    return TD_OK;
}

static td_err run_all(evaluation *self, td_errinfo *info)
{
    const td_cli_evaluate_config *config = self->config;
    size_t count = td_dataset_reader_episodes(config->reader)->count;
    if (config->episode >= (int64_t)count)
        return td_fail(info, TD_ERR_NOTFOUND,
                       "there are %zu episodes, the first is 0; there is no "
                       "%lld",
                       count, (long long)config->episode);
    TD_TRY(td_cli_inference_new(config->engine, config->reader,
                                &self->inference, info));
    TD_TRY(check_joints(self, info));
    if (config->episode >= 0)
        return run_episode(self, (uint32_t)config->episode, info);
    for (uint32_t i = 0; i < count; i++)
        TD_TRY(run_episode(self, i, info));
    return TD_OK;
}

td_err td_cli_evaluate(const td_cli_evaluate_config *config,
                       td_cli_evaluate_sums *sums, td_errinfo *info)
{
    evaluation self = {
        .config = config,
        .spec = config->engine->ops->spec(config->engine),
        .sums = sums,
    };
    td_err err = run_all(&self, info);
    evaluation_done(&self);
    return err;
}
