// SPDX-License-Identifier: Apache-2.0
#include "wire/msgpack/table.h"

#define PART(member) offsetof(td_wire_component, member)
#define GRANT(member) offsetof(td_wire_grant, member)

static const td_wire_field component_fields[] = {
    TD_WIRE_FIELD("server_id", id, PART(server), .required = true),
    TD_WIRE_FIELD("standby", id, PART(standby)),
    TD_WIRE_FIELD("model_id", id, PART(model_id)),
    TD_WIRE_FIELD("model_version", id, PART(model_version)),
    TD_WIRE_FIELD("application_tag", id, PART(application)),
    TD_WIRE_FIELD("route", u64, PART(route), .always = true),
    TD_WIRE_FIELD("rate_hz", rate, PART(rate_hz)),
    TD_WIRE_FIELD("phase_us", duration, PART(phase_us)),
    TD_WIRE_FIELD("deadline_us", duration, PART(deadline_us)),
};
static const td_wire_table component = TD_WIRE_TABLE(component_fields);

static const td_wire_list components = {
    .member = {.type = &td_wire_type_map, .table = &component},
    .stride = sizeof(td_wire_component),
    .max = TD_WIRE_MAX_COMPONENTS,
    .count = GRANT(component_count),
};

static const td_wire_field fields[] = {
    TD_WIRE_FIELD("schema", schema, 0, .always = true),
    TD_WIRE_FIELD("client_uuid", id, GRANT(client), .required = true),
    TD_WIRE_FIELD("generation", u64, GRANT(generation), .required = true),
    TD_WIRE_FIELD("components", names, GRANT(components), .always = true,
                  .list = &components),
};

static const td_wire_message message = {"grant", sizeof(td_wire_grant),
                                        sizeof(td_wire_grant),
                                        TD_WIRE_TABLE(fields), NULL};

td_err td_wire_grant_decode(td_wire_decoder *decoder, const void *data,
                            size_t size, td_wire_grant *ret_grant,
                            td_errinfo *info)
{
    td_wire_grant grant;
    return td_wire_decode(&message, decoder, data, size, &grant, ret_grant,
                          info);
}

td_err td_wire_grant_encode(td_wire_encoder *encoder,
                            const td_wire_grant *grant, td_errinfo *info)
{
    return td_wire_encode(&message, encoder, grant, info);
}
