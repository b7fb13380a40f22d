// SPDX-License-Identifier: Apache-2.0
// The native engine on a GPU, in a process of its own: what `tendon
// native-worker` runs.
//
// It asks the server what is wanted (checkpoint, device, names), loads the CUDA
// library, the checkpoint and the model, says what the model is, runs it a few
// times so that the first robot does not pay for it, and then answers batches
// until the server ends it. Frames and numbers are copied from the ring into
// pinned memory of the backend's, and answers back.
//
// A policy that denoises has halves: what its first leaves of an observation is
// kept under the number that the server gives, in a slot of the model's, until
// the server lets it go.
//
// An error of one member is that member's. NOMEM of a batch is told to its
// members, and the child goes on. Any other error of CUDA's ends the process
// after the batch was answered with it: the server starts another.
//
// One thread, which is also CUDA's. Everything is freed in child_free(), the
// model before the checkpoint that it borrows.
#include "engine/native/child.h"

#include "base/clock.h"
#include "base/finite.h"
#include "engine/native/cuda/library.h"
#include "engine/native/model.h"
#include "engine/native/pipeline/ensemble.h"
#include "engine/native/request.h"
#include "tendon/worker.h"
#include "wire/msgpack/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OWN_MAX_BATCH 16 // where the manifest says nothing

// A prefix that is kept; the model's slot has the number of its place.
typedef struct kept {
    bool used;
    uint64_t number; // the server's
    float base[TD_WIRE_MAX_CHANNELS];
} kept;

typedef struct child {
    td_worker *worker;
    const td_native_child_options *options;
    td_native_checkpoint *checkpoint;
    td_native_pipeline *pipeline;
    td_native_model *model;
    td_native_ensemble *ensemble; // NULL: none
    kept *prefixes;               // [slots], or NULL
    float *left;                  // room for rows that a robot has promised
    td_worker_spec spec;
    td_native_pipeline_prepared prepared[TD_WORKER_MAX_BATCH];
} child;

static void child_free(child *self)
{
    if (self->ensemble) td_native_ensemble_free(self->ensemble);
    if (self->model) td_native_model_close(self->model);
    if (self->pipeline) td_native_pipeline_free(self->pipeline);
    if (self->checkpoint) td_native_checkpoint_close(self->checkpoint);
    if (self->worker) td_worker_close(self->worker);
    free(self->prefixes);
    free(self->left);
    free(self);
}
TD_AUTO_FREE(child, child_free)

// "cuda" or "cuda:N".
static td_err read_device(const char *name, uint32_t *ret_device,
                          td_errinfo *info)
{
    size_t size = strlen(TD_NATIVE_CHILD_DEVICE);
    char *end = NULL;
    *ret_device = 0;
    if (strcmp(name, TD_NATIVE_CHILD_DEVICE) == 0) return TD_OK;
    if (strncmp(name, TD_NATIVE_CHILD_DEVICE ":", size + 1) == 0 &&
        name[size + 1] >= '0' && name[size + 1] <= '9') {
        *ret_device = (uint32_t)strtoul(name + size + 1, &end, 10);
        if (*end == '\0') return TD_OK;
    }
    return td_fail(info, TD_ERR_INVALID, "device: %s is no GPU, as cuda:0 is",
                   name);
}

static void wanted_channels(const td_worker_channel *from, uint32_t count,
                            td_wire_channel *ret_channels, uint32_t *ret_count)
{
    for (uint32_t i = 0; i < count; i++)
        ret_channels[i] = (td_wire_channel){
            .name = {from[i].name, strnlen(from[i].name, sizeof from[i].name)},
            .kind = (td_wire_channel_kind)from[i].kind,
        };
    *ret_count = count;
}

static void put_text(char *to, size_t room, td_wire_text from)
{
    (void)snprintf(to, room, "%.*s", (int)from.size, from.data);
}

