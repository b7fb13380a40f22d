// SPDX-License-Identifier: Apache-2.0
#include "cli/dataset/inference.h"

#include "base/sync/event.h"
#include "media/resize.h"

#include <stdio.h>
#include <stdlib.h>

#define STATE "observation.state"
#define ENVIRONMENT "observation.environment_state"
#define IMAGES "observation.images."
#define ACTION "action"
#define KEY_BYTES 256

typedef struct camera {
    char key[KEY_BYTES];
    uint8_t *recorded, *shown;
    td_media_resizer *resizer; // NULL: shown is recorded
} camera;

struct td_cli_inference {
    td_engine *engine;
    td_dataset_reader *reader;
    const td_engine_spec *spec;
    float *actions; // of one chunk
    float state[TD_WIRE_MAX_CHANNELS], environment[TD_WIRE_MAX_CHANNELS];
    camera cameras[TD_WIRE_MAX_IMAGES];
    td_wire_obs obs;
    td_errinfo why;
    td_engine_item item;
    td_engine_batch batch;
    td_event answered;
};

void td_cli_inference_free(td_cli_inference *inference)
{
    free(inference->actions);
    for (size_t i = 0; i < TD_COUNT_OF(inference->cameras); i++) {
        camera *each = &inference->cameras[i];
        if (each->resizer) {
            td_media_resizer_free(each->resizer);
            free(each->shown);
        }
        free(each->recorded);
    }
    free(inference);
}

static td_err check_size(const td_cli_inference *self, const char *key,
                         uint32_t wanted, td_errinfo *info)
{
    const td_dataset_feature *feature =
        td_dataset_info_find(td_dataset_reader_info(self->reader), key);
    size_t count = feature ? td_dataset_feature_size(feature) : 0;
    if (count == wanted) return TD_OK;
    return td_fail(info, TD_ERR_MISMATCH,
                   "the policy has %u values of %s, the dataset %zu", wanted,
                   key, count);
}

static td_err find_picture(const td_cli_inference *self, const char *key,
                           td_media_size *ret_size, td_errinfo *info)
{
    const td_dataset_feature *feature =
        td_dataset_info_find(td_dataset_reader_info(self->reader), key);
    if (feature && td_dataset_feature_picture(feature, &ret_size->height,
                                              &ret_size->width) == TD_OK)
        return TD_OK;
    return td_fail(info, TD_ERR_MISMATCH,
                   "the policy wants %s, which the dataset has no pictures of",
                   key);
}

static size_t bytes_of(td_media_size size)
{
    return (size_t)size.height * size.width * 3;
}

// As a robot does it: pictures are made smaller, never larger.
static td_err open_camera(camera *self, td_media_size from, td_media_size to,
                          td_errinfo *info)
{
    if (bytes_of(from) == 0 || bytes_of(to) == 0)
        return td_fail(info, TD_ERR_MISMATCH, "%s has no pixels", self->key);
    self->recorded = self->shown = malloc(bytes_of(from));
    if (!self->recorded) return TD_ERR_NOMEM;
    if (from.height == to.height && from.width == to.width) return TD_OK;
    if (td_media_resizer_new(from, to, &self->resizer) != TD_OK)
        return td_fail(info, TD_ERR_MISMATCH,
                       "the policy wants %s as %u x %u, the dataset has only "
                       "%u x %u",
                       self->key, to.height, to.width, from.height, from.width);
    self->shown = malloc(bytes_of(to));
    return self->shown ? TD_OK : TD_ERR_NOMEM;
}

static td_wire_tensor floats_of(const float *values, uint32_t count)
{
    return (td_wire_tensor){.dtype = TD_WIRE_F32,
                            .rank = 1,
                            .shape = {count},
                            .data = values,
                            .size = count * sizeof *values};
}

static td_err add_camera(td_cli_inference *self, uint32_t index,
                         td_errinfo *info)
{
    const td_wire_camera *wanted = &self->spec->cameras[index];
    camera *added = &self->cameras[index];
    const td_media_size to = {wanted->height, wanted->width};
    td_media_size from = {0};
    (void)snprintf(added->key, sizeof added->key, IMAGES "%.*s",
                   (int)wanted->name.size, wanted->name.data);
    TD_TRY(find_picture(self, added->key, &from, info));
    TD_TRY(open_camera(added, from, to, info));
    self->obs.images[self->obs.image_count++] =
        (td_wire_image){.name = wanted->name,
                        .codec = TD_WIRE_RAW,
                        .shape = {to.height, to.width, 3},
                        .data = added->shown,
                        .size = bytes_of(to)};
    return TD_OK;
}

