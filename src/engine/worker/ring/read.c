// SPDX-License-Identifier: Apache-2.0
#include "engine/worker/ring/ring.h"

#include "base/finite.h"
#include "engine/results.h"
#include "engine/worker/ring/spec.h"
#include "wire/wire.h"

#include <string.h>

bool td_engine_worker_read_ready(const td_worker_result *shared,
                                 uint64_t generation)
{
    return __atomic_load_n(&shared->generation, __ATOMIC_ACQUIRE) == generation;
}

// Says why in words that can stand in a message, whatever the other side wrote.
static td_err fail_as_told(const td_worker_answer *answer, td_errinfo *info)
{
    char why[TD_ENGINE_WORKER_TEXT_BYTES];
    td_engine_worker_spec_text(answer->error, sizeof answer->error, why);
    td_err err = answer->status < TD_ERR_COUNT ? (td_err)answer->status
                                               : TD_ERR_INTERNAL;
    return td_fail(info, err, "%s",
                   why[0] ? why : "the worker could not answer this");
}

static td_err read_actions(const td_worker_spec *spec, const void *shared,
                           uint32_t rows, td_engine_item *item)
{
    if (rows < 1 || rows > spec->chunk_rows)
        return td_fail(item->info, TD_ERR_FORMAT,
                       "the worker gave %u rows, a chunk has 1 to %u", rows,
                       spec->chunk_rows);
    size_t cells = (size_t)rows * spec->action_count;
    memcpy(item->actions, shared, cells * sizeof(float));
    size_t bad = td_finite_first_bad(item->actions, cells);
    if (bad < cells)
        return td_fail(item->info, TD_ERR_FORMAT,
                       "the worker's row %zu is not finite in channel %zu",
                       bad / spec->action_count, bad % spec->action_count);
    item->rows = rows;
    return TD_OK;
}

bool td_engine_worker_read_shape(const td_worker_value *value,
                                 td_wire_tensor *ret_tensor)
{
    bool text = value->dtype == TD_WORKER_TEXT;
    if (value->rank < 1 || value->rank > (text ? 1 : TD_WIRE_MAX_RANK))
        return false;
    if (!text && value->dtype > TD_WIRE_BOOL) return false;
    *ret_tensor = (td_wire_tensor){
        .dtype = text ? TD_WIRE_U8 : (td_wire_dtype)value->dtype,
        .rank = value->rank,
    };
    memcpy(ret_tensor->shape, value->shape, value->rank * sizeof(uint32_t));
    ret_tensor->size = td_wire_tensor_bytes(ret_tensor);
    return true;
}

static td_err add_value(td_engine_results *results,
                        const td_worker_value *value,
                        const td_wire_tensor *tensor, td_errinfo *info)
{
    const td_wire_text name = {
        value->name, (uint32_t)strnlen(value->name, sizeof value->name)};
    const td_wire_text text = {tensor->data, (uint32_t)tensor->size};
    return value->dtype == TD_WORKER_TEXT
               ? td_engine_results_set_text(results, text, info)
               : td_engine_results_add(results, name, tensor, info);
}

// The values follow each other at `data`, where there is `room` for them.
static td_err read_values(const td_worker_value *shared, uint32_t count,
                          const uint8_t *data, uint64_t room,
                          td_engine_item *item)
{
    if (count > TD_WIRE_MAX_TENSORS)
        return td_fail(item->info, TD_ERR_FORMAT,
                       "the worker gave %u results, at most %u", count,
                       TD_WIRE_MAX_TENSORS);
    uint64_t at = 0;
    for (uint32_t i = 0; i < count; i++) {
        td_worker_value value;
        td_wire_tensor tensor;
        memcpy(&value, &shared[i], sizeof value);
        if (!td_engine_worker_read_shape(&value, &tensor) ||
            tensor.size > room - at)
            return td_fail(item->info, TD_ERR_FORMAT,
                           "the worker's result %u is malformed or too large",
                           i);
        tensor.data = data + at;
        TD_TRY(add_value(item->results, &value, &tensor, item->info));
        at += td_engine_worker_round_up(tensor.size, TD_ENGINE_WORKER_ALIGN);
    }
    return TD_OK;
}

static td_err read_answer(const td_engine_worker_reader *reader, uint32_t index,
                          td_engine_item *item)
{
    const td_engine_worker_layout *layout = reader->layout;
    const td_worker_answer *shared = &reader->shared->answers[index];
    const uint8_t *start = (const uint8_t *)reader->shared;
    td_worker_answer answer;
    memcpy(&answer, shared, offsetof(td_worker_answer, values));
    item->rows = 0;
    if (answer.status != TD_OK) return fail_as_told(&answer, item->info);
    if (reader->operation == TD_WORKER_PREFIX) {
        item->prefix_bytes = answer.prefix_bytes ? answer.prefix_bytes : 1;
        return TD_OK;
    }
    if (item->results)
        TD_TRY(
            read_values(shared->values, answer.value_count,
                        start + layout->values + index * layout->values_bytes,
                        layout->values_bytes, item));
    return read_actions(reader->spec,
                        start + layout->actions + index * layout->actions_bytes,
                        answer.rows, item);
}

td_err td_engine_worker_read(const td_engine_worker_reader *reader,
                             td_engine_item *const *items, uint32_t count,
                             int64_t *ret_service_ns)
{
    const td_worker_result *shared = reader->shared;
    if (__atomic_load_n(&shared->count, __ATOMIC_RELAXED) != count)
        return TD_ERR_FORMAT;
    int64_t service_ns = __atomic_load_n(&shared->service_ns, __ATOMIC_RELAXED);
    for (uint32_t i = 0; i < count; i++) {
        items[i]->status = read_answer(reader, i, items[i]);
        if (items[i]->status != TD_OK && items[i]->results)
            td_engine_results_clear(items[i]->results);
    }
    *ret_service_ns = service_ns > 0 ? service_ns : 0;
    return TD_OK;
}
