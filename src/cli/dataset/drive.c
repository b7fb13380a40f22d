// SPDX-License-Identifier: Apache-2.0
#include "cli/dataset/drive.h"

#include "cli/dataset/play.h"
#include "cli/dataset/question.h"

#include <stdlib.h>

#define ACTION "action"

typedef struct drive {
    const td_cli_drive_config *config;
    const td_engine_spec *spec;
    td_cli_drive_sums *sums;
    td_cli_question *question;
    float *recorded; // of the episode: its frames x actions
} drive;

static void drive_done(drive *self)
{
    free(self->recorded);
    if (self->question) td_cli_question_free(self->question);
}

td_err td_cli_drive_sums_init(td_cli_drive_sums *sums,
                              const td_engine_spec *spec)
{
    uint32_t channels = spec->action_count;
    *sums = (td_cli_drive_sums){0};
    TD_TRY(td_dataset_compare_init(&sums->chunks, channels, spec->chunk_rows));
    TD_TRY(td_dataset_compare_init(&sums->played, channels, 1));
    for (uint32_t i = 0; i < channels; i++)
        sums->chunks.wraps[i] = sums->played.wraps[i] =
            spec->actions[i].kind == TD_WIRE_ANGLE;
    return TD_OK;
}

void td_cli_drive_sums_done(td_cli_drive_sums *sums)
{
    td_dataset_compare_done(&sums->chunks);
    td_dataset_compare_done(&sums->played);
}

static td_err load_recorded(drive *self, const td_dataset_episode *episode,
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

static void compare_chunk(drive *self, const td_engine_item *answer,
                          uint64_t frame, uint64_t length)
{
    uint32_t width = self->spec->action_count;
    self->sums->asked++;
    for (uint32_t i = 0; i < answer->rows && frame + i < length; i++)
        td_dataset_compare_add(&self->sums->chunks, i,
                               self->recorded + (frame + i) * width,
                               answer->actions + (size_t)i * width);
}

static td_err check_stop(const drive *self, td_errinfo *info)
{
    return self->config->stop() ? td_fail(info, TD_ERR_CANCELLED, "stopped")
                                : TD_OK;
}

static td_err ask_at(drive *self, const td_dataset_episode *episode,
                     uint64_t frame, const td_wire_ident *ident,
                     const td_engine_item **ret_answer, td_errinfo *info)
{
    TD_TRY(check_stop(self, info));
    TD_TRY(td_cli_question_ask(self->question, episode->from + frame, ident,
                               ret_answer, info));
    compare_chunk(self, *ret_answer, frame, episode->length);
    return TD_OK;
}

static td_err drive_episode(drive *self, uint32_t index,
                            const td_dataset_episode *episode, td_errinfo *info)
{
    const td_cli_drive_config *config = self->config;
    for (uint64_t i = 0; i < episode->length; i += config->every) {
        const td_engine_item *answer;
        const td_wire_ident ident = {.seq = episode->from + i + 1};
        TD_TRY(ask_at(self, episode, i, &ident, &answer, info));
        config->on_frame(config->user, episode->from + i, index,
                         self->recorded + i * self->spec->action_count,
                         answer->actions);
    }
    return TD_OK;
}

static void note_played(drive *self, const td_cli_played *played,
                        const float *recorded)
{
    td_cli_drive_sums *sums = self->sums;
    sums->fresh += played->fresh;
    sums->held += !played->fresh;
    if (played->command)
        td_dataset_compare_add(&sums->played, 0, recorded, played->command);
}

// Tick i + 1 plays frame i; the one before all only asks.
static td_err play_episode(drive *self, uint32_t index,
                           const td_dataset_episode *episode, td_errinfo *info)
{
    const td_cli_drive_config *config = self->config;
    uint32_t width = self->spec->action_count;
    uint32_t fps = td_dataset_reader_info(config->reader)->fps;
    TD_AUTO(td_cli_play) *play = NULL;
    TD_TRY(td_cli_play_new(self->spec, fps, config->latency_ns, &play, info));
    for (uint64_t tick = 0; tick <= episode->length; tick++) {
        uint64_t frame = tick > 0 ? tick - 1 : 0;
        const float *recorded = self->recorded + frame * width;
        const td_engine_item *answer;
        td_cli_played played;
        td_cli_play_tick(play, recorded, &played);
        if (tick > 0) note_played(self, &played, recorded);
        if (tick > 0)
            config->on_frame(config->user, episode->from + frame, index,
                             recorded, played.command);
        if (!played.asks || tick == episode->length) continue;
        TD_TRY(ask_at(self, episode, tick, &played.ident, &answer, info));
        td_cli_play_answer(play, answer);
    }
    return td_cli_play_error(play);
}

static td_err run_episode(drive *self, uint32_t index, td_errinfo *info)
{
    const td_dataset_episode *episode =
        &td_dataset_reader_episodes(self->config->reader)->items[index];
    TD_TRY(load_recorded(self, episode, info));
    return self->config->plays ? play_episode(self, index, episode, info)
                               : drive_episode(self, index, episode, info);
}

static td_err run_all(drive *self, td_errinfo *info)
{
    const td_cli_drive_config *config = self->config;
    size_t count = td_dataset_reader_episodes(config->reader)->count;
    if (config->episode >= (int64_t)count)
        return td_fail(info, TD_ERR_NOTFOUND,
                       "there are %zu episodes, the first is 0; there is no "
                       "%lld",
                       count, (long long)config->episode);
    TD_TRY(td_cli_question_new(config->engine, config->reader, &self->question,
                               info));
    if (config->episode >= 0)
        return run_episode(self, (uint32_t)config->episode, info);
    for (uint32_t i = 0; i < count; i++)
        TD_TRY(run_episode(self, i, info));
    return TD_OK;
}

td_err td_cli_drive(const td_cli_drive_config *config, td_cli_drive_sums *sums,
                    td_errinfo *info)
{
    drive self = {
        .config = config,
        .spec = config->engine->ops->spec(config->engine),
        .sums = sums,
    };
    td_err err = run_all(&self, info);
    drive_done(&self);
    return err;
}
