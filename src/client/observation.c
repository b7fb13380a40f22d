// SPDX-License-Identifier: Apache-2.0
// The program's observation in the words of the wire: views, nothing is copied.
// What a pointer may hide is checked here, the rest by the encoder.
#include "client/model.h"

#include <string.h>

#define LONGEST_MS (INT64_MAX / 1000)

static td_err check_count(const char *what, uint32_t count, const void *given,
                          uint32_t most, td_errinfo *info)
{
    if (count > most)
        return td_fail(info, TD_ERR_LIMIT, "%s: %u are over the limit of %u",
                       what, count, most);
    if (count > 0 && !given)
        return td_fail(info, TD_ERR_INVALID, "%s: are missing", what);
    return TD_OK;
}

static td_err check_given(const char *what, const char *name, const void *data,
                          size_t bytes, td_errinfo *info)
{
    if (!name) return td_fail(info, TD_ERR_INVALID, "%s: has no name", what);
    if (bytes > 0 && !data)
        return td_fail(info, TD_ERR_INVALID, "%s %.80s: has no data", what,
                       name);
    return TD_OK;
}

static size_t needed_bytes(const td_model_tensor *tensor)
{
    size_t bytes = td_wire_dtype_bytes((td_wire_dtype)tensor->dtype);
    for (uint32_t i = 0; i < tensor->rank; i++)
        if (__builtin_mul_overflow(bytes, tensor->shape[i], &bytes))
            return SIZE_MAX;
    return bytes;
}

static td_err fill_tensor(const char *what, const char *name,
                          const td_model_tensor *given, td_wire_tensor *tensor,
                          td_errinfo *info)
{
    if (given->dtype < TD_MODEL_F32 || given->dtype > TD_MODEL_BOOL ||
        given->rank > TD_MODEL_MAX_RANK)
        return td_fail(info, TD_ERR_INVALID,
                       "%s %.80s: dtype %d or rank %u is none", what,
                       name ? name : "", (int)given->dtype, given->rank);
    size_t bytes = given->bytes ? given->bytes : needed_bytes(given);
    TD_TRY(check_given(what, name, given->data, bytes, info));
    *tensor = (td_wire_tensor){
        .dtype = (td_wire_dtype)given->dtype,
        .rank = given->rank,
        .data = given->data,
        .size = bytes,
        .has_age = given->has_age,
        .age_us = given->age_us,
    };
    memcpy(tensor->shape, given->shape, sizeof tensor->shape);
    return TD_OK;
}

// A model that takes no state is sent one of no values.
static td_err fill_state(const td_model_observation *given, td_wire_obs *obs,
                         td_errinfo *info)
{
    static const td_wire_tensor none = {
        .dtype = TD_WIRE_F32, .rank = 1, .data = ""};
    if (given->state.rank > 0)
        return fill_tensor("state", "", &given->state, &obs->state, info);
    obs->state = none;
    return TD_OK;
}

static td_err fill_tensors(const td_model_observation *given, td_wire_obs *obs,
                           td_errinfo *info)
{
    TD_TRY(check_count("tensors", given->tensor_count, given->tensors,
                       TD_WIRE_MAX_TENSORS, info));
    for (uint32_t i = 0; i < given->tensor_count; i++) {
        const td_model_tensor *tensor = &given->tensors[i];
        TD_TRY(fill_tensor("tensor", tensor->name, tensor,
                           &obs->tensors[i].tensor, info));
        obs->tensors[i].name = td_wire_text_of(tensor->name);
    }
    obs->tensor_count = given->tensor_count;
    return TD_OK;
}

