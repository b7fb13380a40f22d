// SPDX-License-Identifier: Apache-2.0
#include "engine/worker/ring/ring.h"

#include "wire/wire.h"

#include <stdatomic.h>
#include <string.h>

void td_engine_worker_write_begin(td_engine_worker_writer *writer,
                                  td_worker_operation operation,
                                  uint8_t *requests)
{
    writer->operation = operation;
    writer->slot = requests;
    writer->used = writer->layout->extra;
    writer->count = 0;
}

static td_err write_image(const td_engine_worker_writer *writer,
                          const td_wire_obs *obs, uint32_t index,
                          uint64_t *ret_offset, td_errinfo *info)
{
    const td_worker_camera *from = &writer->spec->cameras[index];
    td_wire_text name = {from->name,
                         (uint32_t)strnlen(from->name, sizeof from->name)};
    const td_wire_camera camera = {name, from->height, from->width};
    const td_wire_image *image =
        td_wire_image_find(obs->images, obs->image_count, name);
    if (!image)
        return td_fail(info, TD_ERR_MISMATCH, "images.%.*s: is missing",
                       (int)name.size, name.data);
    uint64_t place = writer->places[image - obs->images];
    if (place) {
        TD_TRY(td_engine_picture_check(image, &camera, info));
        *ret_offset = place;
        return TD_OK;
    }
    uint64_t offset = writer->layout->images[index] +
                      writer->count * writer->layout->image_bytes[index];
    TD_TRY(td_engine_picture_decode(writer->pictures, image, &camera,
                                    writer->slot + offset, info));
    *ret_offset = offset;
    return TD_OK;
}

static td_err write_state(const td_engine_worker_writer *writer,
                          const td_wire_tensor *state,
                          td_worker_tensor *ret_tensor, td_errinfo *info)
{
    uint32_t count = writer->spec->state_count;
    size_t size = count * sizeof(float);
    if (state->dtype != TD_WIRE_F32 || state->rank != 1 || state->size != size)
        return td_fail(info, TD_ERR_MISMATCH,
                       "state: %zu bytes of %s, the model wants %u x <f4",
                       state->size, td_wire_dtype_name(state->dtype), count);
    uint64_t offset =
        writer->layout->states + writer->count * writer->layout->state_bytes;
    memcpy(writer->slot + offset, state->data, size);
    *ret_tensor =
        (td_worker_tensor){.dtype = TD_WIRE_F32,
                           .rank = 1,
                           .shape = {count},
                           .offset = offset,
                           .size = size,
                           .age_us = state->has_age ? state->age_us : -1};
    return TD_OK;
}

static td_err write_bytes(td_engine_worker_writer *writer, const void *data,
                          size_t size, uint64_t *ret_offset, td_errinfo *info)
{
    uint64_t room = writer->layout->request_bytes - writer->used;
    if (size > room)
        return td_fail(info, TD_ERR_LIMIT,
                       "tensors and texts: no room for %zu bytes, %llu are "
                       "left in this batch",
                       size, (unsigned long long)room);
    *ret_offset = writer->used;
    if (size > 0) memcpy(writer->slot + writer->used, data, size);
    uint64_t taken = td_engine_worker_round_up(size, TD_ENGINE_WORKER_ALIGN);
    writer->used += taken < room ? taken : room;
    return TD_OK;
}

static td_err write_text(td_engine_worker_writer *writer, td_wire_text text,
                         td_worker_text *ret_text, td_errinfo *info)
{
    ret_text->size = text.size;
    return write_bytes(writer, text.data, text.size, &ret_text->offset, info);
}

static td_err write_tensor(td_engine_worker_writer *writer,
                           const td_wire_tensor *tensor,
                           td_worker_tensor *ret_tensor, td_errinfo *info)
{
    ret_tensor->dtype = tensor->dtype;
    ret_tensor->rank = tensor->rank;
    memcpy(ret_tensor->shape, tensor->shape, sizeof ret_tensor->shape);
    ret_tensor->size = tensor->size;
    ret_tensor->age_us = tensor->has_age ? tensor->age_us : -1;
    return write_bytes(writer, tensor->data, tensor->size, &ret_tensor->offset,
                       info);
}

// What a prefix is made of.
static td_err write_inputs(td_engine_worker_writer *writer,
                           const td_wire_obs *obs, td_worker_item *ret_item,
                           td_errinfo *info)
{
    if (writer->spec->state_count > 0)
        TD_TRY(write_state(writer, &obs->state, &ret_item->state, info));
    for (uint32_t i = 0; i < writer->spec->camera_count; i++)
        TD_TRY(write_image(writer, obs, i, &ret_item->images[i], info));
    for (uint32_t i = 0; i < obs->tensor_count; i++) {
        td_worker_named *named = &ret_item->tensors[i];
        TD_TRY(write_text(writer, obs->tensors[i].name, &named->name, info));
        TD_TRY(write_tensor(writer, &obs->tensors[i].tensor, &named->tensor,
                            info));
    }
    ret_item->tensor_count = obs->tensor_count;
    return TD_OK;
}

static td_err write_rest(td_engine_worker_writer *writer,
                         const td_wire_obs *obs, td_worker_item *ret_item,
                         td_errinfo *info)
{
    TD_TRY(write_text(writer, obs->client, &ret_item->client, info));
    TD_TRY(write_text(writer, obs->task, &ret_item->task, info));
    if (obs->has_rtc)
        TD_TRY(write_tensor(writer, &obs->rtc_prefix, &ret_item->rtc_prefix,
                            info));
    for (uint32_t i = 0; i < obs->metadata_count; i++) {
        td_worker_pair *pair = &ret_item->metadata[i];
        TD_TRY(write_text(writer, obs->metadata[i].name, &pair->name, info));
        TD_TRY(write_text(writer, obs->metadata[i].text, &pair->text, info));
    }
    ret_item->metadata_count = obs->metadata_count;
    return TD_OK;
}

static td_err write_item(td_engine_worker_writer *writer,
                         const td_engine_item *item, uint64_t prefix,
                         td_worker_item *ret_item, td_errinfo *info)
{
    static const td_wire_obs nothing;
    const td_wire_obs *obs = item->obs ? item->obs : &nothing;
    *ret_item = (td_worker_item){
        .seed = item->seed,
        .cursor = obs->cursor,
        .boot = obs->ident.boot,
        .episode = obs->ident.episode,
        .seq = obs->ident.seq,
        .prefix = prefix,
        .rtc_base_chunk = obs->rtc_base_chunk,
        .rtc_delay_steps = obs->rtc_delay_steps,
        .has_rtc = obs->has_rtc,
    };
    if (writer->operation != TD_WORKER_DECODE)
        TD_TRY(write_inputs(writer, obs, ret_item, info));
    return write_rest(writer, obs, ret_item, info);
}

td_err td_engine_worker_write_member(td_engine_worker_writer *writer,
                                     const td_engine_item *item,
                                     uint64_t prefix, td_errinfo *info)
{
    void *slot = writer->slot;
    td_worker_batch *batch = slot;
    uint64_t used = writer->used;
    td_err err =
        write_item(writer, item, prefix, &batch->items[writer->count], info);
    if (err == TD_OK)
        writer->count++;
    else
        writer->used = used;
    return err;
}

void td_engine_worker_write_end(const td_engine_worker_writer *writer,
                                uint64_t generation)
{
    void *slot = writer->slot;
    td_worker_batch *batch = slot;
    batch->count = writer->count;
    batch->operation = writer->operation;
    __atomic_store_n(&batch->generation, generation, __ATOMIC_RELEASE);
}
