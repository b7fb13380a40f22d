// SPDX-License-Identifier: Apache-2.0
#include "wire/msgpack/table.h"
#include "wire/msgpack/text.h"

// Channels are two arrays on the wire, names and kinds, whose lengths are
// compared when both are read.
typedef struct wire_status {
    td_wire_status status;
    uint32_t action_kind_count; // 0: all linear
    uint32_t state_kind_count;
} wire_status;

#define WIRE(member) offsetof(wire_status, member)
#define STATUS(member) offsetof(wire_status, status.member)
#define FEATURE(member) offsetof(td_wire_feature, member)

static const td_wire_list cameras = {
    .member = {.type = &td_wire_type_extent,
               .offset = offsetof(td_wire_camera, height),
               .extent = 2},
    .stride = sizeof(td_wire_camera),
    .max = TD_WIRE_MAX_IMAGES,
    .count = STATUS(camera_count),
};

static const td_wire_list feature_shape = {
    .member = {.type = &td_wire_type_u32},
    .stride = sizeof(uint32_t),
    .max = TD_WIRE_MAX_RANK,
    .count = FEATURE(rank),
};

static const td_wire_field feature_fields[] = {
    TD_WIRE_FIELD("dtype", enum, FEATURE(dtype), .required = true,
                  .names = td_wire_dtype_names),
    TD_WIRE_FIELD("shape", array, FEATURE(shape), .required = true,
                  .list = &feature_shape),
};
static const td_wire_table feature = TD_WIRE_TABLE(feature_fields);

static const td_wire_list features = {
    .member = {.type = &td_wire_type_map, .table = &feature},
    .stride = sizeof(td_wire_feature),
    .max = TD_WIRE_MAX_TENSORS,
    .count = STATUS(feature_count),
};

#define CHANNEL_NAMES(count_member)                                            \
    {                                                                          \
        .member = {.type = &td_wire_type_name,                                 \
                   .offset = offsetof(td_wire_channel, name),                  \
                   .required = true},                                          \
        .stride = sizeof(td_wire_channel),                                     \
        .max = TD_WIRE_MAX_CHANNELS,                                           \
        .count = STATUS(count_member),                                         \
    }
#define CHANNEL_KINDS(count_member)                                            \
    {                                                                          \
        .member = {.type = &td_wire_type_enum,                                 \
                   .offset = offsetof(td_wire_channel, kind),                  \
                   .names = td_wire_channel_kind_names},                       \
        .stride = sizeof(td_wire_channel),                                     \
        .max = TD_WIRE_MAX_CHANNELS,                                           \
        .count = WIRE(count_member),                                           \
    }
static const td_wire_list action_names = CHANNEL_NAMES(action_count);
static const td_wire_list state_names = CHANNEL_NAMES(state_count);
static const td_wire_list action_kinds = CHANNEL_KINDS(action_kind_count);
static const td_wire_list state_kinds = CHANNEL_KINDS(state_kind_count);

static const td_wire_field attach_fields[] = {
    TD_WIRE_FIELD("accepted", bool, STATUS(attached), .required = true),
    TD_WIRE_FIELD("reason", text, STATUS(attach_reason)),
};
static const td_wire_table attach = TD_WIRE_TABLE(attach_fields);

static const td_wire_field fields[] = {
    TD_WIRE_FIELD("schema", schema, 0, .always = true),
    TD_WIRE_FIELD("model_id", id, STATUS(model_id), .required = true),
    TD_WIRE_FIELD("model_version", id, STATUS(model_version), .required = true),
    TD_WIRE_FIELD("server_id", id, STATUS(server)),
    TD_WIRE_FIELD("server_boot", u64, STATUS(server_boot)),
    TD_WIRE_FIELD("state", enum, STATUS(state), .always = true,
                  .names = td_wire_server_state_names),
    TD_WIRE_FIELD("expected_cameras", names, STATUS(cameras), .always = true,
                  .list = &cameras),
    TD_WIRE_FIELD("action_dim", u32, STATUS(action_dim), .required = true),
    TD_WIRE_FIELD("max_actions_per_chunk", u32, STATUS(max_actions_per_chunk),
                  .required = true),
    TD_WIRE_FIELD("observation_features", names, STATUS(features),
                  .always = true, .list = &features),
    TD_WIRE_FIELD("action_names", array, STATUS(actions),
                  .list = &action_names),
    TD_WIRE_FIELD("action_kinds", array, STATUS(actions),
                  .list = &action_kinds),
    TD_WIRE_FIELD("state_names", array, STATUS(states), .list = &state_names),
    TD_WIRE_FIELD("state_kinds", array, STATUS(states), .list = &state_kinds),
    TD_WIRE_FIELD("step_period_us", duration, STATUS(step_period_us)),
    TD_WIRE_FIELD("rtc", bool, STATUS(rtc)),
    TD_WIRE_FIELD("capacity", u32, STATUS(capacity)),
    TD_WIRE_FIELD("clients", u32, STATUS(clients)),
    TD_WIRE_FIELD("load", unit, STATUS(load)),
    TD_WIRE_FIELD("attach", map, 0, .has = STATUS(has_attach),
                  .table = &attach),
};

static td_err check_kinds(const td_wire_at *at, const char *what,
                          uint32_t names, uint32_t kinds)
{
    if (kinds == 0 || kinds == names) return TD_OK;
    return td_wire_fail(at, TD_ERR_FORMAT, "%u %s_names but %u %s_kinds", names,
                        what, kinds, what);
}

static td_err check(const td_wire_at *at, const void *message)
{
    const wire_status *wire = message;
    const td_wire_status *status = &wire->status;
    TD_TRY(check_kinds(at, "action", status->action_count,
                       wire->action_kind_count));
    TD_TRY(
        check_kinds(at, "state", status->state_count, wire->state_kind_count));
    if (status->action_count && status->action_count != status->action_dim)
        return td_wire_fail(at, TD_ERR_FORMAT,
                            "action_dim is %u but there are %u action_names",
                            status->action_dim, status->action_count);
    return TD_OK;
}

static const td_wire_message message = {"status", sizeof(wire_status),
                                        sizeof(wire_status),
                                        TD_WIRE_TABLE(fields), check};

td_err td_wire_status_decode(td_wire_decoder *decoder, const void *data,
                             size_t size, td_wire_status *ret_status,
                             td_errinfo *info)
{
    wire_status scratch, wire;
    TD_TRY(
        td_wire_decode(&message, decoder, data, size, &scratch, &wire, info));
    *ret_status = wire.status;
    return TD_OK;
}

// All of them, or none if all are linear.
static uint32_t kind_count(const td_wire_channel *channels, uint32_t count)
{
    for (uint32_t i = 0; i < count && i < TD_WIRE_MAX_CHANNELS; i++)
        if (channels[i].kind != TD_WIRE_LINEAR) return count;
    return 0;
}

td_err td_wire_status_encode(td_wire_encoder *encoder,
                             const td_wire_status *status, td_errinfo *info)
{
    wire_status wire = {
        .status = *status,
        .action_kind_count = kind_count(status->actions, status->action_count),
        .state_kind_count = kind_count(status->states, status->state_count),
    };
    return td_wire_encode(&message, encoder, &wire, info);
}
