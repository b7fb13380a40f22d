// SPDX-License-Identifier: Apache-2.0
// The program's observation in the words of the wire: views, nothing is copied.
// What a pointer may hide is checked here, the rest by the encoder.
#include "client/model.h"

#include <string.h>

#define LONGEST_MS (INT64_MAX / 1000)

static td_err check_count(const char *what, uint32_t count, const void *input,
                          uint32_t most, td_errinfo *info)
{
    if (count > most)
        return td_fail(info, TD_ERR_LIMIT, "%s: %u are over the limit of %u",
                       what, count, most);
    if (count > 0 && !input)
        return td_fail(info, TD_ERR_INVALID, "%s: are missing", what);
    return TD_OK;
}

static td_err check_value(const char *what, const char *name, const void *data,
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
                          const td_model_tensor *input, td_wire_tensor *tensor,
                          td_errinfo *info)
{
    if (input->dtype < TD_MODEL_F32 || input->dtype > TD_MODEL_BOOL ||
        input->rank > TD_MODEL_MAX_RANK)
        return td_fail(info, TD_ERR_INVALID,
                       "%s %.80s: there is no tensor of dtype %d and rank %u",
                       what, name ? name : "", (int)input->dtype, input->rank);
    size_t bytes = input->bytes ? input->bytes : needed_bytes(input);
    TD_TRY(check_value(what, name, input->data, bytes, info));
    *tensor = (td_wire_tensor){
        .dtype = (td_wire_dtype)input->dtype,
        .rank = input->rank,
        .data = input->data,
        .size = bytes,
        .has_age = input->has_age,
        .age_us = input->age_us,
    };
    memcpy(tensor->shape, input->shape, sizeof tensor->shape);
    return TD_OK;
}

// A model that takes no state is sent one of no values.
static td_err fill_state(const td_model_observation *input, td_wire_obs *obs,
                         td_errinfo *info)
{
    static const td_wire_tensor none = {
        .dtype = TD_WIRE_F32, .rank = 1, .data = ""};
    if (input->state.rank > 0)
        return fill_tensor("state", "", &input->state, &obs->state, info);
    obs->state = none;
    return TD_OK;
}

static td_err fill_tensors(const td_model_observation *input, td_wire_obs *obs,
                           td_errinfo *info)
{
    TD_TRY(check_count("tensors", input->tensor_count, input->tensors,
                       TD_WIRE_MAX_TENSORS, info));
    for (uint32_t i = 0; i < input->tensor_count; i++) {
        const td_model_tensor *tensor = &input->tensors[i];
        TD_TRY(fill_tensor("tensor", tensor->name, tensor,
                           &obs->tensors[i].tensor, info));
        obs->tensors[i].name = td_wire_text_of(tensor->name);
    }
    obs->tensor_count = input->tensor_count;
    return TD_OK;
}

static td_err fill_image(const td_model_image *input, td_wire_image *image,
                         td_errinfo *info)
{
    static const td_wire_codec codecs[] = {
        [TD_MODEL_RAW] = TD_WIRE_RAW,
        [TD_MODEL_JPEG] = TD_WIRE_JPEG,
        [TD_MODEL_PNG] = TD_WIRE_PNG,
    };
    if (input->codec < TD_MODEL_RAW || input->codec > TD_MODEL_PNG)
        return td_fail(info, TD_ERR_INVALID, "image: there is no codec %d",
                       (int)input->codec);
    *image = (td_wire_image){
        .codec = codecs[input->codec],
        .data = input->data,
        .size = input->bytes,
    };
    if (input->codec == TD_MODEL_RAW) {
        const uint32_t shape[] = {input->height, input->width, input->channels};
        memcpy(image->shape, shape, sizeof shape);
        if (image->size == 0)
            image->size = (size_t)shape[0] * shape[1] * shape[2];
    }
    TD_TRY(check_value("image", input->name, input->data, image->size, info));
    image->name = td_wire_text_of(input->name);
    return TD_OK;
}

static td_err fill_images(const td_model_observation *input, td_wire_obs *obs,
                          td_errinfo *info)
{
    TD_TRY(check_count("images", input->image_count, input->images,
                       TD_WIRE_MAX_IMAGES, info));
    for (uint32_t i = 0; i < input->image_count; i++)
        TD_TRY(fill_image(&input->images[i], &obs->images[i], info));
    obs->image_count = input->image_count;
    return TD_OK;
}

static td_err fill_metadata(const td_model *model,
                            const td_model_observation *input, td_wire_obs *obs,
                            td_errinfo *info)
{
    const char *type = model->connection->client_type;
    TD_TRY(check_count("metadata", input->metadata_count, input->metadata,
                       TD_WIRE_MAX_METADATA - 1, info));
    for (uint32_t i = 0; i < input->metadata_count; i++) {
        const td_model_pair *pair = &input->metadata[i];
        TD_TRY(check_value("metadata", pair->name, pair->text, 1, info));
        obs->metadata[i] = (td_wire_pair){td_wire_text_of(pair->name),
                                          td_wire_text_of(pair->text)};
    }
    obs->metadata_count = input->metadata_count;
    if (type)
        obs->metadata[obs->metadata_count++] = (td_wire_pair){
            td_wire_text_of("client_type"), td_wire_text_of(type)};
    return TD_OK;
}

static void fill_scheduling(const td_model *model,
                            const td_model_observation *input, td_wire_obs *obs)
{
    const td_model_settings *settings = &model->settings;
    int64_t budget_ms = input->latency_budget_ms ? input->latency_budget_ms
                                                 : settings->latency_budget_ms;
    obs->urgency = input->urgency;
    obs->priority = settings->has_priority ? settings->priority : 1;
    if (input->has_priority) obs->priority = input->priority;
    obs->has_steps_remaining = input->has_steps_remaining;
    obs->steps_remaining = input->steps_remaining;
    obs->must_go = input->must_go;
    obs->cursor = input->cursor;
    obs->has_budget = budget_ms > 0;
    obs->budget_us = budget_ms < LONGEST_MS ? budget_ms * 1000 : INT64_MAX;
}

static td_err check_times(const td_model_observation *input, td_errinfo *info)
{
    if (input->limit_ms >= 0 && input->latency_budget_ms >= 0) return TD_OK;
    return td_fail(info, TD_ERR_INVALID,
                   "limit_ms and latency_budget_ms: must not be negative");
}

td_err td_client_observation_fill(td_model *model,
                                  const td_model_observation *input,
                                  td_errinfo *info)
{
    td_wire_obs *obs = &model->obs;
    TD_TRY(check_times(input, info));
    *obs = (td_wire_obs){
        .ident = {.boot = model->boot, .episode = input->episode},
        .client = td_wire_text_of(model->connection->client),
        .task = td_wire_text_of(input->task ? input->task : ""),
    };
    fill_scheduling(model, input, obs);
    TD_TRY(fill_state(input, obs, info));
    TD_TRY(fill_tensors(input, obs, info));
    TD_TRY(fill_images(input, obs, info));
    return fill_metadata(model, input, obs, info);
}
