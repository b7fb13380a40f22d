// SPDX-License-Identifier: Apache-2.0
#include "engine/synthetic/model.h"

#include "base/clock.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define AMPLITUDE 0.1
#define FREQUENCY_HZ 0.25
#define PHASE 0.7 // from one channel to the next

#define MAX_ROWS 65536

// sin(a + w k) = sin(a) cos(w k) + cos(a) sin(w k): with the turns of all rows
// made at the start, an answer costs one sine and cosine a channel.
typedef struct turn {
    double sine, cosine;
} turn;

struct td_engine_synthetic_model {
    td_engine_spec spec;
    char *texts; // every name of the spec
    double step_angle;
    turn *turns; // one a row
    td_engine_synthetic_latency *latency;
};

static td_err check_range(const char *field, uint32_t value, uint32_t min,
                          uint32_t max, td_errinfo *info)
{
    if (value >= min && value <= max) return TD_OK;
    return td_fail(info, TD_ERR_INVALID, "%s: must be %u to %u, got %u", field,
                   min, max, value);
}

static td_err check_config(const td_engine_config *config, td_errinfo *info)
{
    const td_engine_synthetic_settings *settings = config->settings;
    if (config->step_period_us <= 0)
        return td_fail(info, TD_ERR_INVALID,
                       "step_period_us: must be above 0, got %lld",
                       (long long)config->step_period_us);
    TD_TRY(check_range("actions", settings->action_count, 1,
                       TD_WIRE_MAX_CHANNELS, info));
    TD_TRY(check_range("states", settings->state_count, 1, TD_WIRE_MAX_CHANNELS,
                       info));
    TD_TRY(check_range("cameras", settings->camera_count, 0, TD_WIRE_MAX_IMAGES,
                       info));
    TD_TRY(check_range("chunk", settings->chunk_rows, 1, MAX_ROWS, info));
    return check_range("max_batch", settings->max_batch, 1, TD_ENGINE_MAX_BATCH,
                       info);
}

// Calls `each` with every text of the spec.
static void each_text(td_engine_spec *spec,
                      void (*each)(td_wire_text *text, void *user), void *user)
{
    for (uint32_t i = 0; i < spec->action_count; i++)
        each(&spec->actions[i].name, user);
    for (uint32_t i = 0; i < spec->state_count; i++)
        each(&spec->states[i].name, user);
    for (uint32_t i = 0; i < spec->camera_count; i++)
        each(&spec->cameras[i].name, user);
}

static void add_size(td_wire_text *text, void *user)
{
    *(size_t *)user += text->size;
}

static void move_text(td_wire_text *text, void *user)
{
    char **end = user;
    if (text->size) memcpy(*end, text->data, text->size);
    text->data = *end;
    *end += text->size;
}

static const char *move_string(const char *string, char **end)
{
    size_t size = strlen(string) + 1;
    char *place = memcpy(*end, string, size);
    *end += size;
    return place;
}

static td_err copy_texts(td_engine_synthetic_model *model)
{
    td_engine_spec *spec = &model->spec;
    size_t size = strlen(spec->model_id) + strlen(spec->model_version) + 2;
    each_text(spec, add_size, &size);
    char *end = model->texts = malloc(size);
    if (!end) return TD_ERR_NOMEM;
    spec->model_id = move_string(spec->model_id, &end);
    spec->model_version = move_string(spec->model_version, &end);
    each_text(spec, move_text, &end);
    return TD_OK;
}

// One at a time, there is something to gain from a second one only while it
// prepares.
static uint32_t most_inflight(const td_engine_synthetic_settings *settings)
{
    if (settings->continuous) return settings->max_batch;
    return settings->latency.prepare_ms > 0 ? 2 : 1;
}

static void fill_spec(const td_engine_config *config, td_engine_spec *spec)
{
    const td_engine_synthetic_settings *settings = config->settings;
    *spec = (td_engine_spec){.model_id = config->model_id,
                             .model_version = config->model_version,
                             .camera_count = settings->camera_count,
                             .any_images = settings->camera_count == 0,
                             .state_count = settings->state_count,
                             .action_count = settings->action_count,
                             .chunk_rows = settings->chunk_rows,
                             .step_period_us = config->step_period_us,
                             .max_batch = settings->max_batch,
                             .most_inflight = most_inflight(settings),
                             .continuous = settings->continuous};
    memcpy(spec->cameras, settings->cameras, sizeof spec->cameras);
    memcpy(spec->states, settings->states, sizeof spec->states);
    memcpy(spec->actions, settings->actions, sizeof spec->actions);
}

