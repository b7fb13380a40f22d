// SPDX-License-Identifier: Apache-2.0
#include "engine/callback/view.h"

#include "wire/msgpack/text.h"
#include "wire/outline.h"
#include "wire/wire.h"

#include <stdlib.h>
#include <string.h>

#define SAME(infer, wire)                                                      \
    _Static_assert((int)(infer) == (int)(wire), "one list of both")
SAME(TD_INFER_F32, TD_WIRE_F32);
SAME(TD_INFER_BF16, TD_WIRE_BF16);
SAME(TD_INFER_U8, TD_WIRE_U8);
SAME(TD_INFER_I64, TD_WIRE_I64);
SAME(TD_INFER_BOOL, TD_WIRE_BOOL);
SAME(TD_INFER_JPEG, TD_WIRE_JPEG);
SAME(TD_INFER_RAW, TD_WIRE_RAW);
SAME(TD_INFER_MAX_RANK, TD_WIRE_MAX_RANK);

static td_infer_text text_of(td_wire_text text)
{
    return (td_infer_text){text.data, text.size};
}

static td_infer_tensor tensor_of(td_wire_text name, const td_wire_tensor *from)
{
    td_infer_tensor tensor = {
        .name = text_of(name),
        .dtype = (td_infer_dtype)from->dtype,
        .rank = from->rank,
        .data = from->data,
        .bytes = from->size,
        .age_us = from->has_age ? from->age_us : -1,
    };
    memcpy(tensor.shape, from->shape, sizeof tensor.shape);
    return tensor;
}

static td_err view_state(const td_engine_spec *spec, const td_wire_obs *obs,
                         td_engine_callback_member *member, td_errinfo *info)
{
    const td_wire_tensor *state = &obs->state;
    size_t size = spec->state_count * sizeof(float);
    if (state->dtype != TD_WIRE_F32 || state->rank != 1 || state->size != size)
        return td_fail(info, TD_ERR_MISMATCH,
                       "state: %zu bytes of %s, the model wants %u x <f4",
                       state->size, td_wire_dtype_name(state->dtype),
                       spec->state_count);
    memcpy(member->state, state->data, size);
    return TD_OK;
}

// An observation's images, each whole.
typedef struct whole_images {
    td_wire_image images[TD_WIRE_MAX_IMAGES];
    uint32_t count;
} whole_images;

static td_err make_room(td_engine_callback_member *member, size_t size)
{
    if (size <= member->room) return TD_OK;
    free(member->joined);
    member->room = 0;
    member->joined = malloc(size);
    if (!member->joined) return TD_ERR_NOMEM;
    member->room = size;
    return TD_OK;
}

static td_err join_images(const td_wire_obs *obs,
                          td_engine_callback_member *member,
                          whole_images *ret_whole)
{
    size_t size = 0, used = 0;
    for (uint32_t i = 0; i < obs->image_count; i++)
        size += obs->images[i].data ? 0 : obs->images[i].size;
    TD_TRY(make_room(member, size));
    ret_whole->count = obs->image_count;
    for (uint32_t i = 0; i < obs->image_count; i++) {
        td_wire_image *image = &ret_whole->images[i];
        *image = obs->images[i];
        if (image->data) continue;
        td_wire_image_copy(image, 0, image->size, member->joined + used);
        image->data = member->joined + used;
        used += image->size;
    }
    return TD_OK;
}

static td_infer_image as_it_came(const td_wire_image *image)
{
    return (td_infer_image){
        .name = text_of(image->name),
        .height = image->shape[0],
        .width = image->shape[1],
        .data = image->data,
        .bytes = image->size,
        .codec = (td_infer_codec)image->codec,
    };
}

static td_err make_pixels(const td_engine_spec *spec,
                          td_engine_callback_member *member)
{
    size_t bytes = 0;
    if (member->pixels) return TD_OK;
    for (uint32_t i = 0; i < spec->camera_count; i++)
        bytes += td_engine_picture_bytes(&spec->cameras[i]);
    member->pixels = malloc(bytes);
    return member->pixels ? TD_OK : TD_ERR_NOMEM;
}

// Where the camera's picture begins among those of all.
static size_t offset_of(const td_engine_spec *spec, uint32_t camera)
{
    size_t offset = 0;
    for (uint32_t i = 0; i < camera; i++)
        offset += td_engine_picture_bytes(&spec->cameras[i]);
    return offset;
}

