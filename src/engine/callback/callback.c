// SPDX-License-Identifier: Apache-2.0
#include "engine/callback/callback.h"

#include "base/clock.h"
#include "base/finite.h"
#include "engine/blocking.h"
#include "engine/callback/view.h"
#include "engine/results.h"
#include "wire/msgpack/text.h"

#include <stdlib.h>
#include <string.h>

#define HANGS_TIMES 10 // as long as the longest call before

// Everything but `blocking` and what is atomic is its thread's.
typedef struct callback {
    td_engine engine;
    td_engine_spec spec;
    td_infer_function infer;
    void *user;
    td_engine_picture_reader *pictures;
    td_engine_callback_member *members; // [max_batch]
    td_engine_blocking *blocking;
    int64_t answer_ns;        // constant
    _Atomic int64_t began_ns; // of the call that runs; 0: none does
    _Atomic int64_t longest_ns;
} callback;

static void close_callback(td_engine *engine)
{
    callback *self = (callback *)engine;
    if (self->blocking) td_engine_blocking_free(self->blocking);
    if (self->pictures) td_engine_picture_reader_free(self->pictures);
    for (uint32_t i = 0; self->members && i < self->spec.max_batch; i++) {
        free(self->members[i].pixels);
        free(self->members[i].joined);
    }
    free(self->members);
    free(self);
}

static void callback_free(callback *self)
{
    close_callback(&self->engine);
}
TD_AUTO_FREE(callback, callback_free)

// What can stand in a message: nothing that is not printable, whole UTF-8.
static void clean(td_errinfo *why)
{
    why->text[sizeof why->text - 1] = '\0';
    bool whole = td_wire_text_check(&(td_wire_at){0},
                                    td_wire_text_of(why->text)) == TD_OK;
    for (char *at = why->text; *at; at++) {
        unsigned char byte = (unsigned char)*at;
        if (byte < ' ' || byte == 0x7f) *at = ' ';
        if (byte >= 0x80 && !whole) *at = '?';
    }
}

static td_err fail_with_text(td_err err, td_errinfo *why, td_errinfo *info)
{
    clean(why);
    if ((unsigned)err >= TD_ERR_COUNT) err = TD_ERR_INTERNAL;
    return td_fail(info, err, "%s",
                   why->text[0] ? why->text
                                : "the model's function could not answer this");
}

static td_err check_rows(const td_engine_spec *spec,
                         const td_infer_request *request, td_errinfo *info)
{
    if (request->rows < 1 || request->rows > spec->chunk_rows)
        return td_fail(info, TD_ERR_FORMAT,
                       "the model's function gave %u rows, a chunk has 1 to %u",
                       request->rows, spec->chunk_rows);
    size_t cells = (size_t)request->rows * spec->action_count;
    size_t bad = td_finite_first_bad(request->actions, cells);
    if (bad < cells)
        return td_fail(info, TD_ERR_FORMAT,
                       "the model's function gave row %zu, not finite in "
                       "channel %zu",
                       bad / spec->action_count, bad % spec->action_count);
    return TD_OK;
}

// What became of a member, after the function returned `err` for all.
static void settle(const callback *self, td_engine_callback_member *member,
                   td_err err, td_errinfo *why)
{
    td_infer_request *request = &member->request;
    td_engine_item *item = member->item;
    request->actions = item->actions; // whatever was made of it
    if (err != TD_OK)
        item->status = fail_with_text(err, why, item->info);
    else if (request->status != TD_OK)
        item->status =
            fail_with_text(request->status, &member->why, item->info);
    else
        item->status = check_rows(&self->spec, request, item->info);
    if (item->status == TD_OK) item->rows = request->rows;
}

static void run(void *model, const td_engine_job *job)
{
    callback *self = model;
    td_infer_request *requests[TD_ENGINE_MAX_BATCH];
    td_engine_callback_member *members[TD_ENGINE_MAX_BATCH];
    uint32_t count = 0;
    for (uint32_t i = 0; i < job->batch->count; i++) {
        td_engine_item *item = job->batch->items[i];
        td_engine_callback_member *member = &self->members[count];
        item->rows = 0;
        item->status = td_engine_callback_view(&self->spec, self->pictures,
                                               item, member, item->info);
        if (item->status != TD_OK) continue;
        requests[count] = &member->request;
        members[count++] = member;
    }
    if (count == 0) return;
    td_errinfo why = {.text = ""};
    int64_t began_ns = td_clock_monotonic_ns();
    atomic_store(&self->began_ns, began_ns);
    td_err err = self->infer(self->user, requests, count, &why);
    int64_t took_ns = td_clock_monotonic_ns() - began_ns;
    if (took_ns > atomic_load(&self->longest_ns))
        atomic_store(&self->longest_ns, took_ns);
    atomic_store(&self->began_ns, 0);
    for (uint32_t i = 0; i < count; i++)
        settle(self, members[i], err, &why);
}