static td_err make_turns(td_engine_synthetic_model *model)
{
    double period_s = (double)model->spec.step_period_us * 1e-6;
    model->step_angle = 2 * M_PI * FREQUENCY_HZ * period_s;
    model->turns = calloc(model->spec.chunk_rows, sizeof *model->turns);
    if (!model->turns) return TD_ERR_NOMEM;
    for (uint32_t k = 0; k < model->spec.chunk_rows; k++)
        sincos(model->step_angle * k, &model->turns[k].sine,
               &model->turns[k].cosine);
    return TD_OK;
}

td_err td_engine_synthetic_model_new(const td_engine_config *config,
                                     td_engine_synthetic_model **ret_model,
                                     td_errinfo *info)
{
    const td_engine_synthetic_settings *settings = config->settings;
    TD_TRY(check_config(config, info));
    TD_AUTO(td_engine_synthetic_model) *model = calloc(1, sizeof *model);
    if (!model) return TD_ERR_NOMEM;
    fill_spec(config, &model->spec);
    TD_TRY(copy_texts(model));
    TD_TRY(make_turns(model));
    TD_TRY(td_engine_synthetic_latency_new(&settings->latency, &model->latency,
                                           info));
    *ret_model = TD_TAKE(model);
    return TD_OK;
}

void td_engine_synthetic_model_free(td_engine_synthetic_model *model)
{
    if (model->latency) td_engine_synthetic_latency_free(model->latency);
    free(model->turns);
    free(model->texts);
    free(model);
}

const td_engine_spec *
td_engine_synthetic_model_spec(const td_engine_synthetic_model *model)
{
    return &model->spec;
}

int64_t
td_engine_synthetic_model_prepare_ns(const td_engine_synthetic_model *model)
{
    return td_engine_synthetic_latency_prepare_ns(model->latency);
}

int64_t
td_engine_synthetic_model_latency_ns(const td_engine_synthetic_model *model,
                                     td_rand *rand, uint32_t n)
{
    return td_engine_synthetic_latency_draw_ns(model->latency, rand, n);
}

int64_t
td_engine_synthetic_model_estimate_ns(const td_engine_synthetic_model *model,
                                      uint32_t n)
{
    return td_engine_synthetic_latency_mean_ns(model->latency, n);
}

td_err td_engine_synthetic_model_state(const td_engine_synthetic_model *model,
                                       const td_wire_obs *obs, float *ret_state)
{
    const td_wire_tensor *state = &obs->state;
    size_t size = model->spec.state_count * sizeof(float);
    if (state->dtype != TD_WIRE_F32 || state->rank != 1 || state->size != size)
        return TD_ERR_MISMATCH;
    memcpy(ret_state, state->data, size);
    return TD_OK;
}

static double phase_of(const td_engine_synthetic_model *model, uint64_t cursor,
                       uint32_t channel)
{
    return model->step_angle * (double)cursor + PHASE * channel;
}

void td_engine_synthetic_model_path(const td_engine_synthetic_model *model,
                                    uint64_t cursor, float *ret_state)
{
    for (uint32_t j = 0; j < model->spec.state_count; j++)
        ret_state[j] = (float)(AMPLITUDE * sin(phase_of(model, cursor, j)));
}

static bool moves(td_wire_channel_kind kind)
{
    return kind == TD_WIRE_LINEAR || kind == TD_WIRE_ANGLE;
}

void td_engine_synthetic_model_answer(const td_engine_synthetic_model *model,
                                      const float *state, uint64_t cursor,
                                      float *ret_actions)
{
    const td_engine_spec *spec = &model->spec;
    uint32_t channels = spec->action_count;
    turn at[TD_WIRE_MAX_CHANNELS];
    double start[TD_WIRE_MAX_CHANNELS];
    for (uint32_t j = 0; j < channels; j++) {
        start[j] = state[j % spec->state_count];
        double phase = phase_of(model, cursor, j);
        at[j] = (turn){AMPLITUDE * sin(phase), AMPLITUDE * cos(phase)};
        if (!moves(spec->actions[j].kind)) at[j] = (turn){0, 0};
    }
    for (uint32_t k = 0; k < spec->chunk_rows; k++) {
        const turn *by = &model->turns[k];
        for (uint32_t j = 0; j < channels; j++) {
            double sine = at[j].sine * by->cosine + at[j].cosine * by->sine;
            *ret_actions++ = (float)(start[j] + (sine - at[j].sine));
        }
    }
}
