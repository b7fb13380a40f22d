// SPDX-License-Identifier: Apache-2.0
// The native engine on this machine's processor: td_engine_ops over a thread.
//
// open() reads the checkpoint, makes the pipeline and the model with the CPU's
// backend, and starts the thread of engine/blocking.h. A batch there: each
// observation goes through request.c into the model's inputs, the model runs
// once for all members, and each answer goes back through the pipeline, after
// the temporal ensemble where there is one. A member that does not fit fails
// alone, before the run.
//
// A policy with halves has a second table of operations. Its first half leaves
// a prefix for each member, which is a slot of the model's and what actions are
// relative to; its second makes a chunk of any prefix that is still there. The
// slots that nobody has are a list, under `lock`, since drop() may come from
// any thread.
//
// On a GPU the engine is a worker instead (child.c), which the server starts.
//
// Everything but `blocking` and the list is its thread's. Close: the thread
// finishes what it took and ends; then nobody uses the rest.
#include "engine/native/native.h"

#include "base/finite.h"
#include "base/log.h"
#include "engine/blocking.h"
#include "engine/native/child.h"
#include "engine/native/model.h"
#include "engine/native/pipeline/ensemble.h"
#include "engine/native/request.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

// One that is kept; the model's slot has the same number as its place.
struct td_engine_prefix {
    td_engine_prefix *next; // that nobody has
    float base[TD_WIRE_MAX_CHANNELS];
};

typedef struct native {
    td_engine engine;
    td_engine_spec spec;
    td_native_names *names;
    td_native_checkpoint *checkpoint;
    td_native_pipeline *pipeline;
    td_native_model *model;
    td_native_ensemble *ensemble; // NULL: none
    td_engine_picture_reader *pictures;
    td_native_pipeline_prepared *prepared; // [max_batch]
    float *left;                // room for rows that a robot has promised
    td_engine_prefix *prefixes; // [slots], or NULL
    pthread_mutex_t lock;       // guards `unused`
    td_engine_prefix *unused;
    td_engine_blocking *blocking;
} native;

static void close_native(td_engine *engine)
{
    native *self = (native *)engine;
    if (self->blocking) td_engine_blocking_free(self->blocking);
    if (self->ensemble) td_native_ensemble_free(self->ensemble);
    if (self->pictures) td_engine_picture_reader_free(self->pictures);
    if (self->model) td_native_model_close(self->model);
    if (self->pipeline) td_native_pipeline_free(self->pipeline);
    if (self->checkpoint) td_native_checkpoint_close(self->checkpoint);
    free(self->names);
    free(self->prepared);
    free(self->left);
    free(self->prefixes);
    pthread_mutex_destroy(&self->lock);
    free(self);
}

static void native_free(native *self)
{
    close_native(&self->engine);
}
TD_AUTO_FREE(native, native_free)

static td_err check_finite(const td_engine_spec *spec, const float *actions,
                           td_errinfo *info)
{
    size_t values = (size_t)spec->chunk_rows * spec->action_count;
    size_t bad = td_finite_first_bad(actions, values);
    if (bad < values)
        return td_fail(info, TD_ERR_FORMAT,
                       "the policy gave row %zu, not finite in channel %zu",
                       bad / spec->action_count, bad % spec->action_count);
    return TD_OK;
}

// What the model gave member `slot`, into the item's answer.
static td_err answer(native *self, uint32_t slot, td_engine_item *item)
{
    const td_engine_spec *spec = &self->spec;
    td_native_model_actions(self->model, slot, item->actions);
    TD_TRY(check_finite(spec, item->actions, item->info));
    if (self->ensemble)
        TD_TRY(
            td_native_ensemble_join(self->ensemble, item->obs, item->actions));
    td_native_pipeline_postprocess(self->pipeline, &self->prepared[slot],
                                   spec->chunk_rows, item->actions);
    TD_TRY(check_finite(spec, item->actions, item->info));
    item->rows = spec->chunk_rows;
    return TD_OK;
}

static td_engine_prefix *take_unused(native *self)
{
    pthread_mutex_lock(&self->lock);
    td_engine_prefix *taken = self->unused;
    if (taken) self->unused = taken->next;
    pthread_mutex_unlock(&self->lock);
    return taken;
}

static void give_back(native *self, td_engine_prefix *prefix)
{
    pthread_mutex_lock(&self->lock);
    prefix->next = self->unused;
    self->unused = prefix;
    pthread_mutex_unlock(&self->lock);
}

static uint32_t slot_of(const native *self, const td_engine_prefix *prefix)
{
    return (uint32_t)(prefix - self->prefixes);
}

// The prefix of member `slot`, which is kept for the item.
static td_err keep(native *self, uint32_t slot, td_engine_item *item)
{
    td_engine_prefix *prefix = take_unused(self);
    if (!prefix)
        return td_fail(item->info, TD_ERR_NOMEM,
                       "all %u prefixes that there is room for are in use: "
                       "prefixes.mb says for how many there is",
                       td_native_model_slots(self->model));
    memcpy(prefix->base, self->prepared[slot].base, sizeof prefix->base);
    td_err err = td_native_model_keep(self->model, slot, slot_of(self, prefix),
                                      item->info);
    if (err != TD_OK) {
        give_back(self, prefix);
        return err;
    }
    item->prefix = prefix;
    item->prefix_bytes = td_native_model_prefix_bytes(self->model);
    return TD_OK;
}

