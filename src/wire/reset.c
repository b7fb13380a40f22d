// SPDX-License-Identifier: Apache-2.0
#include "wire/msgpack/table.h"

#define RESET(member) offsetof(td_wire_reset, member)

static const td_wire_field fields[] = {
    TD_WIRE_FIELD("schema", schema, 0, .always = true),
    TD_WIRE_FIELD("client_uuid", id, RESET(client), .required = true),
    TD_WIRE_FIELD("boot", u64, RESET(boot)),
    TD_WIRE_FIELD("route", u64, RESET(route)),
    TD_WIRE_FIELD("episode", u64, RESET(episode), .required = true),
    TD_WIRE_FIELD("reason", text, RESET(reason)),
};

static const td_wire_message message = {"reset", sizeof(td_wire_reset),
                                        sizeof(td_wire_reset),
                                        TD_WIRE_TABLE(fields), NULL};

td_err td_wire_reset_decode(td_wire_decoder *decoder, const void *data,
                            size_t size, td_wire_reset *ret_reset,
                            td_errinfo *info)
{
    td_wire_reset reset;
    return td_wire_decode(&message, decoder, data, size, &reset, ret_reset,
                          info);
}

td_err td_wire_reset_encode(td_wire_encoder *encoder,
                            const td_wire_reset *reset, td_errinfo *info)
{
    return td_wire_encode(&message, encoder, reset, info);
}
