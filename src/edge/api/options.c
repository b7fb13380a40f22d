// SPDX-License-Identifier: Apache-2.0
#include "edge/api/options.h"

#include "tendon/robot.h"

#include <stdlib.h>
#include <string.h>

td_err td_edge_options_struct(const char *what, const void *argument,
                              size_t first, size_t known, void *ret_copy,
                              td_errinfo *info)
{
    size_t size;
    memcpy(&size, argument, sizeof size);
    if (size < first)
        return td_fail(info, TD_ERR_INVALID,
                       "%s: size must be that of the struct, %zu, got %zu",
                       what, known, size);
    const unsigned char *bytes = argument;
    for (size_t i = known; i < size; i++)
        if (bytes[i])
            return td_fail(info, TD_ERR_VERSION,
                           "%s: has members that are newer than this library, "
                           "%s",
                           what, td_version_text());
    memset(ret_copy, 0, known);
    memcpy(ret_copy, argument, size < known ? size : known);
    return TD_OK;
}

const char *td_edge_options_text(const char *argument, const char *variable)
{
    return argument ? argument : getenv(variable);
}

td_err td_edge_options_nowhere(const char *field, const char *variable,
                               td_errinfo *info)
{
    return td_fail(info, TD_ERR_INVALID,
                   "%s: is missing: give it, or set %s in the environment",
                   field, variable);
}

td_err td_edge_options_chunk(const char *field, const char *argument,
                             const char *variable,
                             char ret_chunk[TD_WIRE_MAX_NAME + 1],
                             td_errinfo *info)
{
    const char *text = td_edge_options_text(argument, variable);
    if (!text) return td_edge_options_nowhere(field, variable, info);
    TD_TRY(td_wire_key_check(field, text, info));
    memcpy(ret_chunk, text, strlen(text) + 1);
    return TD_OK;
}