static td_err sample(native *self, const td_engine_item *item, uint32_t slot)
{
    const td_wire_obs *obs = item->obs; // a decode may have none
    bool promised = obs && obs->has_rtc;
    const td_native_request_chance chance = {
        .seed = item->seed,
        .left = promised ? &obs->rtc_prefix : NULL,
        .delay = promised ? obs->rtc_delay_steps : 0,
        .base = self->prepared[slot].base,
        .room = self->left,
    };
    return td_native_request_sample(self->model, self->pipeline, &chance, slot,
                                    item->info);
}

// All that member `slot` is run with.
static td_err prepare(native *self, td_engine_part part, uint32_t slot,
                      const td_engine_item *item)
{
    const td_native_request request = {
        .spec = &self->spec,
        .pictures = self->pictures,
        .pipeline = self->pipeline,
        .model = self->model,
    };
    td_native_pipeline_prepared *prepared = &self->prepared[slot];
    if (part == TD_ENGINE_DECODE) {
        if (!item->prefix)
            return td_fail(item->info, TD_ERR_INVALID, "there is no prefix");
        memcpy(prepared->base, item->prefix->base, sizeof prepared->base);
        TD_TRY(td_native_model_restore(self->model, slot_of(self, item->prefix),
                                       slot, item->info));
    } else {
        TD_TRY(td_native_request_prepare(&request, item->obs, slot, prepared,
                                         item->info));
    }
    return part == TD_ENGINE_PREFIX ? TD_OK : sample(self, item, slot);
}

static void run(void *model, const td_engine_job *job)
{
    static const td_native_part parts[] = {
        [TD_ENGINE_WHOLE] = TD_NATIVE_WHOLE,
        [TD_ENGINE_PREFIX] = TD_NATIVE_PREFIX,
        [TD_ENGINE_DECODE] = TD_NATIVE_DECODE,
    };
    native *self = model;
    td_engine_item *members[TD_ENGINE_MAX_BATCH];
    uint32_t count = 0;
    for (uint32_t i = 0; i < job->batch->count; i++) {
        td_engine_item *item = job->batch->items[i];
        item->rows = 0;
        item->status = prepare(self, job->part, count, item);
        if (item->status == TD_OK) members[count++] = item;
    }
    if (count == 0) return;
    td_errinfo why = {.text = ""};
    td_err err =
        td_native_model_run(self->model, parts[job->part], count, &why);
    for (uint32_t i = 0; i < count; i++) {
        td_engine_item *item = members[i];
        if (err != TD_OK)
            item->status = td_fail(item->info, err, "%s", why.text);
        else
            item->status = job->part == TD_ENGINE_PREFIX
                               ? keep(self, i, item)
                               : answer(self, i, item);
    }
}

static uint32_t own_threads(void)
{
    cpu_set_t mine;
    if (sched_getaffinity(0, sizeof mine, &mine) != 0) return 1;
    return (uint32_t)CPU_COUNT(&mine);
}

static td_err open_model(native *self,
                         const td_engine_native_settings *settings,
                         td_errinfo *info)
{
    const td_native_model_config config = {
        .checkpoint = self->checkpoint,
        .pipeline = self->pipeline,
        .ops = &td_ops_cpu,
        .backend = {.precision = TD_OPS_F32,
                    .threads =
                        settings->threads ? settings->threads : own_threads()},
        .max_batch = settings->max_batch,
        .kept_bytes = settings->prefix_bytes,
    };
    TD_TRY(td_native_model_open(&config, &self->model, info));
    td_ops_info backend;
    td_native_model_info(self->model, &backend);
    self->spec.tolerance = backend.tolerance;
    self->spec.rtc = td_native_model_can_guide(self->model);
    td_log_text(TD_LOG_INFO, "native: %s: %s on %s, %zu MiB",
                self->spec.model_id,
                td_native_policy_name(self->checkpoint->policy.type),
                backend.device, backend.bytes >> 20);
    return TD_OK;
}

static td_err open_checkpoint(native *self, const td_engine_config *config,
                              td_errinfo *info)
{
    if (!config->pretrained_path || !config->pretrained_path[0])
        return td_fail(info, TD_ERR_INVALID,
                       "model %s: the native engine wants a checkpoint's "
                       "folder as pretrained_path",
                       config->model_id);
    if (config->device && strcmp(config->device, "cpu") != 0)
        return td_fail(info, TD_ERR_UNSUPPORTED,
                       "model %s: the native engine runs on cpu, not on %s",
                       config->model_id, config->device);
    td_errinfo why = {.text = ""};
    td_err err = td_native_checkpoint_open(config->pretrained_path,
                                           &self->checkpoint, &why);
    if (err == TD_OK) err = td_native_model_check(self->checkpoint, &why);
    if (err == TD_ERR_UNSUPPORTED)
        return td_fail(info, err,
                       "%.320s; LeRobot runs it in a worker: kind: worker, "
                       "see docs/lerobot.md",
                       why.text);
    if (err != TD_OK) return td_fail(info, err, "%s", why.text);
    const td_engine_native_settings *settings = config->settings;
    const char *tokenizer = settings->tokenizer;
    return td_native_pipeline_new(self->checkpoint,
                                  tokenizer && *tokenizer ? tokenizer : NULL,
                                  &self->pipeline, info);
}

