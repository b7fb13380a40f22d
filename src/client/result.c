// SPDX-License-Identifier: Apache-2.0
// A result is one block of memory: the struct, its texts, and those tensors
// that do not lie on a multiple of their items' size in the message. The others
// stay in the message, which the result keeps.
#include "client/model.h"

#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// NOLINTBEGIN(readability-redundant-casting): or gcc warns of other enums
_Static_assert((int)TD_MODEL_F32 == (int)TD_WIRE_F32 &&
                   (int)TD_MODEL_U8 == (int)TD_WIRE_U8 &&
                   (int)TD_MODEL_BOOL == (int)TD_WIRE_BOOL,
               "td_model_dtype is td_wire_dtype");
_Static_assert((int)TD_MODEL_CHUNK == (int)TD_WIRE_CHUNK &&
                   (int)TD_MODEL_VERDICT == (int)TD_WIRE_VERDICT,
               "td_model_kind is td_wire_action_kind");
// NOLINTEND(readability-redundant-casting)
_Static_assert(TD_MODEL_MAX_RANK == TD_WIRE_MAX_RANK, "ranks are the wire's");

typedef struct box {
    td_model_result result; // first: the program's pointer is ours
    td_net_msg *msg;        // NULL: nothing is in one
    uint64_t *superseded;
    unsigned char *at; // the next free byte of `memory`
    alignas(8) unsigned char memory[];
} box;

static box *box_new(size_t bytes)
{
    box *made = calloc(1, sizeof *made + bytes);
    if (!made) return NULL;
    made->at = made->memory;
    made->result = (td_model_result){
        .size = sizeof made->result,
        .error_text = "",
        .text = "",
        .server = "",
    };
    return made;
}

void td_model_result_free(td_model_result *result)
{
    box *held = (box *)result;
    if (held->msg) td_net_msg_free(held->msg);
    free(held->superseded);
    free(held);
}

static size_t placed_bytes(size_t size)
{
    return (size + 7) / 8 * 8;
}

static void *place(box *into, const void *data, size_t size)
{
    void *at = into->at;
    into->at += placed_bytes(size);
    return memcpy(at, data, size);
}

static const char *put_text(box *into, td_wire_text text)
{
    char *at = (char *)into->at; // zeros follow
    into->at += placed_bytes(text.size + 1);
    return text.size ? memcpy(at, text.data, text.size) : at;
}

static bool is_aligned(const td_wire_tensor *tensor)
{
    return (uintptr_t)tensor->data % td_wire_dtype_bytes(tensor->dtype) == 0;
}

static td_model_tensor put_tensor(box *into, const td_wire_tensor *tensor)
{
    td_model_tensor shown = {
        .dtype = (td_model_dtype)tensor->dtype,
        .rank = tensor->rank,
        .data = tensor->data,
        .bytes = tensor->size,
        .has_age = tensor->has_age,
        .age_us = tensor->age_us,
    };
    memcpy(shown.shape, tensor->shape, sizeof shown.shape);
    if (tensor->rank > 0 && !is_aligned(tensor))
        shown.data = place(into, tensor->data, tensor->size);
    return shown;
}

static size_t tensor_bytes(const td_wire_tensor *tensor)
{
    return tensor->rank > 0 && !is_aligned(tensor) ? placed_bytes(tensor->size)
                                                   : 0;
}

static size_t text_bytes(td_wire_text text)
{
    return placed_bytes(text.size + 1);
}

static size_t memory_of(const td_wire_action *action)
{
    size_t bytes = placed_bytes(action->error_code.size + 2 +
                                action->error_text.size + 1) +
                   text_bytes(action->text) + text_bytes(action->server) +
                   tensor_bytes(&action->actions) +
                   action->result_count * sizeof(td_model_tensor);
    for (uint32_t i = 0; i < action->result_count; i++)
        bytes += text_bytes(action->results[i].name) +
                 tensor_bytes(&action->results[i].tensor);
    return bytes;
}

static void put_results(box *into, const td_wire_action *action)
{
    void *place = into->at;
    td_model_tensor *shown = place;
    into->at += action->result_count * sizeof *shown;
    for (uint32_t i = 0; i < action->result_count; i++) {
        shown[i] = put_tensor(into, &action->results[i].tensor);
        shown[i].name = put_text(into, action->results[i].name);
    }
    into->result.results = shown;
    into->result.result_count = action->result_count;
}

static td_err code_of(td_wire_text name)
{
    for (int code = TD_OK + 1; code < TD_ERR_COUNT; code++)
        if (td_wire_text_is(name, td_err_name((td_err)code)))
            return (td_err)code;
    return TD_ERR_COUNT;
}

// A code that is not ours stands before the text.
static void put_error(box *into, const td_wire_action *action)
{
    td_wire_text code = action->error_code, text = action->error_text;
    td_model_result *result = &into->result;
    result->outcome = TD_MODEL_ERROR;
    result->error = code_of(code);
    if (result->error != TD_ERR_COUNT) {
        result->error_text = put_text(into, text);
        return;
    }
    result->error = TD_ERR_INTERNAL;
    size_t size = (size_t)code.size + 2 + text.size + 1;
    (void)snprintf((char *)into->at, size, "%.*s: %.*s", (int)code.size,
                   code.data, (int)text.size, text.data);
    result->error_text = (const char *)into->at;
    into->at += placed_bytes(size);
}

td_err td_client_result_new_answer(td_net_msg *msg,
                                   const td_wire_action *action,
                                   td_model_result **ret_result)
{
    box *made = box_new(memory_of(action));
    if (!made) return TD_ERR_NOMEM;
    td_model_result *result = &made->result;
    made->msg = msg;
    result->seq = action->ident.seq;
    result->kind = (td_model_kind)action->kind;
    result->is_unsafe = action->unsafe;
    result->chunk_id = action->chunk_id;
    result->inference_ms = action->inference_time_ms;
    result->queue_ms = action->queue_time_ms;
    result->actions = put_tensor(made, &action->actions);
    put_results(made, action);
    result->text = put_text(made, action->text);
    result->server = put_text(made, action->server);
    if (action->error_code.size > 0) put_error(made, action);
    *ret_result = result;
    return TD_OK;
}

td_err td_client_result_new_end(const td_client_ended *ended,
                                const char *detail,
                                td_model_result **ret_result)
{
    const char *why = td_client_why_text(ended->why);
    size_t size = strlen(why) + 2 + strlen(detail) + 1;
    box *made = box_new(size);
    if (!made) return TD_ERR_NOMEM;
    (void)snprintf((char *)made->at, size, "%s%s%s", why, *detail ? ": " : "",
                   detail);
    made->result.error_text = (const char *)made->at;
    made->result.seq = ended->seq;
    made->result.outcome = ended->outcome;
    made->result.error =
        ended->outcome == TD_MODEL_LOST ? TD_ERR_IO : TD_ERR_TIMEOUT;
    *ret_result = &made->result;
    return TD_OK;
}

td_err td_client_result_add_superseded(td_model_result *result,
                                       const uint64_t *seqs, uint32_t count)
{
    box *held = (box *)result;
    if (count == 0) return TD_OK;
    held->superseded = malloc(count * sizeof *seqs);
    if (!held->superseded) return TD_ERR_NOMEM;
    memcpy(held->superseded, seqs, count * sizeof *seqs);
    result->superseded = held->superseded;
    result->superseded_count = count;
    return TD_OK;
}
