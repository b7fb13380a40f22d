// SPDX-License-Identifier: Apache-2.0
#include "server/core/answer.h"

#include <string.h>

void td_server_answer_error(const char *server, const td_wire_ident *ident,
                            td_err code, const char *text,
                            td_wire_action *ret_action)
{
    *ret_action = (td_wire_action){
        .ident = *ident,
        .kind = TD_WIRE_CHUNK,
        .server = td_wire_text_of(server),
        .error_code = td_wire_text_of(td_err_name(code)),
        .error_text = td_wire_text_of(text),
    };
}

void td_server_answer(const char *server, const td_engine_item *item,
                      uint32_t channels, const td_server_timing *timing,
                      uint64_t chunk_id, td_wire_action *ret_action)
{
    if (item->status != TD_OK) {
        const char *why = item->info && item->info->text[0]
                              ? item->info->text
                              : "the engine could not answer this";
        td_server_answer_error(server, &item->obs->ident, item->status, why,
                               ret_action);
        return;
    }
    const td_engine_results *results = item->results;
    // Not the lists, which are most of it and hold nothing yet.
    memset(ret_action, 0, offsetof(td_wire_action, superseded));
    ret_action->ident = item->obs->ident;
    ret_action->kind = TD_WIRE_CHUNK;
    ret_action->server = td_wire_text_of(server);
    ret_action->inference_time_ms = (float)timing->service_ns / 1e6F;
    ret_action->queue_time_ms = (float)timing->queue_ns / 1e6F;
    ret_action->chunk_id = chunk_id;
    ret_action->actions = (td_wire_tensor){
        .dtype = TD_WIRE_F32,
        .rank = 2,
        .shape = {item->rows, channels},
        .data = item->actions,
        .size = (size_t)item->rows * channels * sizeof(float),
    };
    if (!results) return;
    ret_action->text = results->text;
    ret_action->result_count = results->count;
    memcpy(ret_action->results, results->named,
           results->count * sizeof *results->named);
}
