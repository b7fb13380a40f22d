// SPDX-License-Identifier: Apache-2.0
#include "wire/msgpack/table.h"

#define ATTACH(member) offsetof(td_wire_attach, member)

static const td_wire_field fields[] = {
    TD_WIRE_FIELD("schema", schema, 0, .always = true),
    TD_WIRE_FIELD("client_uuid", id, ATTACH(client), .required = true),
    TD_WIRE_FIELD("server_id", id, ATTACH(server), .required = true),
    TD_WIRE_FIELD("server_boot", u64, ATTACH(server_boot)),
    TD_WIRE_FIELD("boot", u64, ATTACH(boot)),
    TD_WIRE_FIELD("route", u64, ATTACH(route)),
    TD_WIRE_FIELD("leave", bool, ATTACH(leave)),
    TD_WIRE_FIELD("every", bool, ATTACH(every)),
};

static const td_wire_message message = {"attach", sizeof(td_wire_attach),
                                        sizeof(td_wire_attach),
                                        TD_WIRE_TABLE(fields), NULL};

td_err td_wire_attach_decode(td_wire_decoder *decoder, const void *data,
                             size_t size, td_wire_attach *ret_attach,
                             td_errinfo *info)
{
    td_wire_attach attach;
    return td_wire_decode(&message, decoder, data, size, &attach, ret_attach,
                          info);
}

td_err td_wire_attach_encode(td_wire_encoder *encoder,
                             const td_wire_attach *attach, td_errinfo *info)
{
    return td_wire_encode(&message, encoder, attach, info);
}