static td_err start(native *self, td_errinfo *info)
{
    const td_engine_blocking_config config = {
        .thread_name = "td-native",
        .max_batch = self->spec.max_batch,
        .run = run,
        .model = self,
    };
    return td_engine_blocking_new(&config, &self->blocking, info);
}

static td_err describe(native *self, const td_engine_config *config,
                       td_errinfo *info)
{
    const td_engine_native_settings *settings = config->settings;
    self->spec.model_id = config->model_id;
    self->spec.model_version = config->model_version;
    self->spec.step_period_us = config->step_period_us;
    self->spec.max_batch = settings->max_batch;
    return td_native_names_fill(self->checkpoint, settings, &self->spec,
                                &self->names, info);
}

// Room for prefixes; without it the engine has no halves, nor with an ensemble,
// which wants to know whose observation a chunk is made of.
static td_err open_prefixes(native *self)
{
    uint32_t slots = td_native_model_slots(self->model);
    if (slots == 0 || self->ensemble) return TD_OK;
    self->prefixes = calloc(slots, sizeof *self->prefixes);
    if (!self->prefixes) return TD_ERR_NOMEM;
    for (uint32_t i = slots; i-- > 0;)
        give_back(self, &self->prefixes[i]);
    self->engine.ops = &td_engine_native_halves;
    return TD_OK;
}

static td_err open_native(const td_engine_config *config,
                          td_engine **ret_engine, td_errinfo *info)
{
    const td_engine_native_settings *settings = config->settings;
    TD_AUTO(native) *self = calloc(1, sizeof *self);
    if (!self) return TD_ERR_NOMEM;
    self->engine.ops = &td_engine_native;
    pthread_mutex_init(&self->lock, NULL);
    TD_TRY(open_checkpoint(self, config, info));
    TD_TRY(describe(self, config, info));
    TD_TRY(open_model(self, settings, info));
    if (settings->ensemble)
        TD_TRY(td_native_ensemble_new(
            settings->ensemble_coefficient, self->spec.chunk_rows,
            self->spec.action_count, &self->ensemble));
    self->prepared = calloc(settings->max_batch, sizeof *self->prepared);
    self->left = calloc((size_t)self->spec.chunk_rows * self->spec.action_count,
                        sizeof *self->left);
    if (!self->prepared || !self->left) return TD_ERR_NOMEM;
    TD_TRY(open_prefixes(self));
    TD_TRY(td_engine_picture_reader_new(&self->pictures));
    TD_TRY(start(self, info));
    *ret_engine = &TD_TAKE(self)->engine;
    return TD_OK;
}

static const td_engine_spec *spec_native(const td_engine *engine)
{
    return &((const native *)engine)->spec;
}

static td_err submit_part(td_engine *engine, td_engine_part part,
                          td_engine_batch *batch, td_engine_done done,
                          void *user)
{
    native *self = (native *)engine;
    return td_engine_blocking_submit(self->blocking, part, batch, done, user);
}

static td_err submit_native(td_engine *engine, td_engine_batch *batch,
                            td_engine_done done, void *user)
{
    return submit_part(engine, TD_ENGINE_WHOLE, batch, done, user);
}

static td_err prefix_native(td_engine *engine, td_engine_batch *batch,
                            td_engine_done done, void *user)
{
    return submit_part(engine, TD_ENGINE_PREFIX, batch, done, user);
}

static td_err decode_native(td_engine *engine, td_engine_batch *batch,
                            td_engine_done done, void *user)
{
    return submit_part(engine, TD_ENGINE_DECODE, batch, done, user);
}

static void drop_native(td_engine *engine, td_engine_prefix *prefix)
{
    give_back((native *)engine, prefix);
}

const char *td_engine_native_precision(const char *device)
{
    bool on_gpu = strncmp(device, TD_NATIVE_CHILD_DEVICE,
                          strlen(TD_NATIVE_CHILD_DEVICE)) == 0;
    return on_gpu ? "bf16" : "float32";
}

const td_engine_ops td_engine_native = {
    .name = "native",
    .open = open_native,
    .close = close_native,
    .spec = spec_native,
    .submit = submit_native,
};

const td_engine_ops td_engine_native_halves = {
    .name = "native",
    .open = open_native,
    .close = close_native,
    .spec = spec_native,
    .submit = submit_native,
    .prefix = prefix_native,
    .decode = decode_native,
    .drop = drop_native,
};
