// SPDX-License-Identifier: Apache-2.0
#include "wire/msgpack/table.h"
#include "wire/msgpack/text.h"

#define ACTION(member) offsetof(td_wire_action, member)

static const td_wire_list superseded = {
    .member = {.type = &td_wire_type_u64},
    .stride = sizeof(uint64_t),
    .max = TD_WIRE_MAX_SUPERSEDED,
    .count = ACTION(superseded_count),
};

static const td_wire_list results = {
    .member = {.type = &td_wire_type_tensor,
               .offset = offsetof(td_wire_named, tensor)},
    .stride = sizeof(td_wire_named),
    .max = TD_WIRE_MAX_TENSORS,
    .count = ACTION(result_count),
};

static const td_wire_field error_fields[] = {
    TD_WIRE_FIELD("code", name, ACTION(error_code), .required = true),
    TD_WIRE_FIELD("text", text, ACTION(error_text)),
};
static const td_wire_table error = TD_WIRE_TABLE(error_fields);

static const td_wire_rule actions_rule = {.finite = true, .rank = 2};

static const td_wire_field fields[] = {
    TD_WIRE_FIELD("response_to_seq_id", u64, ACTION(ident.seq),
                  .required = true),
    TD_WIRE_FIELD("boot", u64, ACTION(ident.boot)),
    TD_WIRE_FIELD("schema", schema, 0, .always = true),
    TD_WIRE_FIELD("route", u64, ACTION(ident.route)),
    TD_WIRE_FIELD("episode", u64, ACTION(ident.episode)),
    TD_WIRE_FIELD("kind", enum, ACTION(kind),
                  .names = td_wire_action_kind_names),
    TD_WIRE_FIELD("server_id", id, ACTION(server)),
    TD_WIRE_FIELD("chunk_id", u64, ACTION(chunk_id)),
    TD_WIRE_FIELD("continues", u64, ACTION(continues),
                  .has = ACTION(has_continues)),
    TD_WIRE_FIELD("inference_time_ms", ms, ACTION(inference_time_ms),
                  .always = true),
    TD_WIRE_FIELD("queue_time_ms", ms, ACTION(queue_time_ms)),
    TD_WIRE_FIELD("unsafe", bool, ACTION(unsafe)),
    TD_WIRE_FIELD("text", text, ACTION(text)),
    TD_WIRE_FIELD("superseded", array, ACTION(superseded), .list = &superseded),
    TD_WIRE_FIELD("error", map, 0, .table = &error),
    TD_WIRE_FIELD("actions", tensor, ACTION(actions), .rule = &actions_rule),
    TD_WIRE_FIELD("results", names, ACTION(results), .list = &results),
};

static td_err check(const td_wire_at *at, const void *message)
{
    const td_wire_action *action = message;
    bool has_actions = action->actions.rank > 0;
    bool has_error = action->error_code.size > 0;
    if (has_actions && has_error)
        return td_wire_fail(at, TD_ERR_FORMAT, "both actions and an error");
    if (has_actions && action->actions.size == 0)
        return td_wire_fail(at, TD_ERR_FORMAT, "actions have no rows");
    if (action->kind == TD_WIRE_CHUNK && !has_actions && !has_error)
        return td_wire_fail(at, TD_ERR_FORMAT, "actions is missing");
    return TD_OK;
}

_Static_assert(ACTION(superseded_count) < ACTION(superseded) &&
                   ACTION(result_count) < ACTION(superseded),
               "counts come before the lists");
_Static_assert(TD_WIRE_END(td_wire_action, superseded) == ACTION(results) &&
                   TD_WIRE_END(td_wire_action, results) ==
                       sizeof(td_wire_action),
               "lists come last, with nothing between them");

static const td_wire_message message = {"action", sizeof(td_wire_action),
                                        ACTION(superseded),
                                        TD_WIRE_TABLE(fields), check};

td_err td_wire_action_decode(td_wire_decoder *decoder, const void *data,
                             size_t size, td_wire_action *ret_action,
                             td_errinfo *info)
{
    td_wire_action action;
    return td_wire_decode(&message, decoder, data, size, &action, ret_action,
                          info);
}

td_err td_wire_action_encode(td_wire_encoder *encoder,
                             const td_wire_action *action, td_errinfo *info)
{
    return td_wire_encode(&message, encoder, action, info);
}
