// SPDX-License-Identifier: Apache-2.0
// The synthetic engine: answers that a formula gives (model.c), after as long
// as a real model took (latency.c), so that a whole system runs without one.
//
// Batches run one at a time, as on a device that does (serial.c, on the thread
// of engine/blocking.h), or join what runs, as with continuous batching
// (shared.c, on the thread of continuous.c): one of the two is there. Waiting
// is until a time, not for a time, so that what the thread itself takes does
// not add up.
//
// It also works in two halves: a prefix keeps the cursor and the state, and a
// decode answers from them; each half takes its share of the time.
//
// Any thread submits; everything else is the thread's own. Close: that thread
// finishes what it took and ends, then the rest is freed.
#include "engine/synthetic/synthetic.h"

#include "base/clock.h"
#include "engine/picture.h"
#include "engine/synthetic/continuous.h"
#include "engine/synthetic/shared.h"
#include "wire/msgpack/text.h"

#include <stdlib.h>

// All that a decode needs of its observation.
struct td_engine_prefix {
    uint64_t cursor;
    float state[];
};

// Batches run one at a time (`blocking`) or join what runs (`continuous`): one
// of the two is there, and any thread submits to it. Its thread uses everything
// else.
typedef struct synthetic {
    td_engine engine;
    td_engine_synthetic_model *model;
    const td_engine_spec *spec;
    td_rand rand;
    td_engine_picture_reader *pictures; // NULL unless images are checked
    uint8_t *pixels;                    // of the largest camera
    td_engine_synthetic_serial serial;
    td_engine_blocking *blocking;
    td_engine_synthetic_continuous *continuous;
} synthetic;

static void close_synthetic(td_engine *engine)
{
    synthetic *self = (synthetic *)engine;
    if (self->blocking) td_engine_blocking_free(self->blocking);
    if (self->continuous) td_engine_synthetic_continuous_free(self->continuous);
    if (self->pictures) td_engine_picture_reader_free(self->pictures);
    if (self->model) td_engine_synthetic_model_free(self->model);
    free(self->pixels);
    free(self);
}

static void synthetic_free(synthetic *self)
{
    close_synthetic(&self->engine);
}
TD_AUTO_FREE(synthetic, synthetic_free)

static const td_wire_camera *find_camera(const td_engine_spec *spec,
                                         td_wire_text name)
{
    for (uint32_t i = 0; i < spec->camera_count; i++)
        if (td_wire_text_same(spec->cameras[i].name, name))
            return &spec->cameras[i];
    return NULL;
}

static td_err check_image(const synthetic *self, const td_wire_image *image)
{
    const td_wire_camera *camera = find_camera(self->spec, image->name);
    if (!camera) return TD_ERR_MISMATCH;
    return td_engine_picture_decode(self->pictures, image, camera, self->pixels,
                                    NULL);
}

static td_err check_images(const synthetic *self, const td_wire_obs *obs)
{
    if (!self->pictures) return TD_OK;
    for (uint32_t i = 0; i < obs->image_count; i++)
        TD_TRY(check_image(self, &obs->images[i]));
    return TD_OK;
}

static td_err run_whole(const synthetic *self, td_engine_item *item)
{
    float state[TD_WIRE_MAX_CHANNELS];
    TD_TRY(check_images(self, item->obs));
    TD_TRY(td_engine_synthetic_model_state(self->model, item->obs, state));
    td_engine_synthetic_model_answer(self->model, state, item->obs->cursor,
                                     item->actions);
    item->rows = self->spec->chunk_rows;
    return TD_OK;
}

static td_err run_prefix(const synthetic *self, td_engine_item *item)
{
    TD_TRY(check_images(self, item->obs));
    size_t bytes =
        sizeof(td_engine_prefix) + self->spec->state_count * sizeof(float);
    td_engine_prefix *prefix = malloc(bytes);
    if (!prefix) return TD_ERR_NOMEM;
    prefix->cursor = item->obs->cursor;
    td_err err =
        td_engine_synthetic_model_state(self->model, item->obs, prefix->state);
    if (err != TD_OK) {
        free(prefix);
        return err;
    }
    item->prefix = prefix;
    item->prefix_bytes = bytes;
    return TD_OK;
}

static td_err run_decode(const synthetic *self, td_engine_item *item)
{
    if (!item->prefix) return TD_ERR_INVALID;
    td_engine_synthetic_model_answer(self->model, item->prefix->state,
                                     item->prefix->cursor, item->actions);
    item->rows = self->spec->chunk_rows;
    return TD_OK;
}

static const struct {
    double share; // of the drawn time
    td_err (*run)(const synthetic *self, td_engine_item *item);
} parts[] = {
    [TD_ENGINE_WHOLE] = {1, run_whole},
    [TD_ENGINE_PREFIX] = {TD_ENGINE_SYNTHETIC_PREFIX_SHARE, run_prefix},
    [TD_ENGINE_DECODE] = {1 - TD_ENGINE_SYNTHETIC_PREFIX_SHARE, run_decode},
};

static void answer(const synthetic *self, const td_engine_job *job)
{
    for (uint32_t i = 0; i < job->batch->count; i++) {
        td_engine_item *item = job->batch->items[i];
        item->rows = 0;
        item->status = parts[job->part].run(self, item);
    }
}