static void fill_question(td_cli_inference *self)
{
    const td_engine_spec *spec = self->spec;
    self->obs.client = td_wire_text_of("replay");
    self->obs.state = floats_of(self->state, spec->state_count);
    if (spec->environment_count > 0)
        self->obs.tensors[self->obs.tensor_count++] = (td_wire_named){
            .name = td_wire_text_of("environment_state"),
            .tensor = floats_of(self->environment, spec->environment_count)};
    self->item = (td_engine_item){
        .obs = &self->obs, .actions = self->actions, .info = &self->why};
    self->batch.items[0] = &self->item;
    self->batch.count = 1;
}

td_err td_cli_inference_new(td_engine *engine, td_dataset_reader *reader,
                            td_cli_inference **ret_inference, td_errinfo *info)
{
    TD_AUTO(td_cli_inference) *self = calloc(1, sizeof *self);
    if (!self) return TD_ERR_NOMEM;
    const td_engine_spec *spec = engine->ops->spec(engine);
    self->engine = engine;
    self->reader = reader;
    self->spec = spec;
    td_event_init(&self->answered);
    size_t values = (size_t)spec->chunk_rows * spec->action_count;
    self->actions = calloc(values, sizeof *self->actions);
    if (!self->actions) return TD_ERR_NOMEM;
    TD_TRY(check_size(self, STATE, spec->state_count, info));
    TD_TRY(check_size(self, ACTION, spec->action_count, info));
    if (spec->environment_count > 0)
        TD_TRY(check_size(self, ENVIRONMENT, spec->environment_count, info));
    for (uint32_t i = 0; i < spec->camera_count; i++)
        TD_TRY(add_camera(self, i, info));
    fill_question(self);
    *ret_inference = TD_TAKE(self);
    return TD_OK;
}

static td_err look(td_cli_inference *self, uint64_t row, td_errinfo *info)
{
    td_dataset_reader *reader = self->reader;
    const td_engine_spec *spec = self->spec;
    td_dataset_reading reading;
    TD_TRY(td_dataset_reader_seek(reader, row, &reading, info));
    TD_TRY(td_dataset_reader_floats(reader, STATE, spec->state_count,
                                    self->state));
    if (spec->environment_count > 0)
        TD_TRY(td_dataset_reader_floats(
            reader, ENVIRONMENT, spec->environment_count, self->environment));
    for (uint32_t i = 0; i < spec->camera_count; i++) {
        camera *each = &self->cameras[i];
        TD_TRY(
            td_dataset_reader_picture(reader, each->key, each->recorded, info));
        if (each->resizer)
            td_media_resize(each->resizer, each->recorded, each->shown);
    }
    self->obs.task = td_wire_text_of(reading.task);
    self->obs.cursor = reading.frame;
    self->item.seed = row;
    return TD_OK;
}

// Engine's thread.
static void on_done(void *user, td_engine_batch *batch)
{
    (void)batch;
    td_cli_inference *self = user;
    td_event_signal(&self->answered);
}

static td_err ask(td_cli_inference *self, td_errinfo *info)
{
    td_engine *engine = self->engine;
    self->item.status = TD_ERR_INTERNAL;
    td_err err = engine->ops->submit(engine, &self->batch, on_done, self);
    if (err != TD_OK)
        return td_fail(info, err, "the policy takes no request: %s",
                       td_err_text(err));
    (void)td_event_wait_until(&self->answered, INT64_MAX);
    err = self->item.status;
    if (err == TD_OK) return TD_OK;
    return td_fail(info, err, "the policy does not answer: %s",
                   self->why.text[0] ? self->why.text : td_err_text(err));
}

td_err td_cli_inference_observe(td_cli_inference *inference, uint64_t row,
                                const td_wire_ident *ident,
                                const td_wire_obs **ret_obs, td_errinfo *info)
{
    inference->obs.ident = *ident;
    TD_TRY(look(inference, row, info));
    *ret_obs = &inference->obs;
    return TD_OK;
}

td_err td_cli_inference_ask(td_cli_inference *inference,
                            const td_engine_item **ret_answer, td_errinfo *info)
{
    TD_TRY(ask(inference, info));
    *ret_answer = &inference->item;
    return TD_OK;
}