static void say_channels(const td_wire_channel *from, uint32_t count,
                         td_worker_channel *to, uint32_t *ret_count)
{
    for (uint32_t i = 0; i < count; i++) {
        put_text(to[i].name, sizeof to[i].name, from[i].name);
        to[i].kind = (uint32_t)from[i].kind;
    }
    *ret_count = count;
}

static void say_spec(const td_engine_spec *from, td_worker_spec *to)
{
    say_channels(from->actions, from->action_count, to->actions,
                 &to->action_count);
    say_channels(from->states, from->state_count, to->states, &to->state_count);
    for (uint32_t i = 0; i < from->camera_count; i++) {
        put_text(to->cameras[i].name, sizeof to->cameras[i].name,
                 from->cameras[i].name);
        to->cameras[i].height = from->cameras[i].height;
        to->cameras[i].width = from->cameras[i].width;
    }
    to->camera_count = from->camera_count;
    to->chunk_rows = from->chunk_rows;
}

// What the checkpoint is, by the names that the manifest gives where it does.
static td_err describe(child *self, td_errinfo *info)
{
    const td_worker_spec *wanted = &td_worker_offered(self->worker)->spec;
    td_engine_native_settings *settings = calloc(1, sizeof *settings);
    td_engine_spec *spec = calloc(1, sizeof *spec);
    td_native_names *names = NULL;
    td_err err = settings && spec ? TD_OK : TD_ERR_NOMEM;
    if (err == TD_OK) {
        wanted_channels(wanted->actions, wanted->action_count,
                        settings->actions, &settings->action_count);
        wanted_channels(wanted->states, wanted->state_count, settings->states,
                        &settings->state_count);
        err = td_native_names_fill(self->checkpoint, settings, spec, &names,
                                   info);
    }
    if (err == TD_OK) say_spec(spec, &self->spec);
    self->spec.max_batch =
        wanted->max_batch ? wanted->max_batch : OWN_MAX_BATCH;
    free(names);
    free(spec);
    free(settings);
    return err;
}

// To what the backend says, what a person can do.
static td_err say_no_room(const child *self, td_errinfo *info)
{
    return td_fail(info, TD_ERR_NOMEM,
                   "%s; max_batch is %u: take a smaller one, or another GPU "
                   "than %s",
                   info->text, self->spec.max_batch,
                   td_worker_offered(self->worker)->device);
}

static td_err open_model(child *self, const td_ops *ops, uint32_t device,
                         td_errinfo *info)
{
    const td_native_model_config config = {
        .checkpoint = self->checkpoint,
        .pipeline = self->pipeline,
        .ops = ops,
        .backend = {.precision = TD_OPS_BF16, .threads = 1, .device = device},
        .max_batch = self->spec.max_batch,
        .kept_bytes =
            self->options->prefixes
                ? (uint64_t)strtoull(self->options->prefixes, NULL, 10) << 20
                : 0,
    };
    td_ops_info backend;
    td_err err = td_native_model_open(&config, &self->model, info);
    if (err != TD_OK)
        return err == TD_ERR_NOMEM ? say_no_room(self, info) : err;
    td_native_model_info(self->model, &backend);
    self->spec.tolerance = backend.tolerance;
    self->spec.rtc = td_native_model_can_guide(self->model);
    self->spec.prefix =
        td_native_model_slots(self->model) > 0 && !self->options->ensemble;
    (void)printf("native: %s on %s, bf16, %zu MiB\n",
                 td_native_policy_name(self->checkpoint->policy.type),
                 backend.device, backend.bytes >> 20);
    (void)fflush(stdout);
    return TD_OK;
}