static void run_serially(void *model, const td_engine_job *job)
{
    synthetic *self = model;
    int64_t now_ns = td_clock_monotonic_ns();
    int64_t draw_ns = td_engine_synthetic_model_latency_ns(
        self->model, &self->rand, job->batch->count);
    if (self->serial.free_ns < now_ns) self->serial.free_ns = now_ns;
    int64_t end_ns = td_engine_synthetic_serial_take(
        &self->serial, job->submitted_ns,
        td_engine_synthetic_model_prepare_ns(self->model),
        (int64_t)((double)draw_ns * parts[job->part].share));
    answer(self, job);
    if (end_ns > now_ns) td_clock_sleep_until(end_ns);
}

// The work of one is what its draw is to the mean.
static double run_shared(void *model, const td_engine_job *job)
{
    synthetic *self = model;
    int64_t mean_ns = td_engine_synthetic_model_estimate_ns(self->model, 1);
    int64_t draw_ns =
        td_engine_synthetic_model_latency_ns(self->model, &self->rand, 1);
    answer(self, job);
    return parts[job->part].share *
           (mean_ns > 0 ? (double)draw_ns / (double)mean_ns : 1);
}

static td_err make_reader(synthetic *self)
{
    size_t most = 1;
    for (uint32_t i = 0; i < self->spec->camera_count; i++)
        if (td_engine_picture_bytes(&self->spec->cameras[i]) > most)
            most = td_engine_picture_bytes(&self->spec->cameras[i]);
    self->pixels = malloc(most);
    if (!self->pixels) return TD_ERR_NOMEM;
    return td_engine_picture_reader_new(&self->pictures);
}

static td_err start_serial(synthetic *self, td_errinfo *info)
{
    td_engine_blocking_config config = {
        .thread_name = "td-synthetic",
        .max_batch = self->spec->max_batch,
        .most_inflight = self->spec->most_inflight,
        .run = run_serially,
        .model = self,
    };
    return td_engine_blocking_new(&config, &self->blocking, info);
}

static td_err start_continuous(synthetic *self, td_errinfo *info)
{
    td_engine_synthetic_continuous_config config = {
        .thread_name = "td-synthetic",
        .max_batch = self->spec->max_batch,
        .prepare_ns = td_engine_synthetic_model_prepare_ns(self->model),
        .answer = run_shared,
        .model = self,
    };
    for (uint32_t n = 1; n <= config.max_batch; n++)
        config.time_ns[n] =
            td_engine_synthetic_model_estimate_ns(self->model, n);
    return td_engine_synthetic_continuous_new(&config, &self->continuous, info);
}

static const td_engine_ops synthetic_in_halves;

static td_err open_synthetic(const td_engine_config *config,
                             td_engine **ret_engine, td_errinfo *info)
{
    const td_engine_synthetic_settings *settings = config->settings;
    TD_AUTO(synthetic) *self = calloc(1, sizeof *self);
    if (!self) return TD_ERR_NOMEM;
    self->engine.ops =
        settings->halves ? &synthetic_in_halves : &td_engine_synthetic;
    TD_TRY(td_engine_synthetic_model_new(config, &self->model, info));
    self->spec = td_engine_synthetic_model_spec(self->model);
    td_rand_init(&self->rand, settings->seed);
    if (settings->check_images) TD_TRY(make_reader(self));
    TD_TRY(self->spec->continuous ? start_continuous(self, info)
                                  : start_serial(self, info));
    *ret_engine = &TD_TAKE(self)->engine;
    return TD_OK;
}

static const td_engine_spec *spec_synthetic(const td_engine *engine)
{
    return ((const synthetic *)engine)->spec;
}

static td_err submit_part(td_engine *engine, td_engine_part part,
                          td_engine_batch *batch, td_engine_done done,
                          void *user)
{
    synthetic *self = (synthetic *)engine;
    if (self->continuous)
        return td_engine_synthetic_continuous_submit(self->continuous, part,
                                                     batch, done, user);
    return td_engine_blocking_submit(self->blocking, part, batch, done, user);
}

static td_err submit_synthetic(td_engine *engine, td_engine_batch *batch,
                               td_engine_done done, void *user)
{
    return submit_part(engine, TD_ENGINE_WHOLE, batch, done, user);
}

static td_err prefix_synthetic(td_engine *engine, td_engine_batch *batch,
                               td_engine_done done, void *user)
{
    return submit_part(engine, TD_ENGINE_PREFIX, batch, done, user);
}

static td_err decode_synthetic(td_engine *engine, td_engine_batch *batch,
                               td_engine_done done, void *user)
{
    return submit_part(engine, TD_ENGINE_DECODE, batch, done, user);
}

static void drop_synthetic(td_engine *engine, td_engine_prefix *prefix)
{
    (void)engine;
    free(prefix);
}

static td_err estimate_synthetic(const td_engine *engine, uint32_t n,
                                 int64_t *ret_ns)
{
    const synthetic *self = (const synthetic *)engine;
    if (n < 1 || n > self->spec->max_batch) return TD_ERR_INVALID;
    *ret_ns = td_engine_synthetic_model_prepare_ns(self->model) +
              td_engine_synthetic_model_estimate_ns(self->model, n);
    return TD_OK;
}

#define OPS_OF_BOTH                                                            \
    .name = "synthetic", .open = open_synthetic, .close = close_synthetic,     \
    .spec = spec_synthetic, .submit = submit_synthetic,                        \
    .estimate = estimate_synthetic

const td_engine_ops td_engine_synthetic = {OPS_OF_BOTH};

static const td_engine_ops synthetic_in_halves = {
    OPS_OF_BOTH,
    .prefix = prefix_synthetic,
    .decode = decode_synthetic,
    .drop = drop_synthetic,
};