static td_err fill_image(const td_model_image *given, td_wire_image *image,
                         td_errinfo *info)
{
    static const td_wire_codec codecs[] = {
        [TD_MODEL_RAW] = TD_WIRE_RAW,
        [TD_MODEL_JPEG] = TD_WIRE_JPEG,
        [TD_MODEL_PNG] = TD_WIRE_PNG,
    };
    if (given->codec < TD_MODEL_RAW || given->codec > TD_MODEL_PNG)
        return td_fail(info, TD_ERR_INVALID, "image: codec %d is none",
                       (int)given->codec);
    *image = (td_wire_image){
        .codec = codecs[given->codec],
        .data = given->data,
        .size = given->bytes,
    };
    if (given->codec == TD_MODEL_RAW) {
        const uint32_t shape[] = {given->height, given->width, given->channels};
        memcpy(image->shape, shape, sizeof shape);
        if (image->size == 0)
            image->size = (size_t)shape[0] * shape[1] * shape[2];
    }
    TD_TRY(check_given("image", given->name, given->data, image->size, info));
    image->name = td_wire_text_of(given->name);
    return TD_OK;
}

static td_err fill_images(const td_model_observation *given, td_wire_obs *obs,
                          td_errinfo *info)
{
    TD_TRY(check_count("images", given->image_count, given->images,
                       TD_WIRE_MAX_IMAGES, info));
    for (uint32_t i = 0; i < given->image_count; i++)
        TD_TRY(fill_image(&given->images[i], &obs->images[i], info));
    obs->image_count = given->image_count;
    return TD_OK;
}

static td_err fill_metadata(const td_model *model,
                            const td_model_observation *given, td_wire_obs *obs,
                            td_errinfo *info)
{
    const char *type = model->connection->client_type;
    TD_TRY(check_count("metadata", given->metadata_count, given->metadata,
                       TD_WIRE_MAX_METADATA - 1, info));
    for (uint32_t i = 0; i < given->metadata_count; i++) {
        const td_model_pair *pair = &given->metadata[i];
        TD_TRY(check_given("metadata", pair->name, pair->text, 1, info));
        obs->metadata[i] = (td_wire_pair){td_wire_text_of(pair->name),
                                          td_wire_text_of(pair->text)};
    }
    obs->metadata_count = given->metadata_count;
    if (type)
        obs->metadata[obs->metadata_count++] = (td_wire_pair){
            td_wire_text_of("client_type"), td_wire_text_of(type)};
    return TD_OK;
}

static void fill_wishes(const td_model *model,
                        const td_model_observation *given, td_wire_obs *obs)
{
    const td_model_settings *settings = &model->settings;
    int64_t budget_ms = given->latency_budget_ms ? given->latency_budget_ms
                                                 : settings->latency_budget_ms;
    obs->urgency = given->urgency;
    obs->priority = settings->has_priority ? settings->priority : 1;
    if (given->has_priority) obs->priority = given->priority;
    obs->has_steps_remaining = given->has_steps_remaining;
    obs->steps_remaining = given->steps_remaining;
    obs->must_go = given->must_go;
    obs->cursor = given->cursor;
    obs->has_budget = budget_ms > 0;
    obs->budget_us = budget_ms < LONGEST_MS ? budget_ms * 1000 : INT64_MAX;
}

static td_err check_times(const td_model_observation *given, td_errinfo *info)
{
    if (given->limit_ms >= 0 && given->latency_budget_ms >= 0) return TD_OK;
    return td_fail(info, TD_ERR_INVALID,
                   "limit_ms and latency_budget_ms: must not be negative");
}

td_err td_client_observation_fill(td_model *model,
                                  const td_model_observation *given,
                                  td_errinfo *info)
{
    td_wire_obs *obs = &model->obs;
    TD_TRY(check_times(given, info));
    *obs = (td_wire_obs){
        .ident = {.boot = model->boot, .episode = given->episode},
        .client = td_wire_text_of(model->connection->client),
        .task = td_wire_text_of(given->task ? given->task : ""),
    };
    fill_wishes(model, given, obs);
    TD_TRY(fill_state(given, obs, info));
    TD_TRY(fill_tensors(given, obs, info));
    TD_TRY(fill_images(given, obs, info));
    return fill_metadata(model, given, obs, info);
}