static td_err load(child *self, td_errinfo *info)
{
    const td_worker_offer *wanted = td_worker_offered(self->worker);
    const td_ops *ops = NULL;
    uint32_t device = 0;
    TD_TRY(read_device(wanted->device, &device, info));
    TD_TRY(td_native_cuda_library_load(&ops, info));
    TD_TRY(td_native_checkpoint_open(wanted->pretrained_path, &self->checkpoint,
                                     info));
    TD_TRY(td_native_model_check(self->checkpoint, info));
    TD_TRY(td_native_pipeline_new(self->checkpoint, self->options->tokenizer,
                                  &self->pipeline, info));
    TD_TRY(describe(self, info));
    TD_TRY(open_model(self, ops, device, info));
    const td_native_policy *policy = &self->checkpoint->policy;
    self->prefixes =
        calloc(td_native_model_slots(self->model) + 1, sizeof *self->prefixes);
    self->left = calloc((size_t)policy->chunk_rows * policy->action_dim,
                        sizeof *self->left);
    return self->prefixes && self->left ? TD_OK : TD_ERR_NOMEM;
}

// One that is used, by its number, or any that is not. NULL: there is none.
static kept *find_kept(const child *self, bool used, uint64_t number)
{
    for (uint32_t i = 0; i < td_native_model_slots(self->model); i++) {
        kept *at = &self->prefixes[i];
        if (at->used == used && (!used || at->number == number)) return at;
    }
    return NULL;
}

static void drop(void *user, uint64_t number)
{
    kept *of = find_kept(user, true, number);
    if (of) of->used = false;
}

static const float *find_environment(const child *self,
                                     const td_worker_item *item, uint32_t count)
{
    for (uint32_t i = 0; i < item->tensor_count; i++) {
        const td_worker_named *named = &item->tensors[i];
        const char *name =
            td_worker_at(self->worker, named->name.offset, named->name.size);
        if (!name ||
            !td_wire_text_same((td_wire_text){name, named->name.size},
                               td_wire_text_of(TD_NATIVE_ENVIRONMENT)) ||
            named->tensor.dtype != TD_WIRE_F32 ||
            named->tensor.size != count * sizeof(float))
            continue;
        return td_worker_at(self->worker, named->tensor.offset,
                            named->tensor.size);
    }
    return NULL;
}

static td_err take_numbers(child *self, const td_worker_item *item,
                           uint32_t slot, td_errinfo *info)
{
    const td_native_policy *policy = &self->checkpoint->policy;
    const td_native_pipeline_input input = {
        .state = td_worker_at(self->worker, item->state.offset,
                              policy->state_dim * sizeof(float)),
        .env = policy->env_dim ? find_environment(self, item, policy->env_dim)
                               : NULL,
        .task = {td_worker_at(self->worker, item->task.offset, item->task.size),
                 item->task.size},
    };
    td_native_pipeline_prepared *prepared = &self->prepared[slot];
    if (policy->state_dim && (!input.state || !item->state.rank))
        return td_fail(info, TD_ERR_MISMATCH, "state: is missing");
    if (policy->env_dim && !input.env)
        return td_fail(info, TD_ERR_MISMATCH,
                       "tensors." TD_NATIVE_ENVIRONMENT
                       ": is missing, or not %u x <f4",
                       policy->env_dim);
    return td_native_pipeline_preprocess(self->pipeline, &input, prepared,
                                         info);
}

static td_err take(child *self, const td_worker_item *item, uint32_t slot,
                   td_errinfo *info)
{
    TD_TRY(take_numbers(self, item, slot, info));
    for (uint32_t i = 0; i < self->spec.camera_count; i++) {
        size_t bytes = (size_t)self->spec.cameras[i].height *
                       self->spec.cameras[i].width * 3;
        const void *frame = td_worker_at(self->worker, item->images[i], bytes);
        if (!frame)
            return td_fail(info, TD_ERR_FORMAT, "images.%.63s: is not there",
                           self->spec.cameras[i].name);
        memcpy(td_native_model_frame(self->model, slot, i), frame, bytes);
    }
    return td_native_request_observe(self->model, slot, &self->prepared[slot],
                                     info);
}

// The ensemble asks who it is, and when.
static td_err join_ensemble(child *self, const td_worker_item *item,
                            float *actions)
{
    const td_wire_obs obs = {
        .ident = {.boot = item->boot, .episode = item->episode},
        .client = {td_worker_at(self->worker, item->client.offset,
                                item->client.size),
                   item->client.size},
        .cursor = item->cursor,
    };
    return obs.client.data
               ? td_native_ensemble_join(self->ensemble, &obs, actions)
               : TD_ERR_FORMAT;
}

