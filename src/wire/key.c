// SPDX-License-Identifier: Apache-2.0
#include "wire/key.h"

#include <stdio.h>
#include <string.h>

static bool is_key_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
}

// Why `chunk` cannot stand in a key; NULL when it can.
static const char *fault_of(td_wire_text chunk)
{
    if (chunk.size == 0) return "is empty";
    if (chunk.size > TD_WIRE_MAX_NAME) return "is longer than 64 bytes";
    if (chunk.data[0] == '.') return "starts with '.'";
    for (uint32_t i = 0; i < chunk.size; i++)
        if (!is_key_char(chunk.data[i]))
            return "holds something other than A-Z a-z 0-9 . _ -";
    return NULL;
}

td_err td_wire_key_check_id(const td_wire_at *at, td_wire_text id)
{
    const char *fault = fault_of(id);
    if (!fault) return TD_OK;
    td_err err = id.size > TD_WIRE_MAX_NAME ? TD_ERR_LIMIT : TD_ERR_FORMAT;
    return td_wire_fail(at, err, "%s", fault);
}

td_err td_wire_key_check(const char *field, const char *chunk, td_errinfo *info)
{
    const char *fault = chunk ? fault_of(td_wire_text_of(chunk)) : "is missing";
    if (!fault) return TD_OK;
    return td_fail(info, TD_ERR_INVALID, "%s: '%.80s' %s", field,
                   chunk ? chunk : "", fault);
}

td_err td_wire_key(const td_wire_route *route, const char *client,
                   const char *topic, char ret_key[TD_WIRE_MAX_KEY],
                   td_errinfo *info)
{
    TD_TRY(td_wire_key_check("cluster", route->cluster, info));
    TD_TRY(td_wire_key_check("experiment", route->experiment, info));
    TD_TRY(td_wire_key_check("model", route->model, info));
    TD_TRY(td_wire_key_check("version", route->version, info));
    TD_TRY(td_wire_key_check("application", route->application, info));
    TD_TRY(td_wire_key_check("topic", topic, info));
    if (client && strcmp(client, "*") != 0)
        TD_TRY(td_wire_key_check("client", client, info));

    snprintf(ret_key, sizeof(char[TD_WIRE_MAX_KEY]), "%s/%s/%s/%s/%s/%s%s%s",
             route->cluster, route->experiment, route->model, route->version,
             route->application, client ? client : "", client ? "/" : "",
             topic);
    return TD_OK;
}