static td_err view_camera(const td_engine_spec *spec,
                          td_engine_picture_reader *pictures,
                          const whole_images *whole, uint32_t index,
                          td_engine_callback_member *member, td_errinfo *info)
{
    const td_wire_camera *camera = &spec->cameras[index];
    const td_wire_image *image =
        td_wire_image_find(whole->images, whole->count, camera->name);
    if (!image)
        return td_fail(info, TD_ERR_MISMATCH, "images.%.*s: is missing",
                       (int)camera->name.size, camera->name.data);
    td_infer_image *view = &member->images[index];
    *view = as_it_came(image);
    view->height = camera->height;
    view->width = camera->width;
    if (image->codec == TD_WIRE_RAW) {
        view->rgb = image->data;
        return td_engine_picture_check(image, camera, info);
    }
    TD_TRY(make_pixels(spec, member));
    uint8_t *rgb = member->pixels + offset_of(spec, index);
    view->rgb = rgb;
    return td_engine_picture_decode(pictures, image, camera, rgb, info);
}

static bool is_camera(const td_engine_spec *spec, td_wire_text name)
{
    for (uint32_t i = 0; i < spec->camera_count; i++)
        if (td_wire_text_same(spec->cameras[i].name, name)) return true;
    return false;
}

static td_err view_images(const td_engine_spec *spec,
                          td_engine_picture_reader *pictures,
                          const td_wire_obs *obs,
                          td_engine_callback_member *member, td_errinfo *info)
{
    whole_images whole;
    uint32_t count = spec->camera_count;
    TD_TRY(join_images(obs, member, &whole));
    for (uint32_t i = 0; i < count; i++)
        TD_TRY(view_camera(spec, pictures, &whole, i, member, info));
    for (uint32_t i = 0; i < whole.count; i++)
        if (!is_camera(spec, whole.images[i].name))
            member->images[count++] = as_it_came(&whole.images[i]);
    member->request.images = member->images;
    member->request.image_count = count;
    return TD_OK;
}

static void view_rest(const td_wire_obs *obs, td_engine_callback_member *member)
{
    for (uint32_t i = 0; i < obs->tensor_count; i++)
        member->tensors[i] =
            tensor_of(obs->tensors[i].name, &obs->tensors[i].tensor);
    for (uint32_t i = 0; i < obs->metadata_count; i++)
        member->metadata[i] = (td_infer_pair){text_of(obs->metadata[i].name),
                                              text_of(obs->metadata[i].text)};
    if (obs->has_rtc)
        member->rtc_prefix = tensor_of((td_wire_text){0}, &obs->rtc_prefix);
}

static td_infer_request request_of(const td_engine_spec *spec,
                                   const td_engine_item *item,
                                   td_engine_callback_member *member)
{
    const td_wire_obs *obs = item->obs;
    return (td_infer_request){
        .client = text_of(obs->client),
        .task = text_of(obs->task),
        .boot = obs->ident.boot,
        .episode = obs->ident.episode,
        .seq = obs->ident.seq,
        .cursor = obs->cursor,
        .seed = item->seed,
        .urgency = obs->urgency,
        .priority = obs->priority,
        .steps_remaining =
            obs->has_steps_remaining ? (int64_t)obs->steps_remaining : -1,
        .state = member->state,
        .state_count = spec->state_count,
        .state_age_us = obs->state.has_age ? obs->state.age_us : -1,
        .tensors = member->tensors,
        .tensor_count = obs->tensor_count,
        .metadata = member->metadata,
        .metadata_count = obs->metadata_count,
        .has_rtc = obs->has_rtc,
        .rtc_base_chunk = obs->rtc_base_chunk,
        .rtc_delay_steps = obs->rtc_delay_steps,
        .rtc_prefix = obs->has_rtc ? &member->rtc_prefix : NULL,
        .actions = item->actions,
        .chunk_rows = spec->chunk_rows,
        .action_count = spec->action_count,
        .rows = spec->chunk_rows,
        .info = &member->why,
        .library = member,
    };
}

td_err td_engine_callback_view(const td_engine_spec *spec,
                               td_engine_picture_reader *pictures,
                               td_engine_item *item,
                               td_engine_callback_member *member,
                               td_errinfo *info)
{
    const td_wire_obs *obs = item->obs;
    member->item = item;
    member->why.text[0] = '\0';
    member->request = request_of(spec, item, member);
    TD_TRY(view_state(spec, obs, member, info));
    view_rest(obs, member);
    return view_images(spec, pictures, obs, member, info);
}