static td_err make_answer(child *self, const td_worker_item *item,
                          uint32_t slot, float *actions, td_errinfo *info)
{
    const td_native_policy *policy = &self->checkpoint->policy;
    size_t values = (size_t)policy->chunk_rows * policy->action_dim;
    td_native_model_actions(self->model, slot, actions);
    bool finite = td_finite_f32(actions, values);
    if (finite && self->ensemble) TD_TRY(join_ensemble(self, item, actions));
    td_native_pipeline_postprocess(self->pipeline, &self->prepared[slot],
                                   policy->chunk_rows, actions);
    if (finite && td_finite_f32(actions, values)) return TD_OK;
    return td_fail(info, TD_ERR_FORMAT, "the policy gave what is not finite");
}

static void answer(child *self, const td_worker_batch *batch, uint32_t member,
                   uint32_t slot)
{
    td_errinfo why = {.text = ""};
    td_err err = make_answer(self, &batch->items[member], slot,
                             td_worker_actions(self->worker, member), &why);
    td_worker_answer_member(
        self->worker, member, err,
        err == TD_OK ? self->checkpoint->policy.chunk_rows : 0, why.text);
}

// Rows that the robot has promised, as a tensor of the wire.
static bool left_of(const child *self, const td_worker_item *item,
                    td_wire_tensor *ret_left)
{
    const td_worker_tensor *from = &item->rtc_prefix;
    td_wire_tensor left = {.dtype = (td_wire_dtype)from->dtype,
                           .rank = from->rank,
                           .size = from->size};
    if (!item->has_rtc || from->rank != 2) return false;
    memcpy(left.shape, from->shape, 2 * sizeof *left.shape);
    left.data = td_worker_at(self->worker, from->offset, from->size);
    if (!left.data ||
        left.size != (size_t)left.shape[0] * left.shape[1] * sizeof(float))
        return false;
    *ret_left = left;
    return true;
}

static td_err sample(child *self, const td_worker_item *item, uint32_t slot,
                     td_errinfo *info)
{
    td_wire_tensor left;
    const td_native_request_chance chance = {
        .seed = item->seed,
        .left = left_of(self, item, &left) ? &left : NULL,
        .delay = item->rtc_delay_steps,
        .base = self->prepared[slot].base,
        .room = self->left,
    };
    return td_native_request_sample(self->model, self->pipeline, &chance, slot,
                                    info);
}

static td_err restore(child *self, const td_worker_item *item, uint32_t slot,
                      td_errinfo *info)
{
    const kept *of = find_kept(self, true, item->prefix);
    if (!of)
        return td_fail(info, TD_ERR_NOTFOUND, "the prefix is no longer there");
    memcpy(self->prepared[slot].base, of->base, sizeof of->base);
    return td_native_model_restore(self->model, (uint32_t)(of - self->prefixes),
                                   slot, info);
}

// All that member `slot` is run with.
static td_err prepare(child *self, const td_worker_batch *batch,
                      const td_worker_item *item, uint32_t slot,
                      td_errinfo *info)
{
    TD_TRY(batch->operation == TD_WORKER_DECODE
               ? restore(self, item, slot, info)
               : take(self, item, slot, info));
    return batch->operation == TD_WORKER_PREFIX
               ? TD_OK
               : sample(self, item, slot, info);
}

static void keep(child *self, const td_worker_batch *batch, uint32_t member,
                 uint32_t slot)
{
    td_errinfo why = {.text = ""};
    kept *to = find_kept(self, false, 0);
    td_err err = TD_ERR_NOMEM;
    if (to)
        err = td_native_model_keep(self->model, slot,
                                   (uint32_t)(to - self->prefixes), &why);
    if (!to || err != TD_OK) {
        td_worker_answer_member(self->worker, member, err, 0,
                                to ? why.text
                                   : "there is no room for another prefix");
        return;
    }
    to->used = true;
    to->number = batch->items[member].prefix;
    memcpy(to->base, self->prepared[slot].base, sizeof to->base);
    td_worker_answer_prefix(self->worker, member,
                            td_native_model_prefix_bytes(self->model));
}

