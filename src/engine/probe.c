// SPDX-License-Identifier: Apache-2.0
#include "engine/probe.h"

#include "base/clock.h"
#include "base/sync/event.h"
#include "engine/picture.h"

#include <stdlib.h>

struct td_engine_probe {
    td_wire_obs obs;
    float state[TD_WIRE_MAX_CHANNELS]; // of the robot and the environment
    uint8_t *pixels;                   // of the largest camera
    float *actions;                    // of all members
    td_engine_item items[TD_ENGINE_MAX_BATCH];
    td_errinfo why[TD_ENGINE_MAX_BATCH];
    td_engine_batch batch;
    td_event answered;
    int64_t end_ns; // written before `answered`
};

void td_engine_probe_free(td_engine_probe *probe)
{
    free(probe->pixels);
    free(probe->actions);
    free(probe);
}

static size_t largest_bytes(const td_engine_spec *spec)
{
    size_t most = 1;
    for (uint32_t i = 0; i < spec->camera_count; i++)
        if (td_engine_picture_bytes(&spec->cameras[i]) > most)
            most = td_engine_picture_bytes(&spec->cameras[i]);
    return most;
}

static td_wire_tensor zeros_of(const td_engine_probe *self, uint32_t count)
{
    return (td_wire_tensor){.dtype = TD_WIRE_F32,
                            .rank = 1,
                            .shape = {count},
                            .data = self->state,
                            .size = count * sizeof(float)};
}

static void fill_obs(td_engine_probe *self, const td_engine_spec *spec)
{
    td_wire_obs *obs = &self->obs;
    obs->client = td_wire_text_of("warm-up");
    obs->state = zeros_of(self, spec->state_count);
    if (spec->environment_count > 0)
        obs->tensors[obs->tensor_count++] =
            (td_wire_named){.name = td_wire_text_of("environment_state"),
                            .tensor = zeros_of(self, spec->environment_count)};
    obs->image_count = spec->camera_count;
    for (uint32_t i = 0; i < spec->camera_count; i++) {
        const td_wire_camera *camera = &spec->cameras[i];
        obs->images[i] = (td_wire_image){
            .name = camera->name,
            .codec = TD_WIRE_RAW,
            .shape = {camera->height, camera->width, 3},
            .data = self->pixels,
            .size = td_engine_picture_bytes(camera),
        };
    }
}

td_err td_engine_probe_new(const td_engine_spec *spec,
                           td_engine_probe **ret_probe)
{
    TD_AUTO(td_engine_probe) *self = calloc(1, sizeof *self);
    if (!self) return TD_ERR_NOMEM;
    size_t values = (size_t)spec->chunk_rows * spec->action_count;
    self->pixels = calloc(1, largest_bytes(spec));
    self->actions = calloc(values * spec->max_batch, sizeof(float));
    if (!self->pixels || !self->actions) return TD_ERR_NOMEM;
    td_event_init(&self->answered);
    fill_obs(self, spec);
    for (uint32_t i = 0; i < spec->max_batch; i++) {
        self->items[i] = (td_engine_item){
            .obs = &self->obs,
            .actions = self->actions + i * values,
            .status = TD_ERR_INTERNAL,
            .info = &self->why[i],
        };
        self->batch.items[i] = &self->items[i];
    }
    *ret_probe = TD_TAKE(self);
    return TD_OK;
}

// Engine's thread.
static void on_done(void *user, td_engine_batch *batch)
{
    (void)batch;
    td_engine_probe *self = user;
    self->end_ns = td_clock_monotonic_ns();
    td_event_signal(&self->answered);
}

static td_err check_answers(const td_engine_probe *self, uint32_t count,
                            td_errinfo *info)
{
    for (uint32_t i = 0; i < count; i++) {
        td_err err = self->items[i].status;
        if (err != TD_OK)
            return td_fail(
                info, err, "the model does not answer a batch of %u: %s", count,
                self->why[i].text[0] ? self->why[i].text : td_err_text(err));
    }
    return TD_OK;
}

td_err td_engine_probe_run(td_engine_probe *probe, td_engine *engine,
                           uint32_t count, int64_t *ret_ns, td_errinfo *info)
{
    probe->batch.count = count;
    int64_t start_ns = td_clock_monotonic_ns();
    td_err err = engine->ops->submit(engine, &probe->batch, on_done, probe);
    if (err != TD_OK)
        return td_fail(info, err, "the model takes no batch of %u: %s", count,
                       td_err_text(err));
    (void)td_event_wait_until(&probe->answered, INT64_MAX);
    TD_TRY(check_answers(probe, count, info));
    if (ret_ns) *ret_ns = probe->end_ns - start_ns;
    return TD_OK;
}

int64_t td_engine_probe_lasts(const td_engine_spec *spec)
{
    return (int64_t)spec->chunk_rows * spec->step_period_us * 1000;
}

td_err td_engine_probe_warm_up(td_engine *engine, int64_t *ret_ns,
                               td_errinfo *info)
{
    const td_engine_spec *spec = engine->ops->spec(engine);
    TD_AUTO(td_engine_probe) *probe = NULL;
    int64_t took_ns = 0;
    TD_TRY(td_engine_probe_new(spec, &probe));
    TD_TRY(td_engine_probe_run(probe, engine, 1, &took_ns, info));
    if (spec->max_batch > 1 && !spec->continuous)
        TD_TRY(td_engine_probe_run(probe, engine, spec->max_batch, NULL, info));
    if (ret_ns) *ret_ns = took_ns;
    return TD_OK;
}