static td_err check_settings(const td_engine_config *config, td_errinfo *info)
{
    const td_engine_callback_settings *settings = config->settings;
    const td_engine_spec *spec = settings->spec;
    if (!settings->infer)
        return td_fail(info, TD_ERR_INVALID,
                       "model %s: there is no function for it",
                       config->model_id);
    if (spec->action_count < 1 || spec->chunk_rows < 1 || spec->max_batch < 1 ||
        spec->max_batch > TD_ENGINE_MAX_BATCH)
        return td_fail(info, TD_ERR_INVALID,
                       "model %s: actions, chunk or max_batch make no sense",
                       config->model_id);
    return TD_OK;
}

static td_err start(callback *self, td_errinfo *info)
{
    const td_engine_blocking_config config = {
        .thread_name = "td-callback",
        .max_batch = self->spec.max_batch,
        .run = run,
        .model = self,
    };
    return td_engine_blocking_new(&config, &self->blocking, info);
}

static td_err open_callback(const td_engine_config *config,
                            td_engine **ret_engine, td_errinfo *info)
{
    const td_engine_callback_settings *settings = config->settings;
    TD_TRY(check_settings(config, info));
    TD_AUTO(callback) *self = calloc(1, sizeof *self);
    if (!self) return TD_ERR_NOMEM;
    self->engine.ops = &td_engine_callback;
    self->spec = *settings->spec;
    self->spec.any_images = self->spec.camera_count == 0;
    self->spec.model_id = config->model_id;
    self->spec.model_version = config->model_version;
    self->spec.step_period_us = config->step_period_us;
    self->infer = settings->infer;
    self->user = settings->user;
    self->answer_ns = settings->answer_ns;
    self->members = calloc(self->spec.max_batch, sizeof *self->members);
    if (!self->members) return TD_ERR_NOMEM;
    TD_TRY(td_engine_picture_reader_new(&self->pictures));
    TD_TRY(start(self, info));
    *ret_engine = &TD_TAKE(self)->engine;
    return TD_OK;
}

static const td_engine_spec *spec_callback(const td_engine *engine)
{
    return &((const callback *)engine)->spec;
}

static td_err submit_callback(td_engine *engine, td_engine_batch *batch,
                              td_engine_done done, void *user)
{
    callback *self = (callback *)engine;
    return td_engine_blocking_submit(self->blocking, TD_ENGINE_WHOLE, batch,
                                     done, user);
}

static td_engine_health health_callback(const td_engine *engine)
{
    const callback *self = (const callback *)engine;
    int64_t began_ns = atomic_load(&self->began_ns);
    if (began_ns == 0 || self->answer_ns == 0) return TD_ENGINE_READY;
    int64_t limit_ns = HANGS_TIMES * atomic_load(&self->longest_ns);
    if (limit_ns < self->answer_ns) limit_ns = self->answer_ns;
    bool hangs = td_clock_monotonic_ns() - began_ns > limit_ns;
    return hangs ? TD_ENGINE_BROKEN : TD_ENGINE_READY;
}

const td_engine_ops td_engine_callback = {
    .name = "callback",
    .open = open_callback,
    .close = close_callback,
    .spec = spec_callback,
    .submit = submit_callback,
    .health = health_callback,
};

td_err td_infer_result(td_infer_request *request, const td_infer_tensor *result,
                       td_errinfo *info)
{
    const td_engine_callback_member *member = request->library;
    td_wire_tensor tensor = {.dtype = (td_wire_dtype)result->dtype,
                             .rank = result->rank,
                             .data = result->data,
                             .size = result->bytes,
                             .has_age = result->age_us >= 0,
                             .age_us = result->age_us};
    memcpy(tensor.shape, result->shape, sizeof tensor.shape);
    td_wire_text name = {result->name.data, result->name.size};
    if (!member->item->results) return TD_OK; // nobody wants it
    return td_engine_results_add(member->item->results, name, &tensor, info);
}

td_err td_infer_set_text(td_infer_request *request, td_infer_text text,
                         td_errinfo *info)
{
    const td_engine_callback_member *member = request->library;
    td_wire_text given = {text.data, text.size};
    if (!member->item->results) return TD_OK;
    return td_engine_results_set_text(member->item->results, given, info);
}