// IO when the GPU failed, NOMEM when it had no room for this one.
static td_err run_batch(child *self, const td_worker_batch *batch,
                        td_errinfo *info)
{
    static const td_native_part parts[] = {
        [TD_WORKER_WHOLE] = TD_NATIVE_WHOLE,
        [TD_WORKER_PREFIX] = TD_NATIVE_PREFIX,
        [TD_WORKER_DECODE] = TD_NATIVE_DECODE,
    };
    uint32_t members[TD_WORKER_MAX_BATCH], count = 0;
    for (uint32_t i = 0; i < batch->count; i++) {
        td_errinfo why = {.text = ""};
        td_err err = prepare(self, batch, &batch->items[i], count, &why);
        if (err == TD_OK)
            members[count++] = i;
        else
            td_worker_answer_member(self->worker, i, err, 0, why.text);
    }
    if (count == 0) return TD_OK;
    td_err err =
        td_native_model_run(self->model, parts[batch->operation], count, info);
    for (uint32_t i = 0; i < count; i++)
        if (err != TD_OK)
            td_worker_answer_member(self->worker, members[i], err, 0,
                                    info->text);
        else if (batch->operation == TD_WORKER_PREFIX)
            keep(self, batch, members[i], i);
        else
            answer(self, batch, members[i], i);
    return err;
}

static td_err warm_up(child *self, td_errinfo *info)
{
    int64_t start = 0;
    for (int i = 0; i < 3; i++) {
        start = td_clock_monotonic_ns();
        TD_TRY(td_native_model_run(self->model, TD_NATIVE_WHOLE, 1, info));
    }
    td_worker_ready(self->worker, td_clock_monotonic_ns() - start);
    return TD_OK;
}

static td_err serve(child *self, td_errinfo *info)
{
    const td_worker_batch *batch = NULL;
    td_err err;
    while ((err = td_worker_next(self->worker, &batch)) == TD_OK) {
        int64_t start = td_clock_monotonic_ns();
        err = run_batch(self, batch, info);
        td_worker_done(self->worker, td_clock_monotonic_ns() - start);
        if (err != TD_OK && err != TD_ERR_NOMEM) return err;
    }
    return err == TD_ERR_CLOSED ? TD_OK : err;
}

static td_err start_ensemble(child *self, td_errinfo *info)
{
    const td_native_policy *policy = &self->checkpoint->policy;
    const char *coefficient = self->options->ensemble;
    if (!coefficient) return TD_OK;
    td_err err =
        td_native_ensemble_new(strtod(coefficient, NULL), policy->chunk_rows,
                               policy->action_dim, &self->ensemble);
    return err == TD_OK ? TD_OK : td_fail(info, err, "%s", td_err_text(err));
}

static td_err run(child *self, td_errinfo *info)
{
    TD_TRY(td_worker_open(&self->worker, info));
    td_err err = load(self, info);
    if (err == TD_OK) err = start_ensemble(self, info);
    if (err != TD_OK) {
        td_worker_fail(self->worker, info->text);
        return err;
    }
    td_worker_on_drop(self->worker, drop, self);
    td_worker_want_environment(self->worker, self->checkpoint->policy.env_dim);
    TD_TRY(td_worker_describe(self->worker, &self->spec, info));
    TD_TRY(warm_up(self, info));
    return serve(self, info);
}

int td_native_child_run(const td_native_child_options *options)
{
    td_errinfo info = {.text = ""};
    TD_AUTO(child) *self = calloc(1, sizeof *self);
    if (self) self->options = options;
    td_err err = self ? run(self, &info) : TD_ERR_NOMEM;
    if (err == TD_OK) return 0;
    (void)fprintf(stderr, "native-worker: %s: %s\n", td_err_text(err),
                  info.text);
    return 1;
}
